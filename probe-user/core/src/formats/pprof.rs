//! pprof's format. Each call path of a thread has a sample with its calls, its calls without a known
//! end, and its own time.
//!
//! The profile's comment says in one line what is missing.

use super::excerpt::Excerpt;
use super::labels::{self, Labels, UNKNOWN_FRAMES};
use super::out::Out;
use super::path_sums::{PathSum, PathSums};
use super::pprof_file::{PprofFile, ValueType};
use super::{Coverage, ExportError};
use crate::units::ThreadId;
use std::collections::HashMap;
use std::io::Write;

/// The values of a sample and their units.
const TYPES: [ValueType<'static>; 3] =
    [("calls", "count"), ("untimed", "count"), ("time", "nanoseconds")];

pub(super) fn write(excerpt: &Excerpt<'_>, mut out: Out<'_>) -> Result<Coverage, ExportError> {
    let (all, told) = PathSums::of(excerpt)?;
    let mut file = PprofFile::new(&mut out);
    head(&mut file, excerpt)?;
    for (id, sums) in all.threads() {
        thread(&mut file, excerpt, id, &sums)?;
    }
    file.comment(&told.in_short());
    file.finish()?;
    out.finish()?;
    Ok(told)
}

/// Writes everything but samples. The numbers of functions and their locations are the functions'
/// ids plus 1. One more is for unknown frames.
fn head<W: Write>(file: &mut PprofFile<W>, excerpt: &Excerpt<'_>) -> Result<(), ExportError> {
    let recording = excerpt.recording;
    file.types(&TYPES);
    let mut mappings = HashMap::new();
    for (object, id) in recording.objects().iter().zip(1..) {
        let path = labels::text(&object.path);
        let build_id = labels::text(object.build_id.as_deref().unwrap_or_default());
        file.mapping(id, &path, &build_id);
        mappings.insert(object.name.clone(), id);
    }
    let labels = Labels::of(recording);
    for ((label, info), id) in labels.all().iter().zip(recording.functions()).zip(1..) {
        let mapping = mappings.get(&info.object).copied().unwrap_or_default();
        let source = labels::text(info.file.as_deref().unwrap_or_default());
        file.function(id, label, &source, info.line.unwrap_or_default().into(), mapping)?;
    }
    file.function(labels.all().len() as u64 + 1, UNKNOWN_FRAMES, "", 0, 0)?;
    let (from, to) = excerpt.period();
    let begun = from.0.saturating_add_signed(recording.start().epoch_offset_ns);
    file.time(begun, to.since(from).0);
    Ok(())
}

fn thread<W: Write>(
    file: &mut PprofFile<W>,
    excerpt: &Excerpt<'_>,
    thread: ThreadId,
    sums: &[(u32, PathSum)],
) -> Result<(), ExportError> {
    let label = labels::thread(excerpt.recording, thread);
    let labels =
        [file.text_label("thread", &label.name), file.number_label("thread_id", label.tid.into())];
    for (path, sum) in sums {
        let (frames, is_whole) = labels::frames(excerpt.nodes(), *path);
        let unknown = (!is_whole).then_some(excerpt.recording.functions().len() as u64 + 1);
        let frames = frames.into_iter().rev().map(|function| u64::from(function.0) + 1);
        let values = [sum.calls, sum.untimed.saturating_add(sum.open), sum.own];
        file.sample(frames.chain(unknown), values, &labels)?;
    }
    Ok(())
}
