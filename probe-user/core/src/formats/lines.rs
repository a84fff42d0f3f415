//! Every call as a line of text, latest first within a thread.
//!
//! Lines have no place for what is missing from the recording; the caller prints that elsewhere.

use super::excerpt::{CallRow, Ended, Excerpt};
use super::labels::{self, Labels, ThreadLabel};
use super::out::Out;
use super::per_path::PerPath;
use super::{Coverage, ExportError};
use crate::calls::paths::Node;
use crate::report::NamedValues;

/// The text around the numbers of a call, in the order of the line.
pub(super) struct LineLayout {
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

impl LineLayout {
    /// Appends the line of a call. `head`: the text of its thread. `path`: that of its function and
    /// path. `values`: that of its values.
    #[inline]
    pub(super) fn line(
        &self,
        (head, row): (&str, &CallRow),
        path: &[u8],
        values: &str,
        to: &mut Vec<u8>,
    ) {
        let mut digits = itoa::Buffer::new();
        to.extend_from_slice(head.as_bytes());
        to.extend_from_slice(digits.format(row.start).as_bytes());
        to.extend_from_slice(self.between);
        to.extend_from_slice(digits.format(row.duration).as_bytes());
        to.extend_from_slice((self.ended)(row.ended));
        to.extend_from_slice(path);
        to.extend_from_slice(values.as_bytes());
        to.extend_from_slice(self.end);
    }

    /// Returns the text of a function and its path.
    pub(super) fn text_of_path(&self, labels: &Labels, nodes: &[Node], path: u32) -> Vec<u8> {
        (self.path)(&labels.path(nodes, path)).into_bytes()
    }
}

pub(super) fn write(
    excerpt: &Excerpt<'_>,
    layout: &LineLayout,
    mut out: Out<'_>,
) -> Result<Coverage, ExportError> {
    let labels = Labels::of(excerpt.recording);
    let nodes = excerpt.nodes();
    let mut paths = PerPath::default();
    let has_values = excerpt.recording.has_values();
    let told = excerpt.chunks(|step| {
        for (thread, rows) in step.rows() {
            let head = (layout.thread)(&labels::thread(excerpt.recording, thread));
            for row in rows {
                let values = match has_values {
                    true => {
                        let function = nodes[row.path as usize].func;
                        (layout.values)(step.values(thread, row.start, function))
                    }
                    false => String::new(),
                };
                let path = paths
                    .get(row.path, nodes.len(), |path| layout.text_of_path(&labels, nodes, path));
                layout.line((&head, &row), path, &values, out.buffer());
                out.relieve()?;
            }
        }
        Ok(())
    })?;
    out.finish()?;
    Ok(told)
}
