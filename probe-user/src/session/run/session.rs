//! The state of one session: kernel, engine, what is armed, and where the reports go.

mod after;
mod arming;
mod budget;
mod budgeted;
mod clock;
mod holding;
mod late;
mod looking;
mod markers;
mod notes;
mod recording;
mod reports;
mod watch;

use super::{arm::LinkOptions, status::Status, unarmed::Unarmed};
use crate::{
    bpf::{self, Attachment, Diagnostics, GuardDeath, Kernel, LinkKind, Role, Traced},
    session::{
        budget::{
            costs::{Costs, HitCosts},
            slowdown::Watch,
        },
        collect::{
            pace::Pace,
            reader::{Batch, Reader},
            timetable::Intervals,
        },
        keep::{flight::Flight, output::Output},
        plan::{Identity, Planner},
    },
    target::process::Process,
    ui,
};
use anyhow::Context;
use budgeted::Budgeted;
use clock::TargetClock;
use ctrace_core::{
    engine::{Engine, ProcessChange},
    report::{TargetExit, TargetReport},
    units::{Nanos, Pid, Tid},
};
use holding::Holding;
use looking::Looks;
use markers::MarkerProbes;
use notes::Notes;
use std::{
    collections::HashSet,
    ops::Range,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::Receiver;

/// What a session is made of; see [`Session::new`].
pub(crate) struct SessionParts {
    pub kernel: Kernel,
    pub engine: Engine,
    pub planner: Planner,
    pub links: LinkOptions,
    pub output: Output,
    pub watch: Watch,
    pub costs: HitCosts,
    pub status: Status,
    pub pace: Pace,
    /// Beside reports.
    pub flight: Option<Flight>,
    /// Our own child, which may be held at the start of a program.
    pub launched: bool,
    pub pid: Pid,
    pub target: TargetReport,
}

pub(crate) struct Session {
    parts: SessionParts,
    attachments: Vec<Attachment>,
    armed: HashSet<Identity>,
    costs: Costs,
    unarmed: Unarmed,
    budget: Option<Budgeted>,
    notes: Notes,
    markers: MarkerProbes,
    /// Children that are traced as well.
    followed: HashSet<Pid>,
    start: Nanos,
    reporting: Reporting,
    /// Everything older has been seen.
    settled: Nanos,
    /// Of a recording.
    chunk_end: Nanos,
    looks: Looks,
    finishing: bool,
    /// Processes that ended before the program that they executed could be looked at: the first, and how
    /// many.
    unseen: Option<(Pid, u64)>,
    holding: Holding,
    diagnostics: Option<Diagnostics>,
    clock: TargetClock,
}

/// How far reports have come.
#[derive(Default)]
struct Reporting {
    next: Option<Nanos>,
    last: Option<Nanos>,
    /// Events of each function up to then.
    hits: Vec<u64>,
}

/// The kernel keeps this much free below the main stack for it to grow.
const MAIN_STACK_ROOM: u64 = 128 << 20;

impl Session {
    /// `budget`: percent of the target's processor time that the probes may cost.
    pub(crate) fn new(mut parts: SessionParts, budget: Option<f64>) -> Self {
        // Without them tracing works as well.
        let diagnostics = parts.kernel.diagnostics();
        let diagnostics = diagnostics.inspect_err(|error| tracing::warn!("{error}")).ok();
        let costs = Costs::new(parts.costs);
        let clock = TargetClock::new(parts.pid, parts.links.pid.is_none());
        Self {
            parts,
            budget: budget.map(Budgeted::new),
            costs,
            attachments: Vec::new(),
            armed: HashSet::new(),
            unarmed: Unarmed::default(),
            notes: Notes::default(),
            markers: MarkerProbes::new(),
            followed: HashSet::new(),
            start: Nanos::ZERO,
            reporting: Reporting::default(),
            settled: Nanos::ZERO,
            chunk_end: Nanos::ZERO,
            looks: Looks::default(),
            finishing: false,
            unseen: None,
            holding: Holding::default(),
            diagnostics,
            clock,
        }
    }

    /// Names the threads and stacks of a process that runs already.
    pub(crate) fn introduce(&mut self, process: &Process) {
        for thread in process.threads() {
            self.parts.engine.name_thread(Pid(process.pid()), Tid(thread.tid), &thread.name);
        }
        self.map_stacks(process);
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
        self.parts.engine.set_stack_regions(Pid(process.pid()), stacks);
    }

    /// When calls began to count.
    pub(crate) fn start(&self) -> Nanos {
        self.start
    }

    /// The processes that are traced.
    pub(crate) fn traced(&self) -> Traced {
        self.parts.kernel.traced()
    }

    /// What tells that all probes are gone, whatever the session wants.
    pub(crate) fn guard_death(&self) -> GuardDeath {
        self.parts.kernel.guard_death()
    }

    /// For the last report.
    pub(crate) fn note_that_probes_are_gone(&mut self) {
        let after = bpf::now().since(self.start).0 as f64 / 1e9;
        self.note(format!(
            "the probes went {after:.3} s after the start, because ctrace's guard process was killed: \
             later calls are not counted"
        ));
    }

    /// Whether the flight recorder waits for slow calls of functions that are not traced.
    pub(crate) fn watches_in_vain(&self) -> bool {
        let functions = self.parts.engine.functions();
        self.parts
            .flight
            .as_ref()
            .is_some_and(|flight| !functions.iter().any(|f| flight.is_watched(f)))
    }

    /// The target is gone. The record that tells it may be lost.
    pub(crate) fn target_ended(&mut self, exit: Option<TargetExit>) {
        self.parts.target.exit = self.parts.target.exit.or(exit);
    }

    /// The end is near: new programs of a launched command start at once, without probes.
    pub(crate) fn stop_holding(&mut self) -> anyhow::Result<()> {
        self.finishing = true;
        self.holding.until = bpf::now();
        if self.parts.launched {
            self.parts.kernel.trace_process(self.parts.pid)?;
        }
        Ok(())
    }

    /// Starts to read what the probes deliver.
    pub(crate) fn read(&mut self) -> anyhow::Result<(Reader, Receiver<Batch>)> {
        let adopted = self.markers.adopted.take().context("there is a reader already")?;
        let pace = self.parts.pace;
        let news = pace.wakes.then(|| self.parts.kernel.news()).transpose()?;
        let rings = self.parts.kernel.rings()?;
        let each = self.parts.output.interval().map(nanos);
        let intervals = self.reporting.next.zip(each).map(|(end, each)| Intervals { end, each });
        Reader::start(rings, adopted, news, pace, intervals).context("cannot start a thread")
    }

    /// Takes in a batch, and reports when an interval is complete; `false` when nobody reads the
    /// reports any more.
    pub(crate) fn feed(&mut self, batch: &mut Batch) -> anyhow::Result<bool> {
        for event in batch.changes.drain(..) {
            self.release_if_held(&event);
            self.parts.engine.push_change(event);
        }
        for (ring, events) in batch.events() {
            self.parts.engine.push_events(ring, events);
        }
        self.parts.engine.count_malformed(batch.malformed);
        batch.unread.drain(..).for_each(|(pid, why)| self.leave_unread(pid, why));
        batch.readings.drain(..).for_each(|reading| self.parts.engine.markers().read(reading));
        if let Some((sample, through)) = batch.sample {
            // While the buffers are known of which they are: this sample may be the end of some.
            self.count_losses()?;
            self.parts.engine.sample_clocks(sample, through);
        }
        let Some(settled) = batch.settled else { return Ok(true) };
        let mut read = true;
        while let Some(due) = self.reporting.next.filter(|due| *due <= settled) {
            self.parts.engine.advance(due);
            read &= self.report_interval(due)?;
            self.reporting.next =
                self.parts.output.interval().map(|i| due.saturating_add(nanos(i)));
        }
        self.parts.engine.advance(settled);
        self.settled = settled;
        self.tend_budget();
        Ok(self.record(settled)? && read)
    }

    /// What happened to processes; returns those that run a new program.
    fn take_changes(&mut self) -> Vec<Pid> {
        let mut execed = Vec::new();
        for change in self.parts.engine.take_process_changes() {
            match change {
                ProcessChange::Exec { pid, by, .. } => {
                    // The kernel binds links to the first thread, which this one has replaced.
                    if by.0 != pid.0 && self.parts.links.pid.is_some() {
                        self.note(format!(
                            "thread {} of process {} executed another program, which ended the \
                             probes in what was loaded before; --follow keeps them",
                            by.0, pid.0
                        ));
                    }
                    execed.push(pid);
                }
                ProcessChange::Fork { .. } if self.parts.links.pid.is_some() => {
                    self.parts.target.untraced_children += 1;
                }
                ProcessChange::Fork { child, .. } => {
                    self.followed.insert(child);
                }
                ProcessChange::Exit { pid, status } => {
                    self.followed.remove(&pid);
                    if pid == self.parts.pid && self.parts.target.exit.is_none() {
                        self.parts.target.exit = Some(exit_of(status));
                    }
                }
            }
        }
        execed
    }

    /// For the reports.
    fn note(&mut self, text: String) {
        self.notes.add(text);
    }

    fn warn(&self, text: &str) {
        self.parts.status.suspend(|| ui::say(text));
    }

    pub(crate) fn detaches_fast(&self) -> bool {
        // Groups have none.
        self.attachments.iter().all(|attachment| attachment.kind() != LinkKind::Perf)
    }

    /// Takes the probes away but for those through which markers deliver what they have.
    pub(crate) fn detach_sources(&mut self) {
        let delivers = |a: &mut Attachment| matches!(a.role(), Role::Flush | Role::Register);
        let kept: Vec<_> = self.attachments.extract_if(.., delivers).collect();
        self.detach();
        self.attachments = kept;
    }

    /// Takes all probes away; the guard does the same when ctrace ends in any other way.
    pub(crate) fn detach(&mut self) {
        for group in self.budget.iter_mut().flat_map(Budgeted::groups_mut) {
            self.attachments.extend(group.take_attachments());
        }
        if self.attachments.is_empty() {
            return;
        }
        let begun = Instant::now();
        for error in Attachment::detach_all(std::mem::take(&mut self.attachments)) {
            tracing::warn!("{error}");
        }
        tracing::info!("all probes taken away in {:.1} ms", millis(begun));
    }
}

pub(crate) fn nanos(duration: Duration) -> Nanos {
    Nanos(duration.as_nanos() as u64)
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// A wait status as `wait(2)` gives it.
fn exit_of(status: u32) -> TargetExit {
    match status & 0x7f {
        0 => TargetExit::Code((status >> 8 & 0xff) as i32),
        signal => TargetExit::Signal(signal as i32),
    }
}
