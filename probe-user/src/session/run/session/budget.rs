//! The steps of a session that concern its budget, if it has one.

use super::{Arming, Session, budgeted::Budgeted, scene::Scene};
use crate::{
    bpf::{self, BpfError},
    session::{plan::ObjectPlan, run::groups::LinkGroup},
};
use ctrace_core::{report::Report, units::Nanos};

impl Session {
    /// Returns the budget, if there is one, and the parts of the session that concern it.
    fn budgeted(&mut self) -> Option<(&mut Budgeted, Scene<'_>)> {
        let Arming { links, costs, budget, .. } = &mut self.arming;
        let scene = Scene {
            kernel: &self.kernel,
            links: *links,
            engine: &mut self.engine,
            costs,
            clock: &self.target.clock,
            notes: &mut self.notes,
            start: self.progress.start,
            settled: self.progress.settled,
        };
        Some((budget.as_mut()?, scene))
    }

    /// Adds an object's groups, all of whose probes are in place.
    pub(super) fn add_groups(&mut self, groups: Vec<LinkGroup>) {
        if let Some((budget, scene)) = self.budgeted() {
            let now = scene.known(bpf::now()).time;
            groups.into_iter().for_each(|group| budget.add(group, now));
        }
    }

    /// Raises the semaphores of the object's scopes.
    pub(super) fn switch_groups_on(&mut self, object: &ObjectPlan) -> Result<(), BpfError> {
        self.budgeted().map_or(Ok(()), |(budget, scene)| budget.switch_on(object, &scene))
    }

    /// Returns the time at which [`Self::tend_budget`] must be called, besides now and then.
    pub(crate) fn budget_due(&self) -> Option<Nanos> {
        self.arming.budget.as_ref().and_then(Budgeted::due)
    }

    pub(crate) fn tend_budget(&mut self) {
        let is_over = self.progress.finishing;
        if let Some((budget, mut scene)) = self.budgeted().filter(|_| !is_over) {
            budget.tend(&mut scene);
        }
    }

    /// Adds to a report which functions were armed for a part of the time only. `reset`: a new
    /// interval begins.
    pub(super) fn add_samples(&mut self, report: &mut Report, end: Nanos, reset: bool) {
        if let Some((budget, scene)) = self.budgeted() {
            budget.add_samples(report, &scene.known(end), reset);
            self.engine.sample_polls(report);
        }
    }
}
