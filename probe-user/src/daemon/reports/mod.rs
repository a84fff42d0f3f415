//! Reports of intervals: their form ([`Style`]), and their way to files and the journal
//! ([`Writer`]).

mod file;
pub mod style;
mod writer;

pub use style::{Header, Style};
pub use writer::Writer;
