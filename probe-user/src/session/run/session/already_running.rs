//! Functions that are running already when tracing begins, such as `main` or an event loop: nothing
//! tells of these calls until they end. Without this, a report says that they were not called. Words
//! that ended calls have left on a stack look the same, so all of it is told as what seems to be.

use super::Session;
use crate::{
    session::plan::{Plan, identity},
    target::process::{frames::Frames, maps::MappedObject, patience},
};
use ctrace_core::{
    report::{Report, RunningBefore, render::rows::is_never_called},
    units::Pid,
};
use std::sync::Arc;

impl Session {
    /// Looks which of these functions the threads of the process seem to be in. Return addresses must
    /// not be replaced yet.
    pub(super) fn find_running(&mut self, pid: Pid, plan: &Plan, mapped: &[MappedObject]) {
        let mut frames = Frames::default();
        let mut found = Vec::new();
        for object in &plan.objects {
            let same = |it: &&MappedObject| identity(it) == object.identity;
            let Some(mapped) = mapped.iter().find(same) else { continue };
            for planned in object.functions.iter().filter(|planned| !planned.code.is_empty()) {
                frames.add(mapped, &planned.code, found.len());
                let (name, object) = (Arc::clone(&planned.info.name), Arc::clone(&object.name));
                found.push(RunningBefore { name, object });
            }
        }
        // The target may keep its memory from being read.
        match patience::within(pid, move || frames.find(pid)) {
            Ok(running) => {
                let running = running.into_iter().map(|at| found[at].clone());
                self.target.report.already_running = running.collect();
            }
            Err(error) => tracing::info!("its stacks are not read: {error}"),
        }
    }

    /// Forgets those that have calls in the report of an interval: of later intervals it would not be
    /// true that they have no call since.
    pub(super) fn forget_running(&mut self, report: &Report) {
        let has_calls = |it: &RunningBefore| {
            let mut functions = report.functions.iter();
            let of = functions.find(|f| f.name == it.name && f.object == it.object);
            of.is_some_and(|function| !is_never_called(function))
        };
        self.target.report.already_running.retain(|it| !has_calls(it));
    }
}
