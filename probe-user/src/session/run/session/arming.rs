//! The armed probes, their functions, and their costs.

use super::{budgeted::Budgeted, millis};
use crate::{
    bpf::{Attachment, LinkKind, Role},
    session::{
        budget::costs::{Costs, HitCosts},
        plan::{Identity, Planner, identity},
        run::{arm::LinkOptions, groups::Group, unarmed::Unarmed},
    },
    target::maps::MappedObject,
};
use std::{collections::HashSet, time::Instant};

pub(crate) struct Arming {
    pub(super) planner: Planner,
    pub(super) links: LinkOptions,
    pub(super) attachments: Vec<Attachment>,
    /// Objects that have been looked at.
    objects: HashSet<Identity>,
    pub(super) costs: Costs,
    pub(super) unarmed: Unarmed,
    pub(super) budget: Option<Budgeted>,
}

impl Arming {
    /// `budget`: the percentage of the target's CPU time that the probes may cost.
    pub(crate) fn new(planner: Planner, links: LinkOptions, budget: Option<f64>) -> Self {
        let costs = match budget {
            Some(_) => HitCosts::measured(),
            None => HitCosts::default(),
        };
        Self {
            planner,
            links,
            attachments: Vec::new(),
            objects: HashSet::new(),
            costs: Costs::new(costs),
            unarmed: Unarmed::default(),
            budget: budget.map(Budgeted::new),
        }
    }

    /// Returns the objects that have not been looked at before.
    pub(super) fn take_new(&mut self, mapped: Vec<MappedObject>) -> Vec<MappedObject> {
        let new: Vec<MappedObject> =
            mapped.into_iter().filter(|o| !self.objects.contains(&identity(o))).collect();
        self.know(&new);
        new
    }

    /// Marks the objects as looked at.
    pub(super) fn know(&mut self, objects: &[MappedObject]) {
        self.objects.extend(objects.iter().map(identity));
    }

    /// Returns the number of places that carry a probe.
    pub(super) fn places(&self) -> usize {
        let groups = self.budget.iter().flat_map(|budgeted| budgeted.groups());
        let attachments = self.attachments.iter().chain(groups.flat_map(Group::attachments));
        attachments.map(Attachment::sites).sum()
    }

    /// Takes return probes away if the target would die through them. Returns the number of
    /// functions that had one.
    pub(super) fn drop_return_probes_if_deadly(&mut self) -> usize {
        if self.planner.allows_return_probes() {
            return 0;
        }
        let deadly = |attachment: &mut Attachment| attachment.role() == Role::Function;
        let deadly: Vec<_> = self.attachments.extract_if(.., deadly).collect();
        let groups = self.budget.iter_mut().flat_map(Budgeted::groups_mut);
        deadly.iter().map(Attachment::sites).sum::<usize>()
            + groups.map(Group::drop_return_probes).sum::<usize>()
    }

    pub(super) fn detaches_fast(&self) -> bool {
        // Groups have no perf links.
        self.attachments.iter().all(|attachment| attachment.kind() != LinkKind::Perf)
    }

    /// Takes the probes away, except those through which markers deliver the rest of their events.
    pub(super) fn detach_sources(&mut self) {
        let is_source = |a: &mut Attachment| !matches!(a.role(), Role::Flush | Role::Register);
        let sources = self.attachments.extract_if(.., is_source).collect();
        self.take_away(sources);
    }

    pub(super) fn detach(&mut self) {
        let all = std::mem::take(&mut self.attachments);
        self.take_away(all);
    }

    /// Takes these probes away, and those of all groups.
    fn take_away(&mut self, mut attachments: Vec<Attachment>) {
        for group in self.budget.iter_mut().flat_map(Budgeted::groups_mut) {
            attachments.extend(group.take_attachments());
        }
        if attachments.is_empty() {
            return;
        }
        let begun = Instant::now();
        for error in Attachment::detach_all(attachments) {
            tracing::warn!("{error}");
        }
        tracing::info!("all probes taken away in {:.1} ms", millis(begun));
    }
}
