//! The state of one session: kernel, engine, armed probes, and the destination of the reports.

mod addresses;
mod admitted;
mod after;
mod already_running;
mod answering;
mod arming;
mod budget;
mod budgeted;
mod children;
mod clock;
mod conditions;
mod counts;
mod dear;
mod delivery;
mod family;
mod guarding;
mod holding;
mod joined_clocks;
mod joining;
mod late;
mod left_out;
mod markers;
mod notes;
mod processes;
mod progress;
mod pythons;
mod queue_times;
mod recording;
mod reports;
mod returns;
mod rounds;
mod scene;
mod start;
mod target;
mod times_by_kind;
mod watch;

pub(crate) use arming::Arming;
pub(crate) use dear::dear_at_start;
pub(crate) use delivery::Delivery;
pub(crate) use rounds::Rounds;
pub(crate) use target::TracedTarget;

use super::status::Status;
use crate::{
    bpf::{self, GuardDeath, Kernel, Traced},
    session::collect::reader::{Batch, HOLD, Reader, Waiting},
    target::{
        process::{Process, facts},
        select::awaits::Awaits,
    },
    ui::{self, notes::untraced_children, output::slow::Slow},
};
use addresses::Naming;
use answering::Answering;
use anyhow::Context;
use ctrace_core::{
    engine::{Engine, ProcessChange},
    report::TargetExit,
    units::{Nanos, Pid, Tid},
};
use markers::MarkerProbes;
use notes::Notes;
use progress::ProgressNews;
use std::{
    ops::Range,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};

pub(crate) struct Session {
    kernel: Kernel,
    engine: Engine,
    target: TracedTarget,
    arming: Arming,
    markers: MarkerProbes,
    delivery: Delivery,
    rounds: Rounds,
    status: Status,
    notes: Notes,
    progress: ProgressNews,
    naming: Naming,
    answering: Answering,
}

/// The room that the kernel keeps free below the main stack for it to grow.
const MAIN_STACK_ROOM: u64 = 128 << 20;

impl Session {
    pub(crate) fn new(
        kernel: Kernel,
        engine: Engine,
        target: TracedTarget,
        arming: Arming,
        delivery: Delivery,
        rounds: Rounds,
        status: Status,
    ) -> Self {
        let naming = Naming::within(arming.planner.object_limits());
        Self {
            kernel,
            engine,
            target,
            arming,
            markers: MarkerProbes::new(),
            delivery,
            rounds,
            status,
            notes: Notes::default(),
            progress: ProgressNews::default(),
            naming,
            answering: Answering::default(),
        }
    }

    /// Tells the engine the program, thread names and stacks of a process that runs already.
    pub(crate) fn introduce(&mut self, process: &Process) {
        if let Some(program) = process.exe().file_name() {
            self.engine.name_program(Pid(process.pid()), &program.to_string_lossy());
        }
        self.name_group(Pid(process.pid()));
        for thread in process.threads() {
            self.engine.name_thread(Pid(process.pid()), Tid(thread.tid), &thread.name);
        }
        self.map_stacks(process);
    }

    fn name_group(&mut self, pid: Pid) {
        if let Some(group) = facts::known_control_group_of(pid) {
            self.engine.name_group(pid, &group);
        }
    }

    fn map_stacks(&mut self, process: &Process) {
        let regions = process.stack_regions().unwrap_or_default();
        let stacks = regions.into_iter().map(|region| {
            let Range { mut start, end } = region.addresses;
            if region.name == "[stack]" {
                start = start.min(end.saturating_sub(MAIN_STACK_ROOM));
            }
            start..end
        });
        self.engine.set_stack_regions(Pid(process.pid()), stacks);
    }

    /// Returns the time at which calls began to count.
    pub(crate) fn start(&self) -> Nanos {
        self.progress.start
    }

    /// Returns the processes that are traced.
    pub(crate) fn traced(&self) -> Traced {
        self.kernel.traced()
    }

    /// Returns a handle that tells when the guard has died and all probes are gone.
    pub(crate) fn guard_death(&self) -> GuardDeath {
        self.kernel.guard_death()
    }

    /// Returns the processes in which a thread has loaded a library, and is held.
    pub(crate) fn loads(&self) -> Option<UnboundedReceiver<Pid>> {
        self.kernel.loads()
    }

    /// Adds a note for the last report.
    pub(crate) fn note_that_probes_are_gone(&mut self) {
        let after = self.progress.seconds();
        self.notes.add_in_any_case(format!(
            "all probes were removed {after:.3} s after the start, because ctrace's guard process was \
             killed: later calls are not counted"
        ));
    }

    /// True if the flight recorder waits for slow calls of functions that are not traced.
    pub(crate) fn watches_in_vain(&self) -> bool {
        self.delivery.watches_in_vain(self.engine.functions())
    }

    /// Notes that the target is gone. The record that tells it may be lost.
    pub(crate) fn target_ended(&mut self, exit: Option<TargetExit>) {
        self.target.ended(exit);
    }

    /// Returns an error for the user if what is asked for was awaited, and nothing had it.
    pub(crate) fn found_nothing(&self) -> Option<String> {
        let (wanted, awaits) = self.arming.planner.awaited()?;
        self.engine.functions().is_empty().then(|| {
            let (reason, looked_in) = (awaits.reason(), awaits.looked_in());
            let elsewhere = match awaits {
                Awaits::Loaded => untraced_children(self.target.report.untraced_children),
                Awaits::Started => None,
            };
            let elsewhere = elsewhere.map_or_else(String::new, |line| format!("; {line}"));
            format!(
                "nothing was traced: {reason}{wanted} was awaited until the end, \
                 {looked_in}{elsewhere}"
            )
        })
    }

    /// Returns whether followed processes are left of a target that has ended. Then a note tells it.
    pub(crate) fn goes_on_with_followed(&mut self) -> bool {
        let is_left = !self.has_lost_all();
        if is_left {
            let (Pid(pid), after) = (self.target.pid, self.progress.seconds());
            let others = match self.target.joined.is_awaited() {
                true => "others were traced on, and awaited",
                false => "the processes that it had started were followed on",
            };
            let note = format!("process {pid} ended {after:.3} s after the start; {others}");
            self.notes.add_in_any_case(note);
        }
        is_left
    }

    /// Returns whether no followed process is left of a target that has ended, and none is awaited.
    pub(crate) fn has_lost_all(&self) -> bool {
        let Self { kernel, target, .. } = self;
        !target.joined.is_awaited()
            && (!target.clock.follows() || !kernel.traced().has_others(target.pid))
    }

    /// Leaves the terminal to the command that is about to begin.
    pub(crate) fn make_way(&mut self) {
        self.status.make_way();
    }

    /// Says what is done from now on until the result is dropped, if that takes long.
    pub(crate) fn slow(&self, what: &str) -> Slow {
        self.status.slow(what)
    }

    pub(crate) fn set_time_limit(&mut self, limit: Option<Duration>) {
        self.status.set_limit(limit);
    }

    /// Called near the end: new programs of a launched command start at once, without probes.
    pub(crate) fn stop_holding(&mut self) -> anyhow::Result<()> {
        self.progress.finishing = true;
        self.target.holding.until = bpf::now();
        if self.target.launched {
            self.kernel.trace_process(self.target.pid)?;
        }
        Ok(())
    }

    /// Starts to read the records of the probes.
    pub(crate) fn read(&mut self) -> anyhow::Result<(Reader, Receiver<Batch>)> {
        let adopted = self.markers.take_adopted().context("there is a reader already")?;
        let pace = self.rounds.pace;
        let news = self.kernel.news()?;
        let rings = self.kernel.rings()?;
        let intervals = self.delivery.intervals();
        // Counts wait for nobody: a report has those up to the moment at which it is made.
        let hold = if self.kernel.counts().is_some() { Nanos::ZERO } else { HOLD };
        Reader::start(rings, adopted, news, pace, Waiting { intervals, hold })
            .context("cannot start a thread")
    }

    /// Takes in a batch, and reports if an interval is complete. Returns `false` if nobody reads
    /// the reports any more.
    pub(crate) fn feed(&mut self, batch: &mut Batch) -> anyhow::Result<bool> {
        for event in batch.changes.drain(..) {
            self.name_executed(&event);
            self.release_if_held(&event);
            self.engine.push_change(event);
        }
        for (ring, events) in batch.events() {
            self.engine.push_events(ring, events);
        }
        batch.payloads.drain(..).for_each(|payload| self.engine.push_payload(payload));
        self.engine.count_malformed(batch.malformed);
        batch.unread.drain(..).for_each(|(pid, why)| self.leave_unread(pid, why));
        batch.readings.drain(..).for_each(|reading| self.engine.markers().read(reading));
        if let Some((sample, through)) = batch.sample {
            // Count losses while their buffers are known: this sample may end some of the buffers.
            self.count_losses()?;
            self.engine.sample_clocks(sample, through);
        }
        let Some(settled) = batch.settled else { return Ok(true) };
        let mut read = true;
        self.take_held_if_due(settled);
        while let Some(due) = self.delivery.due(settled) {
            self.engine.advance(due);
            let end = self.end_of_report(due);
            read &= self.report_interval(end)?;
            self.delivery.made(due, end);
        }
        self.engine.advance(settled);
        self.progress.settled = settled;
        self.read_counts_if_due();
        self.move_restored();
        self.tend_budget();
        let goes_on = self.record(settled)? && read;
        Ok(self.answer(settled)? && goes_on)
    }

    /// Takes the changes of processes and returns the processes that run a new program.
    fn take_changes(&mut self) -> Vec<Pid> {
        let mut execed = Vec::new();
        for change in self.engine.take_process_changes() {
            match change {
                ProcessChange::Exec { pid, name, by } => {
                    if !self.take_in(pid, &name) {
                        continue;
                    }
                    // The kernel binds links to the first thread, and this one has replaced it.
                    if by.0 != pid.0 && self.arming.links.pid.is_some() {
                        self.note(format!(
                            "thread {} of process {} executed another program, which ended the \
                             probes in what was loaded before; --follow keeps them",
                            by.0, pid.0
                        ));
                    }
                    execed.push(pid);
                }
                ProcessChange::Fork { child, .. } if self.arming.links.pid.is_some() => {
                    self.target.report.untraced_children += 1;
                    self.target.children.add(child);
                }
                ProcessChange::Fork { parent, child, at } => self.take_child(parent, child, at),
                // Another process has its id by now, or it was turned away and has joined.
                ProcessChange::Exit { pid, .. } if self.kernel.traced().has(pid) => {}
                ProcessChange::Exit { pid, status } => self.target.process_ended(pid, status),
            }
        }
        execed
    }

    /// Adds a note to the reports, of a kind that may come often.
    fn note(&mut self, text: String) {
        self.notes.add(text);
    }

    fn warn(&self, text: &str) {
        ui::say(text);
    }

    pub(crate) fn detaches_fast(&self) -> bool {
        self.arming.detaches_fast()
    }

    /// Takes the probes away, except those through which markers deliver the rest of their events.
    /// Threads that have loaded a library are held until the guards are gone, too, and what is
    /// written from now on may wait long for its reader.
    pub(crate) fn detach_sources(&mut self) {
        self.arming.detach_sources();
        self.end_guards();
    }

    /// Takes all probes away. The guard does the same if ctrace ends in any other way.
    pub(crate) fn detach(&mut self) {
        self.arming.detach();
        self.end_guards();
    }

    /// Puts return addresses back, and takes the guards away. No return probes are in place any more.
    /// Signals are guarded also where no file has a place to guard.
    fn end_guards(&mut self) {
        if self.arming.guarding.begin_to_end() {
            self.restore_open_frames();
            self.arming.detach_guards();
        }
    }

    /// Puts the return addresses of open calls back, when all return probes are gone.
    fn restore_open_frames(&self) {
        let left = self.kernel.restore_open_frames();
        if left > 0 {
            self.warn(&format!(
                "{left} return addresses of the target could not be put back: it must not unwind \
                 through these calls"
            ));
        }
    }
}

/// After an error, too, return addresses are put back before the guards go.
impl Drop for Session {
    fn drop(&mut self) {
        self.detach();
    }
}

pub(crate) fn nanos(duration: Duration) -> Nanos {
    Nanos(duration.as_nanos() as u64)
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
