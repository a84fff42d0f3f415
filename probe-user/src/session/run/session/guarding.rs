//! Guards of return probes: their links, and the functions whose frames they restored.
//!
//! A function that is unwound, or open while its thread changes stacks, would cost a hold each
//! time. So it loses its return probe when that is first seen, and gets probes on its ways out.

use super::Session;
use crate::{
    bpf::{self, Attachment, BpfError, Role, Site},
    session::{
        plan::{Identity, ObjectGuards, ObjectPlan, Sites, identity},
        run::arm::{attach_some, exit_sites},
    },
    target::{
        maps::MappedObject,
        plan::{ExitPlacement, ExitSite, GuardKind, Placement},
        process::Process,
    },
    ui::units::counted,
};
use ctrace_common::{Cookie, RestoreReason};
use ctrace_core::{
    function::ExitSeen,
    report::render::clean::clean,
    units::{FuncId, Pid},
};
use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

/// Moved functions that are named.
const MOST_NAMED: usize = 5;

/// A function with a return probe.
struct Movable {
    function: FuncId,
    path: PathBuf,
    placement: Placement,
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
    /// The first of their names.
    names: Vec<String>,
}

impl Guarding {
    /// Knows an object's functions with return probes; `first` is the id of its first function.
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

    /// Returns whether there are guards.
    pub(super) fn is_in_place(&self) -> bool {
        !self.attachments.is_empty()
    }

    /// Hands over the links of all guards.
    pub(super) fn take_attachments(&mut self) -> Vec<Attachment> {
        std::mem::take(&mut self.attachments)
    }

    /// Returns a note on the functions that were moved, for a reader of the report.
    fn moved_note(&self) -> Option<String> {
        let (moved, lost) = self.moved;
        if moved + lost == 0 {
            return None;
        }
        let functions = match moved + lost {
            1 => "1 function lost its return probe".to_owned(),
            many => format!("{} lost their return probes", counted(many, "function", "functions")),
        };
        let more = (moved + lost) as usize - self.names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let mut note = format!(
            "{functions} ({}{more}), because an exception or a change of stacks went through; probes \
             on the ways out took over, and calls in between are untimed",
            self.names.join(", ")
        );
        if lost > 0 {
            note += &format!("; of {lost} the ends are not seen any more");
        }
        Some(note)
    }
}

/// Returns a note on the threads that were held, by the reason.
fn restored_note(count: impl Fn(RestoreReason) -> u64) -> Option<String> {
    let counts = [
        (count(RestoreReason::Unwind), "exception or backtrace", "exceptions or backtraces"),
        (count(RestoreReason::Switch), "change of stacks", "changes of stacks"),
        (
            count(RestoreReason::Signal),
            "signal on a stack of its own",
            "signals on a stack of their own",
        ),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, one, many)| counted(count, one, many)).collect();
    (!counts.is_empty())
        .then(|| format!("return addresses were put back in time before {}", counts.join(", ")))
}

impl Session {
    /// Returns the notes on what was guarded, for a reader of the report.
    pub(super) fn guarding_notes(&self) -> impl Iterator<Item = String> {
        let restored = restored_note(|reason| self.kernel.restored(reason));
        restored.into_iter().chain(self.arming.guarding.moved_note())
    }

    /// Puts guards into these files, before any of their return probes.
    pub(super) fn guard(&mut self, objects: &[ObjectGuards]) -> Result<(), BpfError> {
        let guarding = &mut self.arming.guarding;
        for object in objects {
            if !guarding.files.insert(object.identity) {
                continue;
            }
            for (role, kind) in
                [(Role::GuardUnwind, GuardKind::Unwind), (Role::GuardSwitch, GuardKind::Switch)]
            {
                let sites = object.sites.iter().filter(|site| site.kind == kind);
                let site = |offset| Site { offset, ref_ctr_offset: 0, cookie: Cookie::plain(0) };
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
        }
        Ok(())
    }

    /// Moves functions whose frames were restored to probes on their ways out.
    pub(super) fn move_restored(&mut self) {
        for pid in self.target.alive() {
            let addresses = self.kernel.take_restored(pid);
            if !addresses.is_empty() {
                self.move_those(pid, &addresses);
            }
        }
    }

    fn move_those(&mut self, pid: Pid, addresses: &[u64]) {
        let objects = Process::open(pid.0).ok().and_then(|process| process.objects().ok());
        let mut movable = self.arming.guarding.take(addresses, &objects.unwrap_or_default());
        let at = bpf::now();
        movable.retain(|moved| match self.kernel.spare_returns(moved.function) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!("{error}");
                false
            }
        });
        let mut exits = Vec::new();
        for Movable { function, path, placement } in movable {
            let attached = match self.arming.planner.moved(&placement).exit {
                // A budget arms and disarms entries and ways out together.
                ExitPlacement::Sites(sites) if self.arming.budget.is_none() => {
                    self.arm_ways_out(function, &path, &sites)
                }
                _ => Ok(false),
            };
            let attached = attached.unwrap_or_else(|error| {
                tracing::warn!("{error}");
                false
            });
            let guarding = &mut self.arming.guarding;
            if guarding.names.len() < MOST_NAMED {
                let name = &self.engine.functions()[function.index()].name;
                guarding.names.push(clean(name).into_owned());
            }
            let (moved, lost) = &mut guarding.moved;
            *(if attached { moved } else { lost }) += 1;
            let exit = if attached { ExitSeen::ByExitSites } else { ExitSeen::Never };
            exits.push((function, exit));
        }
        if !exits.is_empty() {
            self.engine.change_exits_only(at, exits);
        }
    }

    fn arm_ways_out(
        &mut self,
        function: FuncId,
        path: &Path,
        sites: &[ExitSite],
    ) -> Result<bool, BpfError> {
        let sites = exit_sites(&self.kernel, sites, function)?;
        let (links, attachments) = (self.arming.links, &mut self.arming.attachments);
        attach_some(&self.kernel, path, Role::ExitSite, &sites, links, attachments)?;
        Ok(true)
    }
}
