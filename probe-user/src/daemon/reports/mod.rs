//! Reports of intervals: their form ([`Style`]), and their way to files and the journal
//! ([`Writer`]).

mod file;
mod pipe;
mod queue;
pub(crate) mod style;
mod writer;

pub(crate) use style::{Header, Style};
pub(crate) use writer::Writer;
