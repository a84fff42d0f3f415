//! Says things once: what goes wrong for hours is one line in the log, and so is its end.

use super::config::TargetName;
use crate::ui;
use std::collections::{HashMap, HashSet};

/// What was said of which target last.
#[derive(Default)]
pub(super) struct SaidOnce {
    of_targets: HashMap<TargetName, String>,
    twice_matched: HashSet<(TargetName, TargetName)>,
    in_vain: HashSet<TargetName>,
}

impl SaidOnce {
    /// Says it unless it was the last thing said of this target. Which process it was makes no
    /// difference.
    pub(super) fn say(&mut self, target: &TargetName, what: &str) {
        let without_numbers: String = what.chars().filter(|c| !c.is_ascii_digit()).collect();
        let before = self.of_targets.insert(target.clone(), without_numbers.clone());
        if before.as_ref() != Some(&without_numbers) {
            ui::say(&format!("target {target}: {what}"));
        }
    }

    /// It is well: should it go wrong again, that is news.
    pub(super) fn forget(&mut self, target: &TargetName) {
        self.of_targets.remove(target);
    }

    /// A process that two targets match.
    pub(super) fn twice_matched(&mut self, has_it: &TargetName, other: &TargetName, pid: u32) {
        if self.twice_matched.insert((has_it.clone(), other.clone())) {
            ui::say(&format!(
                "process {pid} matches the targets {has_it} and {other}: {has_it} has it, which comes \
                 first in the configuration"
            ));
        }
    }

    /// Slow calls are wanted of functions that are not traced in a process.
    pub(super) fn watched_in_vain(&mut self, target: &TargetName, pid: u32) {
        if self.in_vain.insert(target.clone()) {
            ui::say(&format!(
                "target {target}: none of the functions that are traced in process {pid} so far is one of \
                 `slow_functions`: no slow call is kept"
            ));
        }
    }

    /// Another configuration is another matter.
    pub(super) fn forget_all(&mut self) {
        *self = Self::default();
    }
}
