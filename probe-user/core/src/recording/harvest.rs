//! A chunk as it comes off the spool. It is packed when it is written: mostly by another thread
//! than the one that traces.

use super::chunk::{ChunkLoss, OpenCall};
use super::varint::put;
use crate::calls::spool::{Call, Taken};
use crate::units::{FuncId, ThreadId};
use std::ops::Range;

/// A chunk to be written; reading it gives a [`Chunk`](super::Chunk).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Harvest {
    pub(crate) window: Range<u64>,
    pub(crate) loss: ChunkLoss,
    pub(crate) headless: Vec<(FuncId, u64)>,
    threads: Vec<(ThreadId, Taken, Vec<OpenCall>)>,
}

impl Harvest {
    pub(crate) fn new(window: Range<u64>, loss: ChunkLoss) -> Self {
        Self { window, loss, ..Self::default() }
    }

    /// Adds a thread, unless it has neither finished nor open calls.
    pub(crate) fn add(&mut self, thread: ThreadId, calls: Taken, open: Vec<OpenCall>) {
        if calls.len() > 0 || !open.is_empty() {
            self.threads.push((thread, calls, open));
        }
    }

    pub(crate) fn threads(&self) -> impl Iterator<Item = ThreadId> {
        self.threads.iter().map(|(thread, ..)| *thread)
    }

    /// Returns the number of calls that ended in it.
    pub(crate) fn len(&self) -> usize {
        self.threads.iter().map(|(_, calls, _)| calls.len()).sum()
    }

    /// Returns the calls, latest first within a thread.
    pub(crate) fn calls(&self) -> impl Iterator<Item = Call> {
        self.threads.iter().flat_map(|(_, calls, _)| calls.backward())
    }

    /// Returns the contents of the block, before compression.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let calls = self.len();
        let mut out = Vec::with_capacity(64 + 5 * calls);
        let ChunkLoss { events, late, decode_errors, filtered } = self.loss;
        let length = self.window.end.saturating_sub(self.window.start);
        let numbers = [self.window.start, length, events, late, decode_errors, filtered];
        numbers.into_iter().for_each(|number| put(&mut out, number));
        put(&mut out, self.headless.len() as u64);
        for (function, count) in &self.headless {
            put(&mut out, function.0.into());
            put(&mut out, *count);
        }
        put(&mut out, self.threads.len() as u64);
        let mut columns = [(); 3].map(|()| Vec::with_capacity(2 * calls));
        let [distances, durations, tags] = &mut columns;
        for (thread, calls, open) in &self.threads {
            put(&mut out, thread.0.into());
            put(&mut out, calls.len() as u64);
            put(&mut out, open.len() as u64);
            for open in open {
                put(&mut out, self.window.end.wrapping_sub(open.start.0));
                put(&mut out, open.path.into());
            }
            let mut end = self.window.end;
            for call in calls.backward() {
                let ended = call.start.wrapping_add(call.duration);
                put(distances, end.wrapping_sub(ended));
                put(durations, call.duration);
                put(tags, u64::from(call.node) << 1 | u64::from(call.timed));
                end = ended;
            }
        }
        for column in &columns {
            put(&mut out, column.len() as u64);
            out.extend_from_slice(column);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::Chunk;
    use super::*;
    use crate::calls::spool::{LogId, Spool};
    use crate::units::Nanos;
    use proptest::prelude::*;

    const PATHS: usize = 300;

    fn call() -> impl Strategy<Value = crate::calls::spool::Call> {
        let time = || prop_oneof![0u64..5_000, any::<u64>()];
        (time(), time(), 1..PATHS as u32, any::<bool>()).prop_map(
            |(start, duration, node, timed)| crate::calls::spool::Call {
                start,
                duration,
                node,
                timed,
            },
        )
    }

    fn open() -> impl Strategy<Value = OpenCall> {
        (any::<u64>(), 1..PATHS as u32)
            .prop_map(|(start, path)| OpenCall { start: Nanos(start), path })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_chunk_comes_back(
            from in any::<u64>(),
            length in 0u64..1_000_000_000,
            loss in any::<[u64; 4]>(),
            headless in prop::collection::vec((0u32..9, any::<u64>()), 0..4),
            threads in prop::collection::vec((
                any::<u32>(),
                prop::collection::vec(call(), 0..20),
                prop::collection::vec(open(), 0..4),
            ), 0..5),
        ) {
            let [events, late, decode_errors, filtered] = loss;
            let mut harvest = Harvest {
                window: from..from.saturating_add(length),
                loss: ChunkLoss { events, late, decode_errors, filtered },
                headless: headless.into_iter().map(|(f, n)| (FuncId(f), n)).collect(),
                threads: Vec::new(),
            };
            let mut chunk = Chunk::new(harvest.window.clone());
            (chunk.loss, chunk.headless) = (harvest.loss, harvest.headless.clone());
            for (thread, calls, open) in threads {
                let (mut spool, mut log) = (Spool::new(usize::MAX), LogId::of(ThreadId(thread)));
                calls.iter().for_each(|&call| spool.push(&mut log, call));
                let cut = spool.cut(0);
                let taken = spool.take_before(&cut).pop().unwrap_or_default();
                harvest.add(ThreadId(thread), taken, open.clone());
                chunk.push(ThreadId(thread), calls.into_iter().rev(), open);
            }
            let bytes = harvest.encode();
            let back = Chunk::decode(&bytes, PATHS, 9);
            prop_assert_eq!(&back.map_err(|error| error.to_string()), &Ok(chunk.clone()));
            // Any truncation, and ids beyond the known ones, are errors.
            for cut in 0..bytes.len() {
                prop_assert!(Chunk::decode(&bytes[..cut], PATHS, 9).is_err());
            }
            prop_assert!(chunk.is_empty() || Chunk::decode(&bytes, 1, 9).is_err());
        }

        #[test]
        fn any_bytes_give_a_chunk_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Chunk::decode(&bytes, PATHS, 9);
        }
    }
}
