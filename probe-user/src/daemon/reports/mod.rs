//! Reports of intervals: [`Style`] is their form, [`Writer`] their way to files and the journal.

mod file;
mod pipe;
mod queue;
pub(crate) mod style;
mod writer;

pub(crate) use style::{ReportHeader, Style};
pub(crate) use writer::Writer;
