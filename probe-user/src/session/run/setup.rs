//! Turns a specification into a session that is ready to be armed.

use super::{
    arm::LinkOptions,
    before,
    counting::counted_sizes,
    every_lock,
    session::{Arming, Delivery, Rounds, Session, TracedTarget, dear_at_start},
    status::{Drawn, Status},
    thrift::thrift,
};
use crate::{
    bpf::{self, Capabilities, Config, Kernel, LinkChoice},
    heal::InUse,
    session::{
        budget::{costs::HitCosts, slowdown::Watch},
        collect::{pace::Pace, room},
        keep::{counted_parts, flight::Flight, output::Output, parts, split::Splits},
        plan::{Plan, Planned, Planner, Sites, marked_locks::MarkedLocks},
        spec::{OnFull, SelectSpec, SelectionLimits, TraceSpec},
    },
    target::{
        place::Returns,
        plan::{CostClass, ExitPlacement},
        process::{Process, maps::MappedObject},
        select::{Patterns, Selector, ValuesOf, awaits::Awaits},
        values::asked::AskedValues,
    },
    ui::{self, output::slow::Slow},
};
use anyhow::bail;
use ctrace_core::{
    engine::{Engine, EngineConfig},
    report::{TargetReport, render::clean::clean},
    units::{Nanos, Pid},
};
use std::path::Path;

/// A remark on values that nobody would see.
const UNSEEN_VALUES: &str = "--arg and --ret only choose functions here: their values are in a report \
    with --view values or calls and without --interval, and in recordings";

/// The origin of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// It runs already, and must never be stopped.
    Running,
    /// Our own child, stopped just before it executes the command.
    Launched,
}

/// Parts beside calls for which an output has use.
#[derive(Clone, Copy)]
struct Wanted {
    values: bool,
    /// The locks of which markers tell.
    locks: bool,
    /// Requests of programs for their tables.
    tables: bool,
}

/// A specification and the plan made from it.
pub(crate) struct Setup<'a> {
    spec: &'a TraceSpec,
    /// The name of the target's program.
    program: Option<String>,
    planner: Planner,
    pub plan: Plan,
    pub pace: Pace,
    pub flight: Option<Flight>,
    pub splits: Splits,
}

impl<'a> Setup<'a> {
    /// Does the same as [`Self::choose`] for this output, and prints remarks on the selection.
    pub(crate) fn plan(
        spec: &'a TraceSpec,
        objects: &[MappedObject],
        output: &Output,
    ) -> anyhow::Result<Self> {
        let wanted = Wanted {
            values: output.shows_values(),
            locks: output.shows_locks(),
            // A budget sees a part of the calls, and says so. A program would not hear of it.
            tables: output.gives_tables() && spec.probes.budget.is_none(),
        };
        let program = objects.iter().find(|object| object.is_main);
        let slow = match output {
            Output::Live(_) => Slow::untold(),
            _ => Slow::work(format!(
                "reading symbols and lines of {} and its libraries…",
                clean(program.map_or("the program", |program| &program.name))
            )),
        };
        let mut setup = Self::choose_for(spec, objects, wanted, spec.probes.awaits())?;
        drop(slow);
        // Who may trace nothing is told that alone.
        if Capabilities::of_this_process().may_trace() {
            setup.plan.remarks.iter().for_each(|line| ui::say(line));
        }
        if let Some(by) = output.by() {
            let functions: Vec<_> = setup.plan.planned().map(|it| it.info.clone()).collect();
            parts::check(by, &functions)?;
            if spec.probes.aggregate {
                counted_parts::check(&functions)?;
                let note = counted_parts::leave_out_others(by, setup.plan.planned_mut());
                setup.plan.notes.extend(note);
            }
        }
        Ok(setup)
    }

    /// Chooses the functions and their probes, before anything is touched. With `values`, probes
    /// read values: that costs the target time and room in the rings.
    pub(crate) fn choose(
        spec: &'a TraceSpec,
        objects: &[MappedObject],
        values: bool,
    ) -> anyhow::Result<Self> {
        let wanted = Wanted { values, locks: values, tables: false };
        Self::choose_for(spec, objects, wanted, None)
    }

    /// `awaits`: the target may lack all that is asked for, as this may have it.
    fn choose_for(
        spec: &'a TraceSpec,
        objects: &[MappedObject],
        Wanted { values, locks, tables }: Wanted,
        awaits: Option<Awaits>,
    ) -> anyhow::Result<Self> {
        if !spec.select.values.is_empty() && !bpf::can_read_arguments() {
            bail!(
                "ctrace reads values from Linux 6.13 on: choose functions with -f, without --arg, --ret \
                 and --where"
            );
        }
        if spec.probes.budget.is_some() && !spec.select.values.iter().all(AskedValues::shows) {
            bail!(
                "--where counts some calls only, and --budget estimates all: leave one of them out"
            );
        }
        if spec.select.locks {
            every_lock::check(spec)?;
        }
        let planner = planner(&spec.select, spec.most, spec.probes.returns)?;
        let may_guard = matches!(spec.probes.link, LinkChoice::Auto | LinkChoice::Session)
            && bpf::return_guards_lacking().is_none();
        let locks = if locks { every_lock::of_markers(spec) } else { MarkedLocks::Unwanted };
        // A budget takes the probes of some functions away, and what is counted in the kernel ends at
        // a jump.
        let names = !spec.probes.aggregate && bpf::can_read_arguments();
        let follows = spec.probes.budget.is_none() && !spec.probes.aggregate;
        let mut planner = planner
            .reading_values(values)
            .naming_methods(names)
            .treating_locks(locks)
            .answering(tables)
            .guarding(may_guard)
            .awaiting(awaits)
            .following_tail_calls(follows);
        let mut plan = planner.plan(objects)?;
        if spec.select.locks {
            let notes: Vec<_> = every_lock::notes(&plan).collect();
            plan.notes.extend(notes);
        }
        if spec.probes.waits && plan.planned().any(Planned::is_go) {
            bail!(
                "--cpu knows the waits of threads, not those of goroutines: leave it out, or the functions \
                 of Go"
            );
        }
        if !values && spec.select.values.iter().any(AskedValues::shows) {
            plan.remarks.push(UNSEEN_VALUES.to_owned());
        }
        let unnamed = spec.select.with_callees > 0 || spec.select.with_callers > 0;
        let remark = dear_at_start(plan.planned(), unnamed);
        plan.remarks.extend(remark);
        if plan.functions() == 0 {
            match plan.refused.as_slice() {
                [] if awaits.is_some() => {}
                [] => bail!("nothing is left to trace: every match was excluded"),
                [only] => bail!("{} cannot be traced: {}", only.name, only.why),
                [first, rest @ ..] => bail!(
                    "none of the {} selected functions can be traced; {}: {}; `ctrace list -v` \
                     tells about each",
                    rest.len() + 1,
                    first.name,
                    first.why
                ),
            }
        }
        let program = objects.iter().find(|object| object.is_main);
        let program = program.map(|object| object.name.clone());
        Ok(Self {
            spec,
            program,
            planner,
            plan,
            pace: Pace::PROMPT,
            flight: None,
            splits: Splits::default(),
        })
    }

    /// True if scopes are to be traced, also those of libraries that come later.
    pub(crate) fn asks_for_markers(&self) -> bool {
        self.planner.asks_for_markers()
    }

    /// Prepares everything to trace a process that runs already; the only step left is
    /// [`Session::arm`] with the plan. The plan's remarks are new ones.
    pub(crate) fn running(
        self,
        process: &Process,
        output: Output,
    ) -> anyhow::Result<(Session, Plan)> {
        let (pid, command) = (Pid(process.pid()), process.command().to_vec());
        let mut in_use = InUse::default();
        let remarks = before::remarks(process, &mut in_use);
        let (mut session, mut plan) =
            self.session((pid, Origin::Running), process.exe(), command, output, || Ok(()))?;
        plan.find_again(process)?;
        plan.notes.extend(remarks.iter().cloned());
        plan.remarks = remarks;
        session.remember_in_use(in_use);
        session.introduce(process);
        Ok((session, plan))
    }

    /// Does the same for a command that is to be launched as this process. `is_there` returns when the
    /// process executes nothing but the command any more.
    pub(crate) fn launched(
        self,
        pid: Pid,
        exe: &Path,
        command: Vec<String>,
        output: Output,
        is_there: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<(Session, Plan)> {
        // As the kernel tells it of a process that runs.
        let exe = std::fs::canonicalize(exe).unwrap_or_else(|_| exe.to_owned());
        self.session((pid, Origin::Launched), &exe, command, output, is_there)
    }

    /// Loads the eBPF programs.
    fn session(
        mut self,
        (pid, origin): (Pid, Origin),
        exe: &Path,
        command: Vec<String>,
        output: Output,
        is_there: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<(Session, Plan)> {
        let mut plan = std::mem::take(&mut self.plan);
        let target = TargetReport {
            pid: Some(pid),
            exe: Some(exe.display().to_string()),
            program: self.program.take(),
            command,
            ..TargetReport::default()
        };
        let probes = &self.spec.probes;
        let markers = self.asks_for_markers();
        let on_full = match probes.on_full {
            Some(OnFull::Drop) => OnFull::Drop,
            _ if markers && bpf::threads_can_wait() => OnFull::Wait,
            wanted => {
                if markers && wanted.is_some() {
                    plan.notes.push(
                        "no thread waits until ctrace has read its events (on-full): that needs \
                         Linux 6.13"
                            .into(),
                    );
                }
                OnFull::Drop
            }
        };
        // A batch of markers must find a whole page. Smaller rings than 64 KiB leave no time to wait.
        let least = match (markers, on_full) {
            (true, OnFull::Wait) => 64 << 10,
            (true, OnFull::Drop) => 4 * 4096,
            _ => 4096,
        };
        let ring_size = match probes.ring_size {
            Some(size) => size,
            None => room::ring_bytes(bpf::online_cpus()?),
        };
        let ring_bytes = u32::try_from(ring_size.max(least).next_power_of_two());
        let Ok(ring_bytes) = ring_bytes else { bail!("--ring-size: at most 1GiB") };
        let thrift = thrift(self.spec, &self.planner);
        let mut kernel = Kernel::load(&Config {
            ring_bytes,
            follow: probes.follow,
            admits: probes.admits,
            launches: origin == Origin::Launched,
            markers,
            values: self.planner.reads_values(),
            python: self.planner.reads_python(),
            conditions: self.planner.asks_for_conditions(),
            guards: !plan.guards.is_empty(),
            waits: probes.waits,
            wakers: probes.wakers,
            counted: counted_sizes(self.spec, &self.planner)?,
            thrift,
        })?;
        is_there()?;
        match origin {
            Origin::Running => kernel.trace_process(pid)?,
            Origin::Launched => kernel.trace_launched(pid)?,
        }
        let engine = Engine::new(EngineConfig {
            follow: probes.follow,
            spool_bytes: usize::try_from(probes.spool).unwrap_or(usize::MAX),
            filter: self.spec.filter.clone(),
            thrifty: thrift.is_some_and(|thrift| thrift.most_nested > 0),
            holds: thrift.is_some_and(|thrift| thrift.shortest > Nanos::ZERO),
            record: output.records(),
            keep: self.flight.is_some() || self.splits.are_wanted(),
            open_values: matches!(output, Output::Stream(_)),
            rings: kernel.ring_count(),
            waits: probes.waits,
            wakers: probes.wakers,
            ..EngineConfig::default()
        });
        let links = LinkOptions {
            choice: probes.link,
            force_perf: probes.force_perf,
            pid: (!probes.follow).then_some(pid),
            on_full,
        };
        let launched = origin == Origin::Launched;
        let status = Status::new(match output {
            Output::Live(_) | Output::Calls(_) | Output::Stream(_) => Drawn::Nowhere,
            _ if launched => Drawn::UntilStart,
            _ => Drawn::OnScreen,
        });
        let watch = Watch::new(probes.max_slowdown);
        let rounds = Rounds::new(self.pace, watch, &mut kernel);
        let session = Session::new(
            kernel,
            engine,
            TracedTarget::new(pid, launched, probes.follow, target),
            Arming::new(self.planner, links, probes.budget, probes.max_slowdown, &plan),
            Delivery::new(output, self.flight, self.splits),
            rounds,
            status,
        );
        Ok((session, plan))
    }
}

/// Describes what is going to be attached, and the cost of each hit. The number of hits is unknown,
/// but the cost classes are known.
pub(crate) fn describe(plan: &Plan) -> Vec<String> {
    let mut classes = [(CostClass::Emulated, 0), (CostClass::SingleStep, 0)];
    let (mut returns, mut sites, mut unseen) = (0, 0, 0);
    let (mut points, mut pairs) = (0, 0);
    let mut markers: [Vec<u64>; 2] = Default::default();
    let (costs, mut dearest) = (HitCosts::known(plan.planned()), Nanos::ZERO);
    for planned in plan.planned() {
        dearest = dearest.max(costs.call(planned));
        let placement = match &planned.sites {
            Sites::Function(placement) => placement,
            Sites::Usdt(_) => {
                points += 1;
                continue;
            }
            Sites::Pair(_) => {
                pairs += 1;
                continue;
            }
            Sites::Marker { .. } => {
                let is_point = planned.info.point.is_some();
                markers[usize::from(is_point)].push(costs.call(planned).0);
                continue;
            }
        };
        for (class, count) in &mut classes {
            *count += usize::from(*class == placement.entry.cost);
        }
        match &placement.exit {
            ExitPlacement::ReturnProbe | ExitPlacement::Guarded(_) => returns += 1,
            ExitPlacement::Sites(_) => sites += 1,
            ExitPlacement::Unseen(_) => unseen += 1,
        }
    }
    let entries: Vec<String> = classes
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| {
            format!("{count} {} (about {} ns a hit)", class.name(), costs.hit(*class).0)
        })
        .collect();
    let mut lines = Vec::new();
    if !entries.is_empty() {
        lines.push(format!("entries: {}", entries.join(", ")));
        lines.push(format!(
            "exits: {returns} by return probe, {sites} by probes on the ways out, {unseen} unseen"
        ));
    }
    if points > 0 {
        lines.push(format!("USDT probes: {points}"));
    }
    if pairs > 0 {
        lines.push(format!("pairs of USDT probes: {pairs}"));
    }
    for (name, costs) in ["marker scopes", "marker points"].into_iter().zip(&markers) {
        let (Some(least), Some(most)) = (costs.iter().min(), costs.iter().max()) else { continue };
        let range = if least == most { most.to_string() } else { format!("{least} to {most}") };
        lines.push(format!("{name}: {} (about {range} ns each time while on)", costs.len()));
    }
    let source = match costs.is_measured() {
        true => "as `ctrace doctor --calibrate` measured here",
        false => "which is a guess; `ctrace doctor --calibrate` measures it",
    };
    lines.push(format!("the costliest call costs the target about {} ns, {source}", dearest.0));
    for refused in plan.refused.iter().take(20) {
        lines.push(format!("not traced: {} ({}): {}", refused.name, refused.object, refused.why));
    }
    if plan.refused.len() > 20 {
        lines.push(format!("not traced: {} more", plan.refused.len() - 20));
    }
    lines
}

/// Returns the planner for a selection.
pub(crate) fn planner(
    select: &SelectSpec,
    limits: SelectionLimits,
    returns: Returns,
) -> anyhow::Result<Planner> {
    let values = select.asked_of_functions()?;
    let selector = Selector::parse(Patterns {
        functions: &select.functions,
        usdt: &select.usdt,
        markers: &select.markers,
        exclude: &select.exclude,
        pairs: &select.pairs,
        no_pairs: select.no_pairs,
        with_callees: select.with_callees,
        with_callers: select.with_callers,
        values: &values
            .iter()
            .map(|asked| ValuesOf { pattern: &asked.functions, is_usdt: asked.is_usdt })
            .collect::<Vec<_>>(),
    })?;
    let planner = Planner::new(selector, limits.max_functions, returns);
    let planner = planner.asking_for_values(&values).with_providers(&select.providers);
    Ok(planner.within(limits.object))
}
