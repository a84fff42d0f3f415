//! Logs each problem once: hours of failure are one line, and so is their end.

use super::ids::TargetName;
use crate::ui;
use std::collections::{HashMap, HashSet};

/// The last message about each target.
#[derive(Default)]
pub(super) struct SaidOnce {
    of_targets: HashMap<TargetName, String>,
    twice_matched: HashSet<(TargetName, TargetName)>,
    in_vain: HashSet<TargetName>,
}

impl SaidOnce {
    /// Logs a message unless it was the last one about this target, whatever the process.
    pub(super) fn say(&mut self, target: &TargetName, what: &str) {
        let without_numbers: String = what.chars().filter(|c| !c.is_ascii_digit()).collect();
        let before = self.of_targets.insert(target.clone(), without_numbers.clone());
        if before.as_ref() != Some(&without_numbers) {
            ui::say(&format!("target {target}: {what}"));
        }
    }

    /// Records that all is well, so that the next problem is logged.
    pub(super) fn forget(&mut self, target: &TargetName) {
        self.of_targets.remove(target);
    }

    /// Logs a process that two targets match.
    pub(super) fn twice_matched(&mut self, has_it: &TargetName, other: &TargetName, pid: u32) {
        if self.twice_matched.insert((has_it.clone(), other.clone())) {
            ui::say(&format!(
                "process {pid} matches the targets {has_it} and {other}: {has_it} has it, which comes \
                 first in the configuration"
            ));
        }
    }

    /// Logs that slow calls are wanted of functions that are not traced in a process.
    pub(super) fn watched_in_vain(&mut self, target: &TargetName, pid: u32) {
        if self.in_vain.insert(target.clone()) {
            ui::say(&format!(
                "target {target}: none of the functions that are traced in process {pid} so far is one of \
                 `slow_functions`: no slow call is kept"
            ));
        }
    }

    /// Forgets all messages, for a new configuration.
    pub(super) fn forget_all(&mut self) {
        *self = Self::default();
    }
}
