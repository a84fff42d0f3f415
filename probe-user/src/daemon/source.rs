//! A session as the source of tables and profiles: its unit, program and build ids.

use super::{
    hub::Hub,
    profiles::{Profiled, profile::Profile},
};
use crate::{
    session::{
        keep::live::Snapshot,
        plan::{Plan, hexadecimal},
    },
    target::{
        object::Object,
        process::{facts::Facts, maps::MappedObject},
        read::budget::{Budget, ObjectLimits},
    },
    ui::output::wall,
};
use ctrace_core::{
    fleet::rows::{Beside, Interval, Origin},
    units::{Nanos, Pid},
};
use std::{collections::HashMap, sync::Arc};

/// See the module.
pub(super) struct Source {
    target: Arc<str>,
    unit: Arc<str>,
    pid: Pid,
    program: String,
    builds: Builds,
    /// CPU time at the end of the interval before.
    cpu: Option<Nanos>,
}

/// The build ids of a process, in hexadecimal digits.
#[derive(Default)]
pub(super) struct Builds {
    program: Option<Arc<str>>,
    objects: HashMap<Arc<str>, Arc<str>>,
}

impl Builds {
    pub(super) fn of(plan: &Plan, mapped: &[MappedObject]) -> Self {
        let known = plan.objects.iter();
        let known =
            known.filter_map(|it| Some((Arc::clone(&it.name), it.build_id.as_deref()?.into())));
        let objects: HashMap<_, Arc<str>> = known.collect();
        let main = mapped.iter().find(|object| object.is_main);
        let program = main.and_then(|main| {
            let planned = plan.objects.iter().find(|object| object.path == main.path);
            planned
                .and_then(|object| object.build_id.as_deref().map(Into::into))
                .or_else(|| read(main))
        });
        Self { program, objects }
    }
}

/// Reads the build id of a program of which nothing is traced.
fn read(main: &MappedObject) -> Option<Arc<str>> {
    let limits = ObjectLimits::DEFAULT;
    let object = Object::open_one_of(main, limits, &Budget::of_all(limits)).ok()?;
    object.build_id().map(|id| hexadecimal(id).into())
}

impl Source {
    pub(super) fn new(target: &Arc<str>, facts: &Facts, builds: Builds) -> Self {
        // Names of scopes and of users' sessions differ from machine to machine, and are many.
        let service = facts.unit().filter(|unit| unit.ends_with(".service"));
        Self {
            target: Arc::clone(target),
            unit: service.map_or_else(|| Arc::clone(target), Into::into),
            pid: facts.pid,
            program: facts.program.exe.clone(),
            builds,
            cpu: None,
        }
    }

    /// Hands an interval to all who want it.
    pub(super) fn deliver(&mut self, snapshot: &Snapshot, hub: &Hub) {
        let before = std::mem::replace(&mut self.cpu, snapshot.cpu);
        let (fleet, profiles) = (hub.fleet(), hub.profiles());
        if !fleet.is_on() && profiles.is_none() {
            return;
        }
        let offset = wall::unix_offset_ns();
        let epoch = |Nanos(time): Nanos| offset.saturating_add_unsigned(time);
        let origin = Origin {
            start_ns: epoch(snapshot.report.start_ns),
            end_ns: epoch(snapshot.report.end_ns),
            target: Arc::clone(&self.target),
            pid: self.pid,
            version: self.builds.program.clone(),
        };
        let build_id = |object: &str| self.builds.objects.get(object).cloned();
        if let Some(profiles) = profiles {
            let profile = Profile::of(&snapshot.report, &build_id);
            profiles.put(Profiled {
                origin: origin.clone(),
                program: self.program.clone(),
                profile,
            });
        }
        if fleet.is_on() {
            let beside = Beside {
                spent: &snapshot.spent,
                cpu: snapshot.cpu.zip(before).map(|(now, before)| now.since(before)),
                build_id: &build_id,
                program: &self.program,
                epoch: &epoch,
            };
            fleet.put(&self.unit, Interval::of(&snapshot.report, origin, &beside));
        }
    }
}
