//! Return probes that have to go, because a library came that unwinds or switches stacks, and the
//! probes that take their place.

use super::Session;
use crate::{
    bpf::{self, Attachment},
    session::{
        plan::{Planned, Sites, again::ReturnProbed, exit_seen, identity},
        run::arm::ByRole,
    },
    target::process::maps::MappedObject,
    ui::text::units::counted,
};
use ctrace_core::{
    engine::NewExit,
    function::{ExitSeen, FunctionInfo},
    units::FuncId,
};
use std::{collections::HashMap, path::PathBuf};

/// An object whose functions get other probes.
struct Replaced<'a> {
    object: &'a ReturnProbed,
    open_path: PathBuf,
    functions: Vec<(FuncId, Planned)>,
}

impl Session {
    /// Removes the return probes if a library that unwinds or switches stacks was loaded: the
    /// target would die through them. The ends of their functions are seen at the ways out instead.
    /// `mapped` are all objects of the process that loaded it.
    pub(super) fn replace_return_probes_if_deadly(&mut self, mapped: &[MappedObject]) {
        if self.arming.planner.allows_return_probes() || self.arming.return_probed.is_empty() {
            return;
        }
        let probed = std::mem::take(&mut self.arming.return_probed);
        let (removed, count) =
            (self.progress.seconds(), probed.iter().flat_map(ReturnProbed::ids).count());
        let mut deadly = self.arming.take_return_probes();
        // The kernel takes its time to let go of them.
        Attachment::begin_to_detach(&mut deadly);
        let mut lost = Vec::new();
        let replaced = probed.iter().filter_map(|object| {
            self.place_instead(object, mapped)
                .inspect_err(|error| lost.push(error.to_string()))
                .ok()
        });
        let replaced: Vec<Replaced<'_>> = replaced.collect();
        for error in Attachment::detach_all(deadly) {
            tracing::warn!("{error}");
        }
        // Nobody guards what may unwind or switch from now on.
        self.restore_open_frames();
        self.change_exits(&probed, &replaced);
        for replaced in &replaced {
            if let Err(error) = self.arm_instead(replaced) {
                lost.push(format!("{error:#}"));
            }
        }
        self.notes.add_in_any_case(format!(
            "the return probes of {} were removed {removed:.3} s after the start, because what was \
             loaded unwinds or switches stacks and would have crashed the target. Probes on the ways \
             out took over at {:.3} s: calls in between are not counted, and those under way ended \
             unseen (--returns ret-sites avoids it)",
            counted(count as u64, "function", "functions"),
            self.progress.seconds(),
        ));
        for why in lost {
            self.notes
                .add_in_any_case(format!("some of these functions are not traced any more: {why}"));
        }
    }

    /// Finds other places for the probes of an object's functions.
    fn place_instead<'a>(
        &mut self,
        object: &'a ReturnProbed,
        mapped: &[MappedObject],
    ) -> anyhow::Result<Replaced<'a>> {
        // The path that was good before may lead through mappings of the last program.
        let here = mapped.iter().find(|mapped| identity(mapped) == object.identity);
        let open_path = here.map_or(&object.open_path, |mapped| &mapped.open_path).clone();
        let placed = self.arming.planner.place_again(object, &open_path)?;
        let functions = placed.into_iter().map(|(id, placement)| {
            let info = self.engine.functions()[id.index()].clone();
            let info = FunctionInfo { exit: exit_seen(&placement.exit), ..info };
            (id, Planned::new(info, Sites::Function(placement)))
        });
        Ok(Replaced { object, open_path, functions: functions.collect() })
    }

    /// Tells the engine and the costs. Now, nothing of these functions is probed.
    fn change_exits(&mut self, probed: &[ReturnProbed], replaced: &[Replaced<'_>]) {
        let ids = probed.iter().flat_map(ReturnProbed::ids);
        let none = |function| NewExit { function, exit: ExitSeen::Never, probe: None };
        let mut exits: HashMap<_, _> = ids.map(|id| (id, none(id))).collect();
        let hits = self.hits_with_unmet().into_owned();
        for (id, planned) in replaced.iter().flat_map(|replaced| &replaced.functions) {
            let probe = Some(self.arming.costs.of_hits().probe(planned));
            exits.insert(*id, NewExit { function: *id, exit: planned.info.exit, probe });
            self.arming.costs.replace(id.index(), hits[id.index()], planned);
            self.arming.dear.know(id.index(), planned);
        }
        self.engine.change_exits(bpf::now(), exits.into_values().collect());
    }

    fn arm_instead(&mut self, replaced: &Replaced<'_>) -> anyhow::Result<()> {
        let Replaced { object, open_path, functions } = replaced;
        let links = self.arming.links;
        let Some(budgeted) = &mut self.arming.budget else {
            let functions = functions.iter().map(|(id, planned)| (*id, planned));
            let sites = ByRole::new(&self.kernel, open_path, functions)?;
            self.arming.attachments.extend(sites.attach(&self.kernel, links)?);
            return Ok(());
        };
        let groups = budgeted.groups_mut().iter_mut();
        for group in groups.filter(|group| group.identity == object.identity) {
            group.add_sites(&self.kernel, links, open_path, functions)?;
        }
        Ok(())
    }
}
