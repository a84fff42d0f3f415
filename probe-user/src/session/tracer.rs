//! The state of one session: kernel, engine, what is armed, and where the reports go.

use super::{
    arm::{self, LinkOptions},
    costs::Costs,
    plan::{Identity, Plan, Planner, identity},
    reader::Batch,
    sink::Sink,
    slowdown::{Verdict, Watch},
};
use crate::{
    bpf::{self, Attachment, Kernel, LinkKind, Rings},
    target::{maps::MappedObject, process::Process},
};
use ctrace_core::{
    ProcessChange,
    engine::{Engine, ReportMeta},
    report::{TargetExit, TargetReport},
    units::{Nanos, Pid, Tid},
};
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

/// What a session is made of; see [`Tracer::new`].
pub struct Parts {
    pub kernel: Kernel,
    pub engine: Engine,
    pub planner: Planner,
    pub links: LinkOptions,
    pub sink: Sink,
    pub watch: Watch,
    pub pid: Pid,
    pub target: TargetReport,
    pub center_cut: f64,
    pub interval: Option<Duration>,
    pub cumulative: bool,
}

pub struct Tracer {
    parts: Parts,
    attachments: Vec<Attachment>,
    armed: HashSet<Identity>,
    costs: Costs,
    notes: Vec<String>,
    start: Nanos,
    next_report: Option<Nanos>,
    children: HashSet<Pid>,
    looks: u32,
}

/// The mappings are read on each so many looks around: new libraries and stacks.
const LOOKS_PER_MAPS: u32 = 5;

impl Tracer {
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            attachments: Vec::new(),
            armed: HashSet::new(),
            costs: Costs::default(),
            notes: Vec::new(),
            start: Nanos::ZERO,
            next_report: None,
            children: HashSet::new(),
            looks: 0,
        }
    }

    /// Attaches the probes of the first plan; calls count from the time it is done.
    pub fn arm(&mut self, plan: &Plan, objects: &[MappedObject]) -> anyhow::Result<()> {
        self.armed.extend(objects.iter().map(identity));
        let begun = Instant::now();
        self.attach(plan)?;
        let places: usize = self.attachments.iter().map(Attachment::sites).sum();
        tracing::info!("armed: {places} places in {:.1} ms", millis(begun));
        self.start = bpf::now();
        self.parts.engine.begin(self.start);
        self.next_report = self.parts.interval.map(|i| self.start.saturating_add(nanos(i)));
        Ok(())
    }

    /// Nothing stays attached if one probe fails.
    fn attach(&mut self, plan: &Plan) -> anyhow::Result<()> {
        let parts = &mut self.parts;
        let attachments = arm::arm(&parts.kernel, &mut parts.engine, plan, parts.links)?;
        self.attachments.extend(attachments);
        self.costs.add(plan);
        Ok(())
    }

    /// Names the threads and stacks of a process that runs already.
    pub fn introduce(&mut self, process: &Process) {
        for thread in process.threads() {
            self.parts.engine.name_thread(Pid(process.pid()), Tid(thread.tid), &thread.name);
        }
        self.map_stacks(process);
    }

    fn map_stacks(&mut self, process: &Process) {
        for region in process.stack_regions().unwrap_or_default() {
            let std::ops::Range { start, end } = region.addresses;
            self.parts.engine.add_stack_region(Pid(process.pid()), start, end);
        }
    }

    pub fn rings(&mut self) -> anyhow::Result<Rings> {
        Ok(self.parts.kernel.rings()?)
    }

    /// Takes in a batch, and reports when an interval is complete; `false` when nobody reads the
    /// reports any more.
    pub fn feed(&mut self, batch: &Batch) -> anyhow::Result<bool> {
        for (ring, record) in batch.records() {
            self.parts.engine.push(ring, record);
        }
        let Some(settled) = batch.settled else { return Ok(true) };
        let mut read = true;
        while let Some(due) = self.next_report.filter(|due| *due <= settled) {
            self.parts.engine.advance(due);
            read &= self.report(due, !self.parts.cumulative)?;
            self.next_report = self.parts.interval.map(|i| due.saturating_add(nanos(i)));
        }
        self.parts.engine.advance(settled);
        Ok(read)
    }

    /// The last report, up to `end`.
    pub fn report_end(&mut self, end: Nanos) -> anyhow::Result<()> {
        self.take_changes();
        let delivered: u64 = self.parts.engine.counters().hits.iter().sum();
        let lost = self.parts.kernel.lost().read()?.events;
        tracing::info!("events: {delivered} delivered, {lost} lost");
        let own_interval = self.parts.interval.is_some() && !self.parts.cumulative;
        self.report(end, own_interval).map(|_| ())
    }

    fn report(&mut self, end: Nanos, reset: bool) -> anyhow::Result<bool> {
        let parts = &mut self.parts;
        parts.engine.set_lost_events(parts.kernel.lost().read()?.events);
        let meta = ReportMeta {
            target: parts.target.clone(),
            center_cut: parts.center_cut,
            notes: self.notes.clone(),
        };
        let report = if reset {
            parts.engine.report_interval(end, meta)
        } else {
            parts.engine.report(end, meta)
        };
        parts.sink.write(&report)
    }

    /// New programs, libraries, children; the cost of the probes. `false` ends the session.
    pub fn look_around(&mut self) -> anyhow::Result<bool> {
        let execed = self.take_changes();
        for pid in execed {
            self.arm_new_objects(pid);
        }
        self.looks += 1;
        if self.looks.is_multiple_of(LOOKS_PER_MAPS) {
            self.arm_new_objects(self.parts.pid);
        }
        self.check_slowdown()
    }

    /// What happened to processes; returns those that run a new program.
    fn take_changes(&mut self) -> Vec<Pid> {
        let mut execed = Vec::new();
        for change in self.parts.engine.take_process_changes() {
            match change {
                ProcessChange::Exec { pid, .. } => execed.push(pid),
                ProcessChange::Fork { child, .. } => {
                    if self.parts.links.pid.is_some() && self.children.insert(child) {
                        self.parts.target.untraced_children += 1;
                    }
                }
                ProcessChange::Exit { pid, status } => {
                    if pid == self.parts.pid && self.parts.target.exit.is_none() {
                        self.parts.target.exit = Some(exit_of(status));
                    }
                }
            }
        }
        execed
    }

    /// Functions of programs and libraries that came later. What cannot be read any more (the
    /// process may be gone) is left alone; what cannot be attached is a note in the report.
    fn arm_new_objects(&mut self, pid: Pid) {
        let Ok(process) = Process::open(pid.0) else { return };
        self.map_stacks(&process);
        let Ok(objects) = process.objects() else { return };
        let new: Vec<MappedObject> =
            objects.into_iter().filter(|o| !self.armed.contains(&identity(o))).collect();
        if new.is_empty() {
            return;
        }
        self.armed.extend(new.iter().map(identity));
        let armed = match self.parts.planner.plan_more(&new) {
            Ok(plan) if plan.objects.is_empty() => return,
            Ok(plan) => self.attach(&plan).map(|()| plan.functions()),
            Err(error) => Err(error),
        };
        self.notes.push(match armed {
            Ok(count) => format!(
                "{count} functions of {} were armed {:.3} s after the start, when they were mapped",
                names(&new),
                bpf::now().since(self.start).0 as f64 / 1e9,
            ),
            Err(error) => format!("functions of {} are not traced: {error:#}", names(&new)),
        });
    }

    fn check_slowdown(&mut self) -> anyhow::Result<bool> {
        let spent = self.costs.of(self.parts.engine.counters().hits);
        let Some(cpu) = Process::cpu_time(self.parts.pid.0) else { return Ok(true) };
        match self.parts.watch.check(spent, cpu) {
            Verdict::Fine => Ok(true),
            Verdict::Warn(percent) => {
                eprintln!(
                    "ctrace: the probes slow the target by about {percent:.0} %; trace fewer \
                     functions, or stop on such a slowdown with --max-slowdown {percent:.0}%"
                );
                Ok(true)
            }
            Verdict::Stop(percent) => {
                let note = format!(
                    "tracing stopped early: the probes slowed the target by about {percent:.0} %, \
                     more than --max-slowdown allows"
                );
                eprintln!("ctrace: {note}");
                self.notes.push(note);
                Ok(false)
            }
        }
    }

    pub fn detaches_fast(&self) -> bool {
        self.attachments.iter().all(|attachment| attachment.kind() != LinkKind::Perf)
    }

    /// Takes all probes away; the kernel does the same when ctrace ends in any other way.
    pub fn detach(&mut self) {
        if self.attachments.is_empty() {
            return;
        }
        let begun = Instant::now();
        // Last come, first gone: entries go before the probes on the ways out.
        for attachment in self.attachments.drain(..).rev() {
            if let Err(error) = attachment.detach() {
                tracing::warn!("{error}");
            }
        }
        tracing::info!("all probes taken away in {:.1} ms", millis(begun));
    }

    pub fn set_exit(&mut self, exit: TargetExit) {
        self.parts.target.exit = Some(exit);
    }
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(duration.as_nanos() as u64)
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn names(objects: &[MappedObject]) -> String {
    objects.iter().map(|object| object.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// A wait status as `wait(2)` gives it.
fn exit_of(status: u32) -> TargetExit {
    match status & 0x7f {
        0 => TargetExit::Code((status >> 8 & 0xff) as i32),
        signal => TargetExit::Signal(signal as i32),
    }
}
