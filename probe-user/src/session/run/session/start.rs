//! The first probes, and those of each object that comes later.

use super::{Session, millis, nanos};
use crate::{
    bpf::{self, Attachment},
    session::{
        plan::{ObjectPlan, Plan, identity},
        run::{
            arm::{self, ByRole},
            groups::Group,
        },
    },
    target::maps::MappedObject,
};
use ctrace_core::{
    recording::ObjectRecord,
    units::{Nanos, Pid},
};
use std::{sync::Arc, time::Instant};

impl Session {
    /// Attaches the probes of the first plan; calls count from the time it is done.
    pub(crate) fn arm(&mut self, plan: &Plan, objects: &[MappedObject]) -> anyhow::Result<()> {
        self.armed.extend(objects.iter().map(identity));
        plan.notes.iter().for_each(|note| self.note(note.clone()));
        let begun = Instant::now();
        for object in &plan.objects {
            self.attach(object)?;
        }
        self.arm_markers(self.parts.pid, &plan.objects, objects)?;
        let groups = self.budget.iter().flat_map(|budgeted| budgeted.groups());
        let attachments = self.attachments.iter().chain(groups.flat_map(Group::attachments));
        let places: usize = attachments.map(Attachment::sites).sum();
        tracing::info!("armed: {places} places in {:.1} ms", millis(begun));
        self.start_clock();
        self.start = bpf::now();
        self.parts.engine.begin(self.start);
        let cpu = self.clock.time().unwrap_or_default();
        if let Some(budgeted) = &mut self.budget {
            budgeted.begin(self.start, cpu);
        }
        let interval = self.parts.output.interval();
        self.reporting.next = interval.map(|i| self.start.saturating_add(nanos(i)));
        self.begin_recording()?;
        Ok(())
    }

    pub(super) fn attach(&mut self, object: &ObjectPlan) -> anyhow::Result<()> {
        let (first, attached_before) = (self.costs.functions(), self.attachments.len());
        let attached = self.attach_all(object, first);
        if attached.is_err() {
            // All of the object or nothing.
            self.attachments.truncate(attached_before);
            self.unarmed.add(first..self.costs.functions());
        }
        attached
    }

    fn attach_all(&mut self, object: &ObjectPlan, first: usize) -> anyhow::Result<()> {
        let parts = &mut self.parts;
        parts.engine.add_object(ObjectRecord {
            name: Arc::clone(&object.name),
            path: object.path.display().to_string(),
            build_id: object.build_id.clone(),
        });
        self.costs.add(&object.functions);
        let ids = arm::introduce(&mut parts.engine, object);
        if let Some(flight) = &parts.flight {
            parts.engine.watch_slow(flight.threshold(), |function| flight.is_watched(function));
        }
        if self.budget.is_some() {
            self.attach_groups(object, &ids)?;
        } else {
            let functions = ids.into_iter().zip(&object.functions);
            let sites = ByRole::new(&parts.kernel, &object.open_path, functions)?;
            self.attachments.extend(sites.attach(&parts.kernel, parts.links)?);
        }
        if object.markers.is_wanted() {
            self.attach_runtimes(object, first)?;
        }
        Ok(())
    }

    /// Runtimes are attached: what remains before the first event of a marker.
    pub(super) fn arm_markers(
        &mut self,
        pid: Pid,
        plans: &[ObjectPlan],
        mapped: &[MappedObject],
    ) -> anyhow::Result<()> {
        self.parts.engine.sample_clocks(bpf::sample(), Nanos::ZERO);
        self.locate_markers(pid, mapped);
        self.adopt_buffers(pid, mapped);
        for object in plans {
            self.switch_on(object)?;
        }
        Ok(())
    }
}
