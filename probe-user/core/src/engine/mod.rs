//! The engine as a session sees it: records in, reports out.

mod addresses;
mod arrived;
mod async_calls;
mod by_process;
mod call_names;
pub(crate) mod counted;
mod counters;
mod exits;
mod fold;
mod lanes;
pub(crate) mod ledger;
mod left_out;
#[cfg(test)]
mod loss_tests;
mod mixed;
mod names;
pub(crate) mod payloads;
mod period;
mod process;
mod programs;
mod recorder;
mod region;
mod requests;
mod slow;
mod snapshot;
mod stack;
mod threads;
pub(crate) mod tracker;
mod waits;
mod wakers;

use crate::calls::paths::Paths;
use crate::calls::spool::Spool;
use crate::engine::exits::ExitChange;
use crate::engine::lanes::MarkerLanes;
use crate::engine::ledger::Ledger;
use crate::engine::names::LateNames;
use crate::engine::period::Period;
use crate::engine::recorder::Recorder;
use crate::engine::requests::Requests;
use crate::engine::tracker::Tracker;
use crate::engine::wakers::Wakers;
use crate::filter::Filter;
use crate::function::{FunctionInfo, FunctionKind};
use crate::ingest::event::Event;
use crate::ingest::order::EventOrder;
use crate::ingest::{
    change::ProcessEvent,
    decode::{Decoded, decode},
};
use crate::marker::{ClockSample, Markers, Request};
use crate::recording::{Block, ObjectRecord};
use crate::report::Report;
pub use crate::report::ReportMeta;
use crate::units::{FuncId, Nanos, Pid, Tid};
use crate::values::RingPayload;
use crate::waits::Wait;
pub use addresses::{LeftAddresses, NewAddresses};
pub use counted::{CountedApart, CountedCalls, CountedPart, CountedParts};
pub use counted::{CountedSums, ValuedCalls};
pub use counters::Counters;
use ctrace_common::Change;
pub use left_out::{HeldCall, LeftOut};
use std::collections::{HashSet, VecDeque};
use std::ops::Range;
pub use {exits::NewExit, process::ProcessChange, waits::HiddenSwitches};

/// Bounds and choices, fixed for a trace.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Memory for single calls, including what a report needs to rank them.
    pub spool_bytes: usize,
    /// The number of call paths that are kept apart.
    pub max_paths: usize,
    /// The number of frames of a path that are kept apart.
    pub max_path_depth: usize,
    pub filter: Filter,
    /// True if calls that are too deep for the filter may come without their events.
    pub thrifty: bool,
    /// True if entries may come late, once their calls have lasted long enough for the filter.
    pub holds: bool,
    /// True if children of traced processes are traced, too.
    pub follow: bool,
    /// The number of ring buffers that records come from.
    pub rings: usize,
    /// The time at which tracing was armed.
    pub start: Nanos,
    /// True if calls are for [`Engine::take_blocks`], not for a report.
    pub record: bool,
    /// True if calls are for both.
    pub keep: bool,
    /// True if a chunk also has the values of calls that are open at its end. They come again with
    /// the chunk in which these calls end, so this is for readers that show open calls.
    pub open_values: bool,
    /// True if waits of threads are among the records.
    pub waits: bool,
    /// True if who ends them is, too. That is a value of theirs, so it is for recordings only.
    pub wakers: bool,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            spool_bytes: 256 << 20,
            max_paths: 16_384,
            max_path_depth: 512,
            filter: Filter::default(),
            thrifty: false,
            holds: false,
            follow: false,
            rings: 1,
            start: Nanos::ZERO,
            record: false,
            keep: false,
            open_values: false,
            waits: false,
            wakers: false,
        }
    }
}

/// Makes reports from the records of all rings. The crate's documentation shows the way.
#[derive(Debug)]
pub struct Engine {
    order: EventOrder,
    pub(crate) tracker: Tracker,
    markers: Markers,
    names: LateNames,
    requests: Requests,
    /// The number of the kernel's rings. Events of the marker buffers come in lanes after them.
    rings: usize,
    /// Those to come, in order of time.
    exit_changes: VecDeque<ExitChange>,
    /// By function: the calls without events that are taken in.
    left_out: Vec<LeftOut>,
    lost_events: u64,
    lost_marks: u64,
}

impl Engine {
    pub fn new(config: EngineConfig) -> Self {
        let paths = Paths::new(config.max_paths, config.max_path_depth);
        let mut ledger = Ledger::new(paths, Spool::new(config.spool_bytes), config.filter);
        (ledger.thrifty, ledger.holds) = (config.thrifty, config.holds);
        let mut tracker = Tracker::new(ledger, config.start.0, config.follow);
        tracker.wakers = config.wakers.then(Wakers::default);
        if config.waits {
            // It tells a reader of the report that waits are told apart, even if there are none.
            tracker.wait(Wait::Runnable);
        }
        if config.record || config.keep {
            tracker.ledger.kept = config.keep.then(|| Spool::new(usize::MAX));
            tracker.recorder = Some(Recorder::new(config.open_values));
            tracker.threads.keep_names();
            tracker.begin(config.start.0);
        }
        Self {
            order: EventOrder::new(config.rings),
            tracker,
            markers: Markers::new(config.rings),
            names: LateNames::default(),
            requests: Requests::default(),
            rings: config.rings,
            exit_changes: VecDeque::new(),
            left_out: Vec::new(),
            lost_events: 0,
            lost_marks: 0,
        }
    }

    /// Sets the start of tracing, if it was not known before; older events are dropped.
    pub fn begin(&mut self, start: Nanos) {
        self.tracker.begin(start.0);
    }

    /// Adds a function. Its id is the probe id in records. Ids ascend from 0.
    pub fn add_function(&mut self, info: FunctionInfo) -> FuncId {
        self.tracker.add_function(info)
    }

    /// Says that all jumps by which this function leaves lead to these, whose calls are traced: a call that
    /// leaves by one then ends with the call of its successor ([`FunctionInfo::ends_with_successor`]).
    pub fn set_successors(&mut self, function: FuncId, successors: Vec<FuncId>) {
        self.tracker.set_successors(function, successors.into());
    }

    pub fn kind(&self, id: FuncId) -> Option<FunctionKind> {
        self.tracker.functions.get(id.index()).map(|function| function.kind)
    }

    /// Names a thread whose name no event contains.
    pub fn name_thread(&mut self, pid: Pid, tid: Tid, name: &str) {
        let Tracker { threads, ledger, .. } = &mut self.tracker;
        threads.rename(pid, tid, name, ledger);
    }

    /// Names the program that a process runs already.
    pub fn name_program(&mut self, pid: Pid, program: &str) {
        self.tracker.threads.programs.name(pid, program);
    }

    /// Names the program that a process has executed at this time, before the change is pushed. The
    /// change itself has the first 15 bytes of the name only.
    pub fn name_executed(&mut self, pid: Pid, time: Nanos, program: &str) {
        self.tracker.threads.programs.expect(pid, time, program);
    }

    /// Names the control group that a process is in. Of a very long path, the beginning counts.
    pub fn name_group(&mut self, pid: Pid, group: &str) {
        const LONGEST: usize = 512;
        let ends = group.char_indices().map(|(at, c)| at + c.len_utf8());
        let end = ends.take_while(|end| *end <= LONGEST).last().unwrap_or(0);
        self.tracker.threads.groups.set(pid, group[..end].into());
    }

    /// Sets the stacks of a process, each from the lowest address to which it may grow. They
    /// replace those known before.
    pub fn set_stack_regions(&mut self, pid: Pid, stacks: impl IntoIterator<Item = Range<u64>>) {
        self.tracker.regions.set(pid, stacks);
    }

    /// Takes events of one ring in order of arrival. They are held until [`Self::advance`] passes
    /// them.
    pub fn push_events(&mut self, ring: usize, events: &[Event]) {
        self.order.push_events(ring, events);
    }

    /// Takes a change in a process and orders it among the events and the marker buffers.
    pub fn push_change(&mut self, event: ProcessEvent) {
        if !matches!(event.change, Change::Wake { .. }) {
            self.markers.process_changed(&event);
        }
        self.order.push_change(event);
    }

    /// Takes the values of an event of the same thread, time and probe.
    pub fn push_payload(&mut self, payload: RingPayload) {
        call_names::note(&payload, &mut self.names, &mut self.tracker);
        self.order.push_payload(payload);
    }

    /// Counts records that made no sense.
    pub fn count_malformed(&mut self, records: u64) {
        self.tracker.period.decode_errors += records;
    }

    /// Takes one record of a ring, for callers that have its bytes and no reader.
    #[inline]
    pub fn push(&mut self, ring: usize, record: &[u8]) {
        match Event::from_wire(record) {
            Some(event) => self.order.push_event(ring, event),
            None => self.push_rare(ring, record),
        }
    }

    #[cold]
    fn push_rare(&mut self, ring: usize, record: &[u8]) {
        match decode(record) {
            Ok(Decoded::Event(event)) => self.order.push_event(ring, event),
            Ok(Decoded::Payload(payload)) => self.push_payload(payload),
            Ok(Decoded::Change(event)) => self.push_change(event),
            Ok(Decoded::Buffer(reading)) => self.markers.read(reading),
            Err(_) => self.count_malformed(1),
        }
    }

    /// Returns the marker buffers of all processes, and their sites.
    pub fn markers(&mut self) -> &mut Markers {
        &mut self.markers
    }

    /// Takes both clocks, read after everything that came up to `through` was pushed. The times of
    /// marker events up to there can now be computed.
    pub fn sample_clocks(&mut self, sample: ClockSample, through: Nanos) {
        let Self { order, tracker, names, requests, rings, .. } = self;
        let mut lanes = MarkerLanes { order, rings: *rings, tracker, names, requests };
        self.markers.sample(sample, through, &mut lanes);
    }

    /// Returns how often a marker buffer claimed more events than can have been written. The number
    /// of events lost with them is not known.
    pub fn implausible_counts(&self) -> u64 {
        self.markers.implausible_counts()
    }

    /// Adds an object that contains functions, for a recording.
    pub fn add_object(&mut self, object: ObjectRecord) {
        if let Some(recorder) = &mut self.tracker.recorder {
            recorder.add_object(object);
        }
    }

    /// Ends the current chunk of a recording at `to`. Events up to `to` must have been
    /// [advanced](Self::advance) over.
    pub fn end_chunk(&mut self, to: Nanos) {
        self.tell_recorder_of_losses();
        self.tracker.record(to.0);
    }

    /// Returns the blocks to write to a recording since the last time.
    pub fn take_blocks(&mut self) -> Vec<Block> {
        self.tracker.recorder.as_mut().map(Recorder::take_blocks).unwrap_or_default()
    }

    /// Takes the requests of programs, when everything before `settled` is in order: their calls until
    /// then are known.
    pub fn take_requests(&mut self, settled: Nanos) -> Vec<Request> {
        self.requests.take(settled)
    }

    /// Returns the number of requests that found no place among those that wait.
    pub fn refused_requests(&self) -> u64 {
        self.requests.refused()
    }

    /// Returns all functions that were added, by id.
    pub fn functions(&self) -> &[FunctionInfo] {
        &self.tracker.functions
    }

    /// Returns the functions that stand for names which are known only at run time, each with its marker
    /// scope or pair of USDT probes. New ones come at the end.
    pub fn late_names(&self) -> &[(FuncId, FuncId)] {
        self.names.all()
    }

    fn tell_recorder_of_losses(&mut self) {
        let lost = self.lost();
        if let Some(recorder) = &mut self.tracker.recorder {
            recorder.lost_events = lost;
        }
    }

    /// Processes every held event up to `watermark`, each thread's in order of time. Older events
    /// that come afterwards count as late.
    pub fn advance(&mut self, watermark: Nanos) {
        self.release_markers(watermark);
        self.tell_recorder_of_losses();
        self.change_due_exits(watermark);
        self.order.release(watermark.0, &mut self.tracker);
    }

    /// Ends the input. Losses and malformed data are then counted completely, even of data that is
    /// too late for the report.
    pub fn settle(&mut self) {
        self.release_markers(Nanos::MAX);
    }

    fn release_markers(&mut self, watermark: Nanos) {
        let Self { order, tracker, names, requests, rings, .. } = self;
        let mut lanes = MarkerLanes { order, rings: *rings, tracker, names, requests };
        self.markers.release(watermark, &mut lanes);
        self.tracker.period.decode_errors += self.markers.take_malformed();
    }

    /// Ends the open calls of these functions as untimed, because their probes were removed from `at` on and
    /// their ends cannot be seen. Earlier events must have been [advanced](Self::advance) over.
    pub fn forsake(&mut self, functions: &HashSet<FuncId>, at: Nanos) {
        let Tracker { threads, ledger, .. } = &mut self.tracker;
        threads.forsake(functions, at.0, ledger);
    }

    /// Returns true if a process runs a new program, among the changes to be
    /// [taken](Self::take_process_changes).
    pub fn a_program_was_executed(&self) -> bool {
        let mut changes = self.tracker.changes.iter();
        changes.any(|change| matches!(change, ProcessChange::Exec { .. }))
    }

    /// Returns the changes in processes since the last time.
    pub fn take_process_changes(&mut self) -> Vec<ProcessChange> {
        std::mem::take(&mut self.tracker.changes)
    }

    /// Sets the kernel's counts since arming: dropped events of probes, and events in dropped
    /// marker batches of unknown buffers.
    pub fn set_lost_events(&mut self, events: u64, marks: u64) {
        self.lost_events = events;
        self.lost_marks = marks;
    }

    /// Sets the kernel's count since arming of dropped payloads, whose events are there.
    pub fn set_lost_payloads(&mut self, payloads: u64) {
        self.tracker.payloads.set_lost_in_rings(payloads);
    }

    /// Returns the known number of lost events of probes.
    pub fn lost_events(&self) -> u64 {
        self.lost_events
    }

    /// Returns the number of all lost events, as far as the kernel's counts are
    /// [known](Self::set_lost_events).
    pub fn lost(&self) -> u64 {
        self.lost_events.saturating_add(self.lost_marks).saturating_add(self.markers.lost())
    }

    /// Reports everything since the start (or the last [`Self::report_interval`]), up to `end`.
    /// Events up to `end` must have been [advanced](Self::advance) over.
    pub fn report(&self, end: Nanos, meta: ReportMeta) -> Report {
        self.tracker.report(end, self.lost(), meta)
    }

    /// Reports like [`Self::report`] and begins a new period at `end`.
    pub fn report_interval(&mut self, end: Nanos, meta: ReportMeta) -> Report {
        let asked = meta.extras.slow_calls;
        let mut report = self.report(end, meta);
        report.slow_calls = self.tracker.take_slow_calls(end);
        if self.tracker.recorder.is_some() {
            // The counts of this period belong to the chunk with its calls.
            self.end_chunk(end);
        }
        if let Some(recorder) = &mut self.tracker.recorder {
            recorder.begin_period();
        }
        self.tracker.ledger.reset();
        self.tracker.threads.reset();
        self.tracker.period = Period {
            lost_before: self.lost(),
            payloads_before: self.tracker.payloads.lost(),
            ..Period::new(end.0)
        };
        self.keep_slow_calls(asked);
        report
    }
}
