//! The waits of each function by who ended them.
//!
//! The name of a thread is a part of a waker, so there can be any number of them. Two passes find the
//! most important ones in bounded memory and count those exactly, as they do for values.

use super::by_value::{COMPARED, Heavy, LEAST_COMPARED, weight};
use super::count::FirstPass;
use super::lens::Lens;
use super::select::{CallReader, each_part};
use super::values::each_payload;
use crate::calls::paths::ROOT;
use crate::calls::spool::Call;
use crate::recording::{ChunkEntry, Payload, Recording};
use crate::report::{WakerReport, WakersReport, WokenWaits};
use crate::stats::tally::Tally;
use crate::units::{FuncId, Nanos};
use crate::values::{Text, Value};
use crate::waits::WAKER;
use std::cmp::Reverse;

/// The function that waited, what it waited for, and who ended that.
type Key = (Option<FuncId>, FuncId, Text);

/// Returns the waits by who ended them, in at most `most` rows.
pub(crate) fn by_waker(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    most: usize,
) -> WakersReport {
    let pass = Pass { recording, lens, chunks, counted };
    let workers = rayon::current_num_threads().max(1);
    let compared = (COMPARED / workers).max(LEAST_COMPARED);
    let mut heaviest = Heavy::new(compared);
    let parts = pass.over(|| Heavy::new(compared), |heavy, key, call| heavy.add(key, weight(call)));
    parts.into_iter().for_each(|part| heaviest.merge(part));
    let chosen = heaviest.choose(most);
    let new = || vec![Tally::default(); chosen.rows()];
    let parts = pass.over(new, |tallies, key, call| {
        let row = chosen.rows.get(key).copied().unwrap_or(chosen.others());
        match call.timed {
            true => tallies[row].add_timed(call.duration, 0),
            false => tallies[row].add_untimed(call.duration, 0),
        }
    });
    let mut tallies = new();
    for part in parts {
        tallies.iter_mut().zip(&part).for_each(|(sum, tally)| sum.merge(tally));
    }
    let rows = chosen.values.iter().zip(&tallies).filter_map(|((function, wait, waker), tally)| {
        let (function, wait) = (function.map(FuncId::index), wait.index());
        Some(WakerReport { function, wait, waker: waker.to_string().into(), of: waits(tally)? })
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|row| Reverse((row.of.total_ns, row.of.waits)));
    let others = waits(&tallies[chosen.others()]);
    let weights = rows.iter().map(|row| row.of.total_ns.0.saturating_add(row.of.waits));
    let least = weights.min().unwrap_or(0);
    WakersReport { rows, others, unsure: others.is_some() && chosen.unlisted > least }
}

fn waits(tally: &Tally) -> Option<WokenWaits> {
    let waits = tally.ended();
    (waits > 0).then(|| WokenWaits {
        waits,
        timed: tally.timed,
        total_ns: Nanos(tally.total_ns()),
        mean_ns: tally.mean().map(Nanos),
        max_ns: tally.max().map(Nanos),
    })
}

/// The waits that have wakers.
struct Pass<'a, 'l> {
    recording: &'a Recording,
    lens: &'a Lens<'l>,
    chunks: &'a [ChunkEntry],
    counted: &'a FirstPass,
}

impl Pass<'_, '_> {
    /// Adds each wait to what is made of its part of the chunks.
    fn over<T: Send>(
        &self,
        new: impl Fn() -> T + Send + Sync,
        add: impl Fn(&mut T, &Key, Call) + Send + Sync,
    ) -> Vec<T> {
        each_part(self.chunks, |entries| {
            let mut made = new();
            let mut selected = CallReader::new(self.recording, self.lens, self.counted);
            each_payload(&mut selected, entries, |payload, call| {
                if let Some(key) = self.key(payload, call) {
                    add(&mut made, &key, call);
                }
            });
            made
        })
    }

    fn key(&self, payload: &Payload, call: Call) -> Option<Key> {
        let info = self.recording.functions().get(payload.function.index())?;
        let place = info.values.iter().position(|value| *value.name == *WAKER)?;
        let Some(Value::Text(waker)) = payload.values.get(place)?.as_ref() else { return None };
        info.wait?;
        let nodes = self.recording.nodes();
        let caller = nodes.get(call.node as usize)?.parent;
        let waiting = (caller != ROOT).then(|| nodes[caller as usize].func);
        Some((waiting, payload.function, waker.clone()))
    }
}
