//! Guards of return probes: their links, and the functions whose frames they restored.
//!
//! A function that is unwound, or open while its thread changes stacks, would cost a hold each
//! time. So it loses its return probe when that is first seen, and gets probes on its ways out.

use super::{Arming, Session, budgeted::Budgeted};
use crate::{
    bpf::{self, Attachment, BpfError, Kernel, Role, Site},
    session::{
        plan::{Identity, ObjectGuards, ObjectPlan, Planned, Sites, identity},
        run::arm::{ExitSites, attach_some},
    },
    target::{
        plan::{ExitKind, ExitPlacement, GuardKind, Placement},
        process::{Process, maps::MappedObject},
    },
    ui::text::units::counted,
};
use ctrace_common::{Cookie, GUARDS_BACKTRACES, RestoreReason};
use ctrace_core::{
    engine::NewExit, function::ExitSeen, report::render::clean::clean, units::FuncId,
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::{Path, PathBuf},
};

/// The reason why a moved function bears no return probe any more.
const THROUGH: &str = "an exception or a change of stacks went through";
/// The reason why the end of a moved function is not seen.
const LOST: &str = "it lost its return probe";
/// Moved functions that are named.
const MOST_NAMED: usize = 5;

/// A function with a return probe.
pub(super) struct Movable {
    function: FuncId,
    path: PathBuf,
    placement: Placement,
}

/// The part of a session that holds the links of ways out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holder<'a> {
    /// The session itself, for this file.
    Session(&'a Path),
    /// A group of the budget, which arms and disarms them with the entries.
    Group(usize),
}

/// The guards of a session.
#[derive(Default)]
pub(crate) struct Guarding {
    attachments: Vec<Attachment>,
    /// Files whose guards are in place.
    files: HashSet<Identity>,
    /// By file and offset of the probe: functions that still have return probes.
    movable: HashMap<(Identity, u64), Movable>,
    /// The numbers of functions that got probes on their ways out, and that lost their ends.
    moved: (u64, u64),
    /// The number of those with new probes whose time now ends when they jump to another function.
    until_jump: u64,
    /// The first of their names.
    names: Vec<String>,
    has_ended: bool,
}

impl Guarding {
    /// Knows an object's functions with return probes; `ids` are those of its functions.
    pub(super) fn know(&mut self, object: &ObjectPlan, ids: &[FuncId]) {
        for (function, planned) in ids.iter().zip(&object.functions) {
            if let Sites::Function(placement) = &planned.sites
                && let ExitPlacement::Guarded(_) = placement.exit
            {
                let movable = Movable {
                    function: *function,
                    path: object.open_path.clone(),
                    placement: placement.clone(),
                };
                self.movable.insert((object.identity, placement.entry.offset), movable);
            }
        }
    }

    /// Takes the functions at these addresses of a process.
    fn take(&mut self, addresses: &[u64], objects: &[MappedObject]) -> Vec<Movable> {
        let place = |address: &u64| {
            objects.iter().find_map(|object| {
                let mapping = object.code.iter().find(|it| it.addresses.contains(address))?;
                Some((identity(object), address - mapping.addresses.start + mapping.offset))
            })
        };
        addresses.iter().filter_map(place).filter_map(|place| self.movable.remove(&place)).collect()
    }

    /// Takes all functions.
    pub(super) fn take_all(&mut self) -> Vec<Movable> {
        self.movable.drain().map(|(_, movable)| movable).collect()
    }

    /// Returns whether all functions that have return probes are known with their ways out.
    pub(super) fn can_move_all(&self) -> bool {
        self.is_in_place() && !self.movable.is_empty()
    }

    /// Forgets all functions with return probes, which lose them.
    pub(super) fn forget_functions(&mut self) {
        self.movable.clear();
    }

    /// Returns whether there are guards.
    pub(super) fn is_in_place(&self) -> bool {
        !self.attachments.is_empty()
    }

    /// Returns whether there is something to end: always for the first time.
    pub(super) fn begin_to_end(&mut self) -> bool {
        !std::mem::replace(&mut self.has_ended, true) || self.is_in_place()
    }

    /// Hands over the links of all guards.
    pub(super) fn take_attachments(&mut self) -> Vec<Attachment> {
        std::mem::take(&mut self.attachments)
    }

    /// Counts a function through which something went, and that `is_armed` with other probes.
    fn count_moved(&mut self, name: &str, is_armed: bool, ends_by_jump: bool) {
        self.until_jump += u64::from(is_armed && ends_by_jump);
        if self.names.len() < MOST_NAMED {
            self.names.push(clean(name).into_owned());
        }
        let (moved, lost) = &mut self.moved;
        *(if is_armed { moved } else { lost }) += 1;
    }

    /// Returns a note on what was guarded, and on the functions that were moved for it.
    fn note(&self, restored: Restored) -> Option<String> {
        let before = restored_before(restored)?;
        let (moved, lost) = self.moved;
        if moved + lost == 0 {
            return Some(format!(
                "return addresses were put back within traced calls, before {before}"
            ));
        }
        let more = (moved + lost) as usize - self.names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let mut note = format!(
            "return addresses were put back before {before}, which passed through {}{more}",
            self.names.join(", ")
        );
        if moved > 0 {
            note += &format!(
                ": from then on {} by costlier probes, and the ends of calls in between were not seen",
                counted(moved, "function is timed", "functions are timed")
            );
        }
        if self.until_jump > 0 {
            let of = counted(self.until_jump, "function", "functions");
            let its = if self.until_jump == 1 { "its tail call" } else { "their tail calls" };
            note += &format!("; calls of {of} now end at {its}");
        }
        if lost > 0 {
            let functions = counted(lost, "function", "functions");
            note += &format!("; the ends of {functions} are not seen since");
        }
        Some(note)
    }
}

/// Returns whether a call may end where it jumps to another function.
fn ends_by_jump(planned: &Planned) -> bool {
    if planned.info.ends_with_successor {
        return false;
    }
    match &planned.sites {
        Sites::Function(Placement { exit: ExitPlacement::Sites(sites), .. }) => {
            sites.iter().any(|site| site.kind != ExitKind::Ret)
        }
        _ => false,
    }
}

/// The numbers of times that threads were held, by what came next.
#[derive(Clone, Copy)]
struct Restored {
    /// Forced ends of threads, too.
    exceptions: u64,
    backtraces: u64,
    switches: u64,
    signals: u64,
}

impl Restored {
    fn of(kernel: &Kernel) -> Self {
        let backtraces = kernel.restored_for_backtraces();
        Self {
            // The kernel counts a backtrace here first.
            exceptions: kernel.restored(RestoreReason::Unwind).saturating_sub(backtraces),
            backtraces,
            switches: kernel.restored(RestoreReason::Switch),
            signals: kernel.restored(RestoreReason::Signal),
        }
    }
}

/// Returns why threads were held, and how often.
fn restored_before(restored: Restored) -> Option<String> {
    let counts = [
        (restored.exceptions, "exception", "exceptions"),
        (restored.backtraces, "backtrace", "backtraces"),
        (restored.switches, "change of stacks", "changes of stacks"),
        (restored.signals, "signal on a stack of its own", "signals on a stack of their own"),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, one, many)| counted(count, one, many)).collect();
    let (last, others) = counts.split_last()?;
    Some(if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) })
}

impl Session {
    /// Returns a note on what the guards did.
    pub(super) fn guarded_note(&self) -> Option<String> {
        self.arming.guarding.note(Restored::of(&self.kernel))
    }

    /// Warns where the guards could do nothing.
    pub(super) fn log_unguarded(&self) {
        let unheard = self.kernel.unheard();
        if unheard > 0 {
            let times = counted(unheard, "time", "times");
            tracing::warn!(
                "{times}, no return addresses were put back for an exception, a backtrace, a change \
                 of stacks or a signal: too many threads waited. `--returns ret-sites` needs none \
                 put back"
            );
        }
    }

    /// Puts guards into these files, before any of their return probes.
    pub(super) fn guard(&mut self, objects: &[ObjectGuards]) -> Result<(), BpfError> {
        let guarding = &mut self.arming.guarding;
        for object in objects {
            if guarding.files.contains(&object.identity) {
                continue;
            }
            for (role, kind, number) in [
                (Role::GuardUnwind, GuardKind::Unwind, 0),
                (Role::GuardUnwind, GuardKind::Backtrace, GUARDS_BACKTRACES),
                (Role::GuardSwitch, GuardKind::Switch, 0),
                (Role::GuardLoad, GuardKind::Load, 0),
            ] {
                let sites = object.sites.iter().filter(|site| site.kind == kind);
                let site =
                    |offset| Site { offset, ref_ctr_offset: 0, cookie: Cookie::plain(number) };
                let sites: Vec<_> = sites.map(|guard| site(guard.offset)).collect();
                let links = self.arming.links;
                attach_some(
                    &self.kernel,
                    &object.open_path,
                    role,
                    &sites,
                    links,
                    &mut guarding.attachments,
                )?;
            }
            guarding.files.insert(object.identity);
        }
        Ok(())
    }

    /// Moves functions whose frames were restored to probes on their ways out. In a process that
    /// changes stacks within traced calls, all functions are moved.
    pub(super) fn move_restored(&mut self) {
        // They are taken in any case: the guard tells more and more.
        let restored = self.kernel.take_restored();
        if self.arming.guarding.movable.is_empty() {
            return;
        }
        if self.kernel.restored(RestoreReason::Switch) > 0 {
            let all = self.arming.guarding.take_all();
            self.arming
                .planner
                .give_up_return_probes("the process changes stacks within traced calls");
            // They get none any more.
            self.arming.return_probed.clear();
            self.move_those(all, Some(THROUGH));
            return;
        }
        // Of a process that has ended nothing is known any more: others of its file tell it again.
        for (pid, addresses) in restored {
            let objects = Process::open(pid.0).ok().and_then(|it| it.objects().ok());
            let objects = objects.unwrap_or_default();
            let restored = self.arming.guarding.take(&addresses, &objects);
            self.move_those(restored, Some(THROUGH));
        }
    }

    /// Moves no function any more: all probes are about to go.
    pub(in crate::session::run) fn end_moves(&mut self) {
        self.arming.guarding.forget_functions();
    }

    /// Moves functions to probes on their ways out; `why` they bear no return probe any more, if that is
    /// a reason of their own. Returns the number of those whose ends are not seen since.
    pub(super) fn move_those(
        &mut self,
        mut movable: Vec<Movable>,
        why: Option<&'static str>,
    ) -> u64 {
        let at = bpf::now();
        movable.retain(|moved| match self.kernel.spare_returns(moved.function) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!("{error}");
                false
            }
        });
        for moved in &mut movable {
            moved.placement = self.arming.planner.moved(&moved.placement);
            moved.placement.no_return_probe = why;
        }
        if movable.is_empty() {
            return 0;
        }
        let mut unseen = 0;
        movable.sort_by_key(|moved| moved.function);
        // Before calls can end at both places.
        movable.iter().for_each(|moved| self.tell_moving(moved.function));
        let armed = self.arm_ways_out(&movable);
        let mut exits = Vec::new();
        let hits = self.hits_with_unmet().into_owned();
        for Movable { function, mut placement, .. } in movable {
            let is_armed = armed.contains(&function);
            if !is_armed {
                placement.exit = ExitPlacement::Unseen(LOST.to_owned());
            }
            let info = self.engine.functions()[function.index()].clone();
            let planned = Planned::new(info, Sites::Function(placement));
            self.arming.costs.replace(function.index(), hits[function.index()], &planned);
            self.arming.dear.know(function.index(), &planned);
            let ends_by_jump = ends_by_jump(&planned);
            unseen += u64::from(!is_armed);
            if why.is_some() {
                self.arming.guarding.count_moved(&planned.info.name, is_armed, ends_by_jump);
            }
            let exit = if is_armed { ExitSeen::ByExitSites } else { ExitSeen::Never };
            let probe = Some(self.arming.costs.of_hits().probe(&planned));
            exits.push(NewExit { function, exit, probe });
        }
        if !exits.is_empty() {
            self.engine.change_exits_only(at, exits);
        }
        unseen
    }

    /// Puts probes on the ways out of functions, and returns those that have got theirs.
    fn arm_ways_out(&mut self, movable: &[Movable]) -> HashSet<FuncId> {
        let mut by_holder: BTreeMap<Holder<'_>, Vec<(FuncId, ExitSites)>> = BTreeMap::new();
        for Movable { function, path, placement } in movable {
            if let ExitPlacement::Sites(sites) = &placement.exit {
                let budget = self.arming.budget.as_ref();
                let group = budget.and_then(|budget| budget.group_of(*function));
                let holder = group.map_or(Holder::Session(path), Holder::Group);
                match ExitSites::new(&self.kernel, sites, *function) {
                    Ok(sites) => by_holder.entry(holder).or_default().push((*function, sites)),
                    Err(error) => tracing::warn!("{error}"),
                }
            }
        }
        let mut armed = HashSet::new();
        for (holder, functions) in by_holder {
            let mut all = ExitSites::default();
            functions.iter().for_each(|(_, sites)| all.extend(sites.clone()));
            if self.attach_exits(holder, all).is_ok() {
                armed.extend(functions.iter().map(|(function, _)| *function));
                continue;
            }
            // One of them was refused.
            for (function, sites) in functions {
                match self.attach_exits(holder, sites) {
                    Ok(()) => _ = armed.insert(function),
                    Err(error) => tracing::warn!("{error}"),
                }
            }
        }
        armed
    }

    fn attach_exits(&mut self, holder: Holder<'_>, sites: ExitSites) -> Result<(), BpfError> {
        let Arming { links, budget, moved_exits, .. } = &mut self.arming;
        let groups = budget.as_mut().map_or(&mut [][..], Budgeted::groups_mut);
        match holder {
            Holder::Session(path) => sites.attach(&self.kernel, path, *links, moved_exits),
            Holder::Group(at) => groups[at].add_exits(&self.kernel, *links, sites),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_told_apart_from_backtraces() {
        let told = |exceptions, backtraces, switches, signals| {
            restored_before(Restored { exceptions, backtraces, switches, signals })
        };
        assert_eq!(told(0, 0, 0, 0), None);
        assert_eq!(told(0, 1, 0, 0).as_deref(), Some("1 backtrace"));
        assert_eq!(told(3, 2, 0, 0).as_deref(), Some("3 exceptions and 2 backtraces"));
        let all =
            "1 exception, 2 backtraces, 3 changes of stacks and 4 signals on a stack of their own";
        assert_eq!(told(1, 2, 3, 4).as_deref(), Some(all));
    }
}
