//! The distribution of durations over time. A separate pass, because it is rarely wanted.

use super::count::FirstPass;
use super::lens::Lens;
use super::select::{CallReader, each_part};
use crate::recording::{ChunkEntry, Recording};
use crate::stats::heat::Heat;
use crate::stats::slices::Slices;

pub(crate) fn heat(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    slices: Slices,
) -> Heat {
    let nodes = lens.paths.nodes();
    let parts = each_part(chunks, |entries| {
        let mut heat = Heat::new(slices);
        let mut selected = CallReader::new(recording, lens, counted);
        for entry in entries {
            let Some(chunk) = selected.read(entry) else { continue };
            for thread in chunk.threads() {
                selected.calls(&chunk, thread, |call, node| {
                    if call.timed {
                        heat.add(nodes[node as usize].func, call.end(), call.duration);
                    }
                });
            }
        }
        heat
    });
    parts.into_iter().fold(Heat::new(slices), |mut all, part| {
        all.merge(part);
        all
    })
}
