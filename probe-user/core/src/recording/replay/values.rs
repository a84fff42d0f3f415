//! Values of the slowest calls, of calls inside them, and of the first calls with values. A payload
//! belongs to the call with the same thread, start and function.

use super::around::Around;
use super::count::FirstPass;
use super::lens::Lens;
use super::select::{CallReader, each_part};
use super::slowest::SlowCall;
use crate::calls::spool::Call;
use crate::recording::{ChunkEntry, ChunkLoss, Payload, Payloads, RecordError, Recording};
use crate::report::{NamedValues, PointReport, PointsReport};
use crate::units::{FuncId, ThreadId};
use std::collections::BTreeMap;

/// Calls with values that are listed inside one slow call, at most.
const INSIDE: usize = 100;

/// The first payloads in order of time, up to the wanted number, the number of all, and that of
/// their values that could not be read.
#[derive(Debug)]
struct First {
    wanted: usize,
    each: Vec<Payload>,
    seen: u64,
    unread: u64,
}

impl First {
    fn new(wanted: usize) -> Self {
        Self { wanted, each: Vec::new(), seen: 0, unread: 0 }
    }

    fn add(&mut self, payload: &Payload) {
        self.seen += 1;
        self.unread += payload.unread() as u64;
        self.each.push(payload.clone());
        if self.each.len() >= 2 * self.wanted.max(64) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.each.sort_by_key(|payload| (payload.time, payload.thread));
        self.each.truncate(self.wanted);
    }

    fn merge(&mut self, other: Self) {
        self.seen += other.seen;
        self.unread += other.unread;
        self.each.extend(other.each);
        self.cut();
    }
}

/// The values of calls.
#[derive(Debug)]
pub(crate) struct Values {
    /// For each of the slowest calls: its own payload, and the payloads inside it.
    own: Vec<Option<Payload>>,
    inside: Vec<First>,
    first: First,
    /// As [`lost_payloads`].
    pub(crate) lost: u64,
}

impl Values {
    fn new(found: &[SlowCall], top: usize) -> Self {
        Self {
            own: vec![None; found.len()],
            inside: found.iter().map(|_| First::new(INSIDE)).collect(),
            first: First::new(top),
            lost: 0,
        }
    }

    fn add(&mut self, payload: &Payload, around: &Around) {
        self.first.add(payload);
        let time = payload.time.0;
        around.each(payload.thread, time, |slow| {
            match time == slow.start && slow.function == payload.function {
                true => self.own[slow.place] = Some(payload.clone()),
                false => self.inside[slow.place].add(payload),
            }
        });
    }

    fn merge(&mut self, other: Self) {
        for (own, other) in self.own.iter_mut().zip(other.own) {
            *own = own.take().or(other);
        }
        self.inside.iter_mut().zip(other.inside).for_each(|(inside, other)| inside.merge(other));
        self.first.merge(other.first);
        self.lost = self.lost.saturating_add(other.lost);
    }
}

/// Collects the values of the calls that count.
pub(crate) fn values(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    found: &[SlowCall],
    top: usize,
) -> Values {
    let around = Around::new(found, lens.paths.nodes());
    let parts = each_part(chunks, |entries| {
        let mut values = Values::new(found, top);
        let mut selected = CallReader::new(recording, lens, counted);
        values.lost = each_payload(&mut selected, entries, |it, _| values.add(it, &around));
        values
    });
    let mut all = Values::new(found, top);
    parts.into_iter().for_each(|part| all.merge(part));
    all.first.cut();
    all.inside.iter_mut().for_each(First::cut);
    all
}

/// Shows the payloads of calls that count, with their calls. Returns the number of missing ones, as
/// [`lost_payloads`].
pub(super) fn each_payload(
    selected: &mut CallReader<'_>,
    chunks: &[ChunkEntry],
    mut show: impl FnMut(&Payload, Call),
) -> u64 {
    let lens = selected.lens;
    let chunks = chunks.iter().take_while(|_| !lens.is_stopped());
    let lost = chunks.map(|entry| payloads_in(selected, entry, false, &mut show).0);
    lost.fold(0, u64::saturating_add)
}

/// Does the same for one chunk. Also returns the chunk's losses if it can be read; one without values
/// is read only if they are `wanted`.
pub(super) fn payloads_in(
    selected: &mut CallReader<'_>,
    entry: &ChunkEntry,
    wanted: bool,
    show: impl FnMut(&Payload, Call),
) -> (u64, Option<ChunkLoss>) {
    let payloads = selected.recording.payloads(entry);
    payloads_among(selected, entry, payloads, wanted, show)
}

/// Does the same with the payloads of the chunk, which have been read.
pub(super) fn payloads_among(
    selected: &mut CallReader<'_>,
    entry: &ChunkEntry,
    payloads: Result<Payloads, RecordError>,
    wanted: bool,
    mut show: impl FnMut(&Payload, Call),
) -> (u64, Option<ChunkLoss>) {
    let lens = selected.lens;
    let nodes = lens.paths.nodes();
    let is_in_window = lens.is_in_window(entry.to.0);
    let lost = payloads.as_ref().map_or(1, |payloads| payloads.lost);
    let lost = if is_in_window { lost } else { 0 };
    let payloads = payloads.unwrap_or_default().each;
    if payloads.is_empty() && !wanted {
        return (lost, None);
    }
    let mut by_call: BTreeMap<(ThreadId, u64, FuncId), Payload> = BTreeMap::new();
    for payload in payloads {
        by_call.insert((payload.thread, payload.time.0, payload.function), payload);
    }
    let Some(chunk) = selected.read(entry) else { return (lost, None) };
    if by_call.is_empty() {
        return (lost, Some(chunk.loss));
    }
    for thread in chunk.threads() {
        selected.calls(&chunk, thread, |call, node| {
            let key = (thread.thread, call.start, nodes[node as usize].func);
            if let Some(payload) = by_call.remove(&key) {
                show(&payload, call);
            }
        });
    }
    (lost, Some(chunk.loss))
}

/// Returns the number of missing payloads: those lost, and one for each block that cannot be read.
/// It decodes no values.
pub(crate) fn lost_payloads(recording: &Recording, lens: &Lens<'_>, chunks: &[ChunkEntry]) -> u64 {
    if !recording.has_values() {
        return 0;
    }
    let parts = each_part(chunks, |entries| {
        let entries = entries.iter().take_while(|_| !lens.is_stopped());
        let of_window = entries.filter(|entry| lens.is_in_window(entry.to.0));
        let lost = of_window.map(|entry| recording.payloads_lost(entry));
        lost.fold(0, u64::saturating_add)
    });
    parts.into_iter().fold(0, u64::saturating_add)
}

/// Makes the reports of the slowest calls' values, in order, and of the first values of all.
pub(crate) fn reports(
    recording: &Recording,
    values: Values,
) -> (Vec<(NamedValues, PointsReport)>, PointsReport) {
    let Values { own, inside, first, .. } = values;
    let of_calls = own.iter().zip(inside).map(|(own, inside)| {
        let own = own.as_ref().map(|payload| recording.named_values(payload));
        (own.unwrap_or_default(), points(recording, inside))
    });
    (of_calls.collect(), points(recording, first))
}

fn points(recording: &Recording, first: First) -> PointsReport {
    let (more, unread) = (first.seen - first.each.len() as u64, first.unread);
    let first = first.each.iter().map(|payload| {
        let thread = recording.thread(payload.thread);
        PointReport {
            function: payload.function.index(),
            name: recording.functions()[payload.function.index()].name.clone(),
            pid: thread.map(|thread| thread.pid),
            tid: thread.map(|thread| thread.tid),
            thread: thread.map(|thread| thread.name.clone()),
            start_ns: payload.time,
            values: recording.named_values(payload),
        }
    });
    PointsReport { first: first.collect(), more, unread }
}
