//! Every call as a line of text, latest first within a thread.
//!
//! Lines have no place for what is missing from the recording; the caller prints that elsewhere.

use super::excerpt::{Ended, Excerpt};
use super::labels::{self, Labels, ThreadLabel};
use super::out::Out;
use super::per_path::PerPath;
use super::{Coverage, ExportError};
use crate::recording::ReadAt;
use crate::report::NamedValues;

/// The text around the numbers of a call, in the order of the line.
pub(super) struct Layout {
    pub(super) thread: fn(&ThreadLabel) -> String,
    /// Between start and duration.
    pub(super) between: &'static [u8],
    pub(super) ended: fn(Ended) -> &'static [u8],
    /// The function and its path, outermost first.
    pub(super) path: fn(&[&str]) -> String,
    /// The values of a call; used only if calls of the recording may have values.
    pub(super) values: fn(Option<&NamedValues>) -> String,
    pub(super) end: &'static [u8],
}

pub(super) fn write<R: ReadAt>(
    excerpt: &Excerpt<'_, R>,
    layout: &Layout,
    mut out: Out<'_>,
) -> Result<Coverage, ExportError> {
    let labels = Labels::of(excerpt.recording);
    let mut paths = PerPath::new(excerpt.nodes().len(), |path| {
        (layout.path)(&labels.path(excerpt.nodes(), path)).into_bytes()
    });
    let has_values = excerpt.recording.has_values();
    let told = excerpt.chunks(|step| {
        for (thread, rows) in step.rows() {
            let head = (layout.thread)(&labels::thread(excerpt.recording, thread));
            for row in rows {
                out.text(&head);
                out.number(row.start);
                out.put(layout.between);
                out.number(row.duration);
                out.put((layout.ended)(row.ended));
                out.put(paths.get(row.path));
                if has_values {
                    let function = excerpt.nodes()[row.path as usize].func;
                    out.text(&(layout.values)(step.values(thread, row.start, function)));
                }
                out.put(layout.end);
                out.relieve()?;
            }
        }
        Ok(())
    })?;
    out.finish()?;
    Ok(told)
}
