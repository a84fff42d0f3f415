//! Places the first probes, and those of each object that comes later.

use super::{Session, millis};
use crate::{
    bpf,
    session::{
        plan::{ObjectPlan, Plan, again::ReturnProbed},
        run::{
            arm::{self, ByRole},
            groups,
        },
    },
    target::process::maps::MappedObject,
};
use anyhow::ensure;
use ctrace_core::{
    recording::ObjectRecord,
    units::{Nanos, Pid},
};
use std::{sync::Arc, time::Instant};

impl Session {
    /// Attaches the probes of the first plan. Calls count from the time it is done.
    pub(crate) fn arm(&mut self, plan: &Plan, objects: &[MappedObject]) -> anyhow::Result<()> {
        self.arming.know(objects);
        plan.notes.iter().for_each(|note| self.note(note.clone()));
        let begun = Instant::now();
        self.status.begin();
        // While nobody is held yet: the target may let its memory be read slowly.
        if !self.target.launched {
            self.find_running(self.target.pid, plan, objects);
            self.locate_python(self.target.pid, objects);
        }
        self.guard(&plan.guards)?;
        // Who loads a library is held from now on. Those that came since the plan, and those of other
        // processes, get their guards before any return address is replaced.
        let come = self.guard_arrivals();
        ensure!(
            !self.target.processes.has_traced() || self.arming.planner.is_safe_beside_others(),
            "the processes cannot be traced together: the return probes of a program that one of them runs \
             cannot be guarded; --returns ret-sites needs no guards"
        );
        for object in &plan.objects {
            self.attach(object)?;
        }
        if !self.markers.is_empty() {
            self.adopt_others();
        }
        self.arm_markers(self.target.pid, &plan.objects, objects)?;
        let places = self.arming.places();
        tracing::info!("armed: {places} places in {:.1} ms", millis(begun));
        self.start_clock();
        self.progress.start = bpf::now();
        self.engine.begin(self.progress.start);
        if let Some(counts) = self.kernel.counts() {
            counts.begin(self.progress.start);
        }
        if let Some(counts) = self.kernel.left_out() {
            counts.begin(self.progress.start);
        }
        let cpu = self.target.clock.time().unwrap_or_default();
        if let Some(budgeted) = &mut self.arming.budget {
            budgeted.begin(self.progress.start, cpu);
        }
        if let Some((_, extras)) = self.delivery.content() {
            self.engine.keep_slow_calls(extras.slow_calls);
        }
        self.delivery.begin(self.start_record())?;
        self.arm_arrivals(&come);
        Ok(())
    }

    pub(super) fn attach(&mut self, object: &ObjectPlan) -> anyhow::Result<()> {
        self.know_added();
        let (first, attached_before) =
            (self.arming.costs.functions(), self.arming.attachments.len());
        let attached = self.attach_all(object, first);
        if attached.is_err() {
            // Attach all of the object or nothing.
            self.arming.attachments.truncate(attached_before);
            self.arming.unarmed.add(first..self.arming.costs.functions());
        }
        attached
    }

    fn attach_all(&mut self, object: &ObjectPlan, first: usize) -> anyhow::Result<()> {
        self.engine.add_object(ObjectRecord {
            name: Arc::clone(&object.name),
            path: object.path.display().to_string(),
            build_id: object.build_id.clone(),
        });
        self.arming.costs.add(&object.functions);
        let ids = arm::introduce(&mut self.engine, object, self.arming.costs.of_hits());
        for (id, planned) in ids.iter().zip(&object.functions) {
            self.arming.dear.know(id.index(), planned);
        }
        self.tell_counting(&ids);
        self.watch_slow();
        let mut groups = Vec::new();
        if self.arming.budget.is_some() {
            groups = groups::attach(&self.kernel, self.arming.links, object, &ids)?;
        } else {
            let functions = ids.iter().copied().zip(&object.functions);
            let sites = ByRole::new(&self.kernel, &object.open_path, functions)?;
            self.arming.attachments.extend(sites.attach(&self.kernel, self.arming.links)?);
        }
        if object.markers.is_wanted() {
            self.attach_runtimes(object, first)?;
        }
        // Last: after an error nothing knows of these functions and groups, and their probes go.
        self.arming.guarding.know(object, &ids);
        self.add_groups(groups);
        self.arming.return_probed.extend(ReturnProbed::of(object, first));
        Ok(())
    }

    /// Does the remaining steps before the first event of a marker; the runtimes are attached.
    pub(super) fn arm_markers(
        &mut self,
        pid: Pid,
        plans: &[ObjectPlan],
        mapped: &[MappedObject],
    ) -> anyhow::Result<()> {
        self.engine.sample_clocks(bpf::sample(), Nanos::ZERO);
        self.locate_markers(pid, mapped);
        self.adopt_buffers(pid, mapped);
        for object in plans {
            self.switch_on(object)?;
        }
        Ok(())
    }
}
