//! Reports of intervals: their form ([`Style`]), and their way to files and the journal
//! ([`Writer`]).

mod file;
mod pipe;
mod queue;
pub mod style;
mod writer;

pub use style::{Header, Style};
pub use writer::Writer;
