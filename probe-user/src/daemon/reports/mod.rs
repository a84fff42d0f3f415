//! Reports of intervals: [`Style`] is their form, [`Writer`] their way to files and the journal.

mod file;
mod pipe;
mod queue;
pub mod style;
mod writer;

pub use style::{Header, Style};
pub use writer::Writer;
