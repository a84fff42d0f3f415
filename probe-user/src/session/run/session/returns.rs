//! Return probes that have to go, because a library came that unwinds or switches stacks, and the
//! probes that take their place.

use super::Session;
use crate::{
    bpf::Attachment,
    session::{
        plan::{Planned, Sites, again::ReturnProbed, exit_seen, identity},
        run::arm::ByRole,
    },
    target::process::maps::MappedObject,
    ui::text::units::counted,
};
use ctrace_common::MOST_HIJACKED;
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
        let functions = counted(
            probed.iter().flat_map(ReturnProbed::ids).count() as u64,
            "function",
            "functions",
        );
        let (removed, why) = (self.progress.seconds(), self.against_return_probes());
        if self.arming.guarding.can_move_all() {
            let unseen = match self.move_all() {
                0 => String::new(),
                unseen => format!(
                    "; the ends of {} are not seen since",
                    counted(unseen, "function", "functions")
                ),
            };
            return self.notes.add_in_any_case(format!(
                "the return probes of {functions} ended {removed:.3} s after the start, because {why} \
                 would have crashed the target. Probes on the ways out took over at {:.3} s: calls in \
                 between, and those under way, are counted but not timed{unseen} (--returns ret-sites \
                 avoids it)",
                self.progress.seconds(),
            ));
        }
        let lost = self.replace_return_probes(&probed, mapped);
        self.notes.add_in_any_case(format!(
            "the return probes of {functions} were removed {removed:.3} s after the start, because {why} \
             would have crashed the target. Probes on the ways out took over at {:.3} s: calls in \
             between are not counted, and those under way ended unseen (--returns ret-sites avoids it)",
            self.progress.seconds(),
        ));
        for why in lost {
            self.notes
                .add_in_any_case(format!("some of these functions are not traced any more: {why}"));
        }
    }

    /// Returns a note on calls that the kernel has given no return probe.
    pub(super) fn too_deep_note(&self) -> Option<String> {
        let calls = self.engine.too_deep();
        (calls > 0).then(|| {
            format!(
                "{} not seen to end, inside {MOST_HIJACKED} other calls with return probes: the kernel \
                 takes no more of a thread at one time (--returns ret-sites has no such limit)",
                counted(calls, "call was", "calls were")
            )
        })
    }

    /// Returns what stands against return probes, in front of a verb.
    fn against_return_probes(&self) -> String {
        let [unguarded, against] = self.arming.planner.against_return_probes();
        let all = if unguarded.is_empty() { against } else { unguarded };
        match all.first() {
            Some(first) => format!("{first}, which"),
            None => "what was loaded".to_owned(),
        }
    }

    /// Gives no call a return probe any more, and moves all functions that had one to probes on their
    /// ways out. Entries are seen all the time. Returns the number of those whose ends are not seen since.
    fn move_all(&mut self) -> u64 {
        // For good: nothing is replaced any more, and what is open is put back.
        self.restore_open_frames();
        let all = self.arming.guarding.take_all();
        self.move_those(all, None)
    }

    /// Takes the return probes away, and puts other probes on these functions. Returns what became of
    /// those that have none.
    fn replace_return_probes(
        &mut self,
        probed: &[ReturnProbed],
        mapped: &[MappedObject],
    ) -> Vec<String> {
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
        self.change_exits(probed, &replaced);
        for replaced in &replaced {
            if let Err(error) = self.arm_instead(replaced) {
                lost.push(format!("{error:#}"));
            }
        }
        lost
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
        let infos = self.engine.functions();
        let reads_arguments =
            |id: FuncId| infos[id.index()].condition.is_some() || infos[id.index()].has_arguments();
        let placed = self.arming.planner.place_again(object, &open_path, reads_arguments)?;
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
        let (at, exits): (_, Vec<_>) = (self.give_up_open(), exits.into_values().collect());
        self.tell_counting_of(&exits);
        if let Some(counts) = self.kernel.counts() {
            counts.forsake(exits.iter().map(|new| new.function), at);
        }
        self.engine.change_exits(at, exits);
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
