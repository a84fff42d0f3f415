//! The state of one session: kernel, engine, what is armed, and where the reports go.

use super::{
    arm::{self, LinkOptions},
    costs::Costs,
    launch,
    plan::{Identity, ObjectPlan, Plan, Planner, identity},
    reader::Batch,
    sink::Sink,
    slowdown::{Verdict, Watch},
    status::Status,
};
use crate::{
    bpf::{self, Attachment, Diagnostics, Kernel, LinkKind, Rings, Role},
    target::{launch::resolve, maps::MappedObject, process::Process},
    ui,
};
use ctrace_common::{CONTROL_LEN, Kind};
use ctrace_core::{
    ProcessChange,
    decode::{Decoded, decode},
    engine::{Engine, ReportMeta},
    report::{TargetExit, TargetReport},
    units::{Nanos, Pid, Tid},
};
use std::{
    collections::HashSet,
    ops::Range,
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
    pub status: Status,
    /// Our own child, which may be held at the start of a program.
    pub launched: bool,
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
    reported: Option<Nanos>,
    looks: u32,
    finishing: bool,
    diagnostics: Option<Diagnostics>,
}

/// The kernel keeps this much free below the main stack for it to grow.
const MAIN_STACK_ROOM: u64 = 128 << 20;

/// The mappings are read on each so many looks around: new libraries and stacks.
const LOOKS_PER_MAPS: u32 = 5;

impl Tracer {
    pub fn new(mut parts: Parts) -> Self {
        // Without them tracing works as well.
        let diagnostics = parts.kernel.diagnostics();
        let diagnostics = diagnostics.inspect_err(|error| tracing::warn!("{error}")).ok();
        Self {
            parts,
            attachments: Vec::new(),
            armed: HashSet::new(),
            costs: Costs::default(),
            notes: Vec::new(),
            start: Nanos::ZERO,
            next_report: None,
            reported: None,
            looks: 0,
            finishing: false,
            diagnostics,
        }
    }

    /// Attaches the probes of the first plan; calls count from the time it is done.
    pub fn arm(&mut self, plan: &Plan, objects: &[MappedObject]) -> anyhow::Result<()> {
        self.armed.extend(objects.iter().map(identity));
        let begun = Instant::now();
        for object in &plan.objects {
            self.attach(object)?;
        }
        let places: usize = self.attachments.iter().map(Attachment::sites).sum();
        tracing::info!("armed: {places} places in {:.1} ms", millis(begun));
        self.start = bpf::now();
        self.parts.engine.begin(self.start);
        self.next_report = self.parts.interval.map(|i| self.start.saturating_add(nanos(i)));
        Ok(())
    }

    fn attach(&mut self, object: &ObjectPlan) -> anyhow::Result<()> {
        let parts = &mut self.parts;
        self.costs.add(&object.functions);
        let attached = arm::arm(&parts.kernel, &mut parts.engine, object, parts.links)?;
        self.attachments.extend(attached);
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
    pub fn start(&self) -> Nanos {
        self.start
    }

    /// The end is near: new programs of a launched command start at once, without probes.
    pub fn stop_holding(&mut self) -> anyhow::Result<()> {
        self.finishing = true;
        if self.parts.launched {
            self.parts.kernel.trace_process(self.parts.pid)?;
        }
        Ok(())
    }

    pub fn rings(&mut self) -> anyhow::Result<Rings> {
        Ok(self.parts.kernel.rings()?)
    }

    /// Takes in a batch, and reports when an interval is complete; `false` when nobody reads the
    /// reports any more.
    pub fn feed(&mut self, batch: &Batch) -> anyhow::Result<bool> {
        for (ring, record) in batch.records() {
            if record.len() == CONTROL_LEN {
                self.release_if_held(record);
            }
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

    /// A process that was stopped at the start of a new program goes on once that has its probes.
    fn release_if_held(&mut self, record: &[u8]) {
        let Ok(Decoded::Control(control)) = decode(record) else { return };
        if Kind::from_wire(control.record.kind) != Some(Kind::Exec) || control.arg1 != 1 {
            return;
        }
        self.release(Pid(control.record.pid));
    }

    fn release(&mut self, pid: Pid) {
        if !self.finishing {
            self.arm_new_program(pid);
        }
        if let Err(error) = launch::go_on(pid) {
            self.note(format!("process {} could not be continued: {error}", pid.0));
        }
    }

    /// The last report, up to `end`.
    pub fn report_end(&mut self, end: Nanos) -> anyhow::Result<()> {
        self.parts.status.finish();
        self.take_changes();
        let delivered: u64 = self.parts.engine.counters().hits.iter().sum();
        let lost = self.parts.kernel.lost().read()?.events;
        tracing::info!("events: {delivered} delivered, {lost} lost");
        let own_interval = self.parts.interval.is_some() && !self.parts.cumulative;
        // The last interval may have ended just now.
        if self.reported != Some(end) {
            self.report(end, own_interval)?;
        }
        Ok(())
    }

    fn report(&mut self, end: Nanos, reset: bool) -> anyhow::Result<bool> {
        self.reported = Some(end);
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
        parts.status.suspend(|| parts.sink.write(&report))
    }

    /// New programs, libraries, children; the cost of the probes. `false` ends the session.
    pub fn look_around(&mut self) -> anyhow::Result<bool> {
        if let Some(diagnostics) = &mut self.diagnostics {
            diagnostics.flush();
        }
        let execed = self.take_changes();
        for pid in execed {
            self.arm_new_objects(pid);
        }
        self.looks += 1;
        if self.parts.launched && Process::is_held_at_start(self.parts.pid.0) {
            // The record that tells it is still on its way, or was lost.
            self.release(self.parts.pid);
        }
        if self.looks.is_multiple_of(LOOKS_PER_MAPS) {
            self.arm_new_objects(self.parts.pid);
        }
        let lost = self.parts.kernel.lost().read()?.events;
        self.parts.status.show(self.parts.engine.counters().calls, lost);
        self.check_slowdown()
    }

    /// What happened to processes; returns those that run a new program.
    fn take_changes(&mut self) -> Vec<Pid> {
        let mut execed = Vec::new();
        for change in self.parts.engine.take_process_changes() {
            match change {
                ProcessChange::Exec { pid, .. } => execed.push(pid),
                ProcessChange::Fork { .. } => {
                    let untraced = self.parts.links.pid.is_some();
                    self.parts.target.untraced_children += u64::from(untraced);
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
        if let Some((_, mapped)) = self.mapped(pid) {
            self.arm_new(mapped);
        }
    }

    /// The same before the first instruction: the loader has not mapped the libraries yet.
    fn arm_new_program(&mut self, pid: Pid) {
        let Some((process, mut objects)) = self.mapped(pid) else { return };
        if let Ok(launch) = resolve(process.exe().as_os_str()) {
            objects.extend(launch.objects.into_iter().filter(|object| !object.is_main));
        }
        self.arm_new(objects);
    }

    /// The process as it is mapped now; its stacks are noted on the way.
    fn mapped(&mut self, pid: Pid) -> Option<(Process, Vec<MappedObject>)> {
        let process = Process::open(pid.0).ok()?;
        self.map_stacks(&process);
        let objects = process.objects().ok()?;
        Some((process, objects))
    }

    fn arm_new(&mut self, objects: Vec<MappedObject>) {
        let new: Vec<MappedObject> =
            objects.into_iter().filter(|o| !self.armed.contains(&identity(o))).collect();
        if new.is_empty() {
            return;
        }
        self.armed.extend(new.iter().map(identity));
        let planned = self.parts.planner.plan_more(&new);
        self.drop_return_probes_if_deadly();
        let plan = match planned {
            Ok(plan) => plan,
            Err(error) => {
                let why = format!("functions of {} are not traced: {error:#}", names(&new));
                return self.note(why);
            }
        };
        for object in &plan.objects {
            let attached = self.attach(object);
            let after = bpf::now().since(self.start).0 as f64 / 1e9;
            let (count, name) = (object.functions.len(), &object.name);
            self.note(match attached {
                Ok(()) => format!(
                    "{count} functions of {name} were armed {after:.3} s after the start; earlier \
                     calls are not counted"
                ),
                Err(error) => format!("{count} functions of {name} are not traced: {error:#}"),
            });
        }
    }

    fn check_slowdown(&mut self) -> anyhow::Result<bool> {
        // The hits are those of all followed processes, the CPU time that of one.
        if self.parts.links.pid.is_none() {
            return Ok(true);
        }
        let spent = self.costs.of(self.parts.engine.counters().hits);
        let Some(cpu) = Process::cpu_time(self.parts.pid.0) else { return Ok(true) };
        match self.parts.watch.check(spent, cpu) {
            Verdict::Fine => Ok(true),
            Verdict::Warn(percent) => {
                self.warn(&format!(
                    "the probes slow the target by about {percent:.0} %; trace fewer \
                     functions, or stop on such a slowdown with --max-slowdown {percent:.0}%"
                ));
                Ok(true)
            }
            Verdict::Stop(percent) => {
                let note = format!(
                    "tracing stopped early: the probes slowed the target by about {percent:.0} %, \
                     more than --max-slowdown allows"
                );
                self.warn(&note);
                self.note(note);
                Ok(false)
            }
        }
    }

    /// A library that unwinds or switches stacks came while return probes are in place: through
    /// them the target would die.
    fn drop_return_probes_if_deadly(&mut self) {
        if self.parts.planner.allows_return_probes() {
            return;
        }
        let deadly = |attachment: &mut Attachment| attachment.role() == Role::Function;
        let deadly: Vec<_> = self.attachments.extract_if(.., deadly).collect();
        if deadly.is_empty() {
            return;
        }
        let functions: usize = deadly.iter().map(Attachment::sites).sum();
        drop(deadly);
        self.note(format!(
            "{functions} functions were traced up to {:.3} s after the start only: a library was \
             loaded that their return probes would have made crash (--returns ret-sites avoids it)",
            bpf::now().since(self.start).0 as f64 / 1e9,
        ));
    }

    /// For the reports; of a flood of notes the first ones.
    fn note(&mut self, text: String) {
        const MOST: usize = 20;
        if self.notes.len() < MOST {
            self.notes.push(text);
        }
    }

    fn warn(&self, text: &str) {
        self.parts.status.suspend(|| ui::say(text));
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
        // All at once: while a link is closed the kernel waits until no return probe is being
        // taken, which may never come while another link still has some.
        std::thread::scope(|scope| {
            for attachment in self.attachments.drain(..) {
                scope.spawn(move || {
                    if let Err(error) = attachment.detach() {
                        tracing::warn!("{error}");
                    }
                });
            }
        });
        tracing::info!("all probes taken away in {:.1} ms", millis(begun));
    }
}

pub fn nanos(duration: Duration) -> Nanos {
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
