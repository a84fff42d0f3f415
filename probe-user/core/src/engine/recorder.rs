//! Turns the engine's data into blocks: names and paths as they occur, and the spooled calls as a
//! chunk whenever there are enough.

use crate::calls::spool::Taken;
use crate::engine::Engine;
use crate::engine::threads::ThreadName;
use crate::engine::tracker::Tracker;
use crate::function::{FunctionInfo, ProbeCost};
use crate::recording::payloads;
use crate::recording::{
    AddressRecord, Block, BlockKind, CHUNK_CALLS, ChunkLoss, CostRecord, Harvest, Names,
    ObjectRecord, OpenCall, Slow, SlowWatch, ThreadRecord, put_varint as put,
};
use crate::units::{FuncId, Nanos, ThreadId};

/// The extent of the blocks made so far.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    blocks: Vec<Block>,
    from: u64,
    calls: u64,
    functions: usize,
    nodes: usize,
    objects: Vec<ObjectRecord>,
    costs: Vec<CostRecord>,
    addresses: Vec<AddressRecord>,
    headless: Vec<u64>,
    loss: ChunkLoss,
    /// The kernel's count, as far as the session knows it.
    pub(crate) lost_events: u64,
    pub(crate) watch: SlowWatch,
    /// True if chunks also have the values of open calls.
    open_values: bool,
}

impl Recorder {
    pub(crate) fn new(open_values: bool) -> Self {
        Self { open_values, ..Self::default() }
    }

    pub(crate) fn add_object(&mut self, object: ObjectRecord) {
        if !self.objects.contains(&object) {
            self.objects.push(object);
        }
    }

    pub(crate) fn name_addresses(&mut self, names: Vec<AddressRecord>) {
        self.addresses.extend(names);
    }

    pub(crate) fn add_cost(&mut self, function: FuncId, probe: Option<ProbeCost>) {
        // A function that is not written yet has the new cost already.
        if function.index() < self.functions {
            self.costs.extend(probe.map(|cost| CostRecord { function, cost }));
        }
    }

    /// Sets the start of the first chunk, and of a period with its counts of events.
    pub(crate) fn begin(&mut self, start: u64) {
        self.from = start;
        (self.loss.late, self.loss.decode_errors) = (0, 0);
    }

    /// Resets the counts that belong to a period.
    pub(crate) fn begin_period(&mut self) {
        self.loss = ChunkLoss { events: self.loss.events, ..ChunkLoss::default() };
        self.headless.clear();
    }

    pub(crate) fn take_slow(&mut self) -> Option<Slow> {
        self.watch.take()
    }

    pub(crate) fn take_blocks(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.blocks)
    }
}

impl Engine {
    /// Makes [`Self::take_slow`] report calls of wanted functions that take at least this long. It
    /// must be called again when functions were added.
    pub fn watch_slow(&mut self, threshold: Nanos, is_wanted: impl Fn(&FunctionInfo) -> bool) {
        if let Some(recorder) = &mut self.tracker.recorder {
            let wanted = self.tracker.functions.iter().map(is_wanted).collect();
            recorder.watch.set(threshold, wanted);
        }
    }

    /// Returns the longest of the slow calls in the chunks made since the last time, and its
    /// function.
    pub fn take_slow(&mut self) -> Option<(Slow, &FunctionInfo)> {
        let slow = self.tracker.recorder.as_mut()?.take_slow()?;
        Some((slow, self.tracker.functions.get(slow.function.index())?))
    }
}

impl Tracker {
    /// Makes a chunk if there are enough calls for one, or enough texts beside them.
    #[inline]
    pub(crate) fn record_when_due(&mut self) {
        let calls = self.ledger.calls;
        let is_full = self.payloads.are_full();
        if self
            .recorder
            .as_ref()
            .is_some_and(|r| is_full || calls.saturating_sub(r.calls) >= CHUNK_CALLS as u64)
        {
            self.record(self.now);
        }
    }

    /// Makes a chunk of everything up to `to`. All events up to there must have been seen.
    pub(crate) fn record(&mut self, to: u64) {
        let Some(mut recorder) = self.recorder.take() else { return };
        self.record_names(&mut recorder);
        self.record_paths(&mut recorder);
        self.record_calls(&mut recorder, to);
        self.recorder = Some(recorder);
    }

    fn record_names(&mut self, recorder: &mut Recorder) {
        let named = self.threads.take_names().into_iter();
        let (programs, groups) = (&self.threads.programs, &self.threads.groups);
        let threads = named.map(|ThreadName { id, pid, tid, name, beside, end }| {
            let work_ns = end.as_ref().map(|end| end.work);
            let (program, cgroup) = match end {
                Some(end) => (end.program, end.cgroup),
                None => (programs.of(pid), groups.of(pid)),
            };
            ThreadRecord { id, pid, tid, name, program, cgroup, beside, work_ns }
        });
        let names = Names {
            functions: self.functions[recorder.functions..].to_vec(),
            threads: threads.collect(),
            objects: std::mem::take(&mut recorder.objects),
            costs: std::mem::take(&mut recorder.costs),
            addresses: std::mem::take(&mut recorder.addresses),
        };
        recorder.functions = self.functions.len();
        recorder.blocks.extend(names.to_blocks().unwrap_or_default());
    }

    fn record_paths(&self, recorder: &mut Recorder) {
        let nodes = self.ledger.paths.nodes();
        let mut out = Vec::new();
        for node in &nodes[recorder.nodes.max(1)..] {
            put(&mut out, node.parent.into());
            put(&mut out, u64::from(node.func.0) << 1 | u64::from(node.other));
        }
        recorder.nodes = nodes.len();
        if !out.is_empty() {
            recorder.blocks.push(Block::new(BlockKind::Paths, out));
        }
    }

    fn record_calls(&mut self, recorder: &mut Recorder, to: u64) {
        let to = to.max(recorder.from);
        let loss = ChunkLoss {
            events: recorder.lost_events,
            late: self.period.late,
            decode_errors: self.period.decode_errors,
            filtered: self.ledger.filtered,
        };
        let before = std::mem::replace(&mut recorder.loss, loss);
        let loss = ChunkLoss {
            events: loss.events.wrapping_sub(before.events),
            late: loss.late.saturating_sub(before.late),
            decode_errors: loss.decode_errors.saturating_sub(before.decode_errors),
            filtered: loss.filtered.saturating_sub(before.filtered),
        };
        let mut harvest = Harvest::new(recorder.from..to, loss);
        recorder.headless.resize(self.functions.len(), 0);
        for (index, counts) in self.ledger.functions.iter().enumerate() {
            let before = std::mem::replace(&mut recorder.headless[index], counts.headless);
            if counts.headless > before {
                harvest.headless.push((FuncId(index as u32), counts.headless - before));
            }
        }
        let mut open = self.open_by_thread();
        let spool = self.ledger.recorded();
        let cut = spool.cut(0);
        for calls in spool.take_before(&cut) {
            let thread = calls.owner();
            let at = open.binary_search_by_key(&thread, |(thread, _)| *thread);
            let open = at.map(|at| std::mem::take(&mut open[at].1)).unwrap_or_default();
            harvest.add(thread, calls, open);
        }
        for (thread, open) in open {
            harvest.add(thread, Taken::default(), open);
        }
        recorder.watch.look(&harvest, self.ledger.paths.nodes());
        (recorder.from, recorder.calls) = (to, self.ledger.calls);
        let mut payloads = self.payloads.take_ended(self.threads.iter());
        // A thread that waits for a lock, or for a condition with one, may wait for ever.
        let is_shown = |function| recorder.open_values || self.addresses.are_of(function);
        self.payloads.add_open(&mut payloads, is_shown);
        let lost = self.payloads.take_lost();
        let payloads = payloads::encode(payloads, lost, to, &self.functions);
        recorder.blocks.push(Block::of_calls(harvest, self.threads.take_ended(), payloads));
    }

    /// Returns open calls by thread, in order of thread ids.
    fn open_by_thread(&self) -> Vec<(ThreadId, Vec<OpenCall>)> {
        let open = self.threads.iter().map(|thread| {
            let open = thread.stacks.open().into_iter();
            let open = open.map(|f| OpenCall { start: Nanos(f.start), path: f.node });
            (thread.stacks.account.thread(), open.collect::<Vec<_>>())
        });
        let mut open: Vec<_> = open.filter(|(_, open)| !open.is_empty()).collect();
        open.sort_by_key(|(thread, _)| *thread);
        open
    }
}
