//! The armed probes, their functions, and their costs.

use super::{budgeted::Budgeted, dear::DearCalls, guarding::Guarding, millis};
use crate::{
    bpf::{Attachment, LinkKind, Role, Unmet},
    session::{
        budget::{
            costs::{Costs, HitCosts},
            slowdown::SlowdownPolicy,
        },
        plan::{Identity, Plan, Planner, again::ReturnProbed, identity},
        run::{
            arm::LinkOptions,
            groups::{LinkGroup, take_return_probes},
            unarmed::Unarmed,
        },
    },
    target::process::maps::MappedObject,
};
use std::{collections::HashSet, time::Instant};

pub(crate) struct Arming {
    pub(super) planner: Planner,
    pub(super) links: LinkOptions,
    pub(super) attachments: Vec<Attachment>,
    /// Probes on the ways out of functions that lost their return probes one by one. They go if all
    /// return probes do: then all these functions get other probes.
    pub(super) moved_exits: Vec<Attachment>,
    pub(super) guarding: Guarding,
    pub(super) return_probed: Vec<ReturnProbed>,
    /// Objects that have been looked at.
    objects: HashSet<Identity>,
    pub(super) costs: Costs,
    pub(super) dear: DearCalls,
    pub(super) unarmed: Unarmed,
    pub(super) budget: Option<Budgeted>,
    /// Calls that did not meet a condition, as far as they are counted.
    pub(super) unmet: Vec<Unmet>,
}

impl Arming {
    /// `budget`: the percentage of the target's CPU time that the probes may cost. `plan`: what is armed
    /// first.
    pub(crate) fn new(
        planner: Planner,
        links: LinkOptions,
        budget: Option<f64>,
        max_slowdown: SlowdownPolicy,
        plan: &Plan,
    ) -> Self {
        let costs = match budget.is_some() || max_slowdown.needs_costs() {
            true => HitCosts::measured(),
            false => HitCosts::known(plan.planned()),
        };
        Self {
            planner,
            links,
            attachments: Vec::new(),
            moved_exits: Vec::new(),
            guarding: Guarding::default(),
            return_probed: Vec::new(),
            objects: HashSet::new(),
            costs: Costs::new(costs),
            dear: DearCalls::default(),
            unarmed: Unarmed::default(),
            budget: budget.map(Budgeted::new),
            unmet: Vec::new(),
        }
    }

    /// Returns the objects that have not been looked at before.
    pub(super) fn take_new(&mut self, mapped: &[MappedObject]) -> Vec<MappedObject> {
        let new = self.unknown(mapped);
        self.know(&new);
        new
    }

    /// Returns the same, and takes no note.
    pub(super) fn unknown(&self, mapped: &[MappedObject]) -> Vec<MappedObject> {
        let new = mapped.iter().filter(|object| !self.objects.contains(&identity(object)));
        new.cloned().collect()
    }

    /// Marks the objects as looked at.
    pub(super) fn know(&mut self, objects: &[MappedObject]) {
        self.objects.extend(objects.iter().map(identity));
    }

    /// Returns the number of places that carry a probe.
    pub(super) fn places(&self) -> usize {
        let groups = self.budget.iter().flat_map(|budgeted| budgeted.groups());
        let attachments = self.own().chain(groups.flat_map(LinkGroup::attachments));
        attachments.map(Attachment::sites).sum()
    }

    /// Gives up all return probes, and hands over those that are in place.
    pub(super) fn take_return_probes(&mut self) -> Vec<Attachment> {
        let mut taken = take_return_probes(&mut self.attachments);
        taken.append(&mut self.moved_exits);
        self.guarding.forget_functions();
        let groups = self.budget.iter_mut().flat_map(Budgeted::groups_mut);
        taken.extend(groups.flat_map(LinkGroup::take_return_probes));
        taken
    }

    pub(super) fn detaches_fast(&self) -> bool {
        // Groups have no perf links.
        self.own().all(|attachment| attachment.kind() != LinkKind::Perf)
    }

    /// Returns the links of probes that are in no group.
    fn own(&self) -> impl Iterator<Item = &Attachment> {
        self.attachments.iter().chain(&self.moved_exits)
    }

    /// Takes the probes away, except those through which markers deliver the rest of their events.
    pub(super) fn detach_sources(&mut self) {
        let is_source = |a: &mut Attachment| {
            !matches!(a.role(), Role::Flush | Role::FlushWaiting | Role::Register)
        };
        let mut sources: Vec<_> = self.attachments.extract_if(.., is_source).collect();
        sources.append(&mut self.moved_exits);
        self.take_away(sources);
    }

    pub(super) fn detach(&mut self) {
        let mut all = std::mem::take(&mut self.attachments);
        all.append(&mut self.moved_exits);
        self.take_away(all);
    }

    /// Takes the guards away, when no frame is hijacked any more.
    pub(super) fn detach_guards(&mut self) {
        let guards = self.guarding.take_attachments();
        self.take_away(guards);
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
