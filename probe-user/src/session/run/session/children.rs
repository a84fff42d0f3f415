//! The programs of child processes that are not traced: a reader of an empty report learns which
//! program to trace instead.

use crate::{target::process::facts::ProgramFacts, ui::text::units::counted};
use ctrace_core::units::Pid;
use std::collections::BTreeMap;

/// Limits of children that are looked at until they run another program, and of programs.
const MOST_CHILDREN: usize = 64;
const MOST_PROGRAMS: usize = 8;
/// The number of looks at a child. It executes its program soon, or never.
const LOOKS: u8 = 10;

#[derive(Default)]
pub(super) struct Children {
    /// Children that still run the target's program, with the number of looks.
    fresh: Vec<(Pid, u8)>,
    /// The target's program, as long as it was seen.
    own: String,
    /// The number of children that were seen to run a program, by its file.
    programs: BTreeMap<String, u64>,
}

impl Children {
    pub(super) fn add(&mut self, child: Pid) {
        if self.fresh.len() < MOST_CHILDREN {
            self.fresh.push((child, 0));
        }
    }

    /// Looks at the children of a process.
    pub(super) fn look(&mut self, parent: Pid) {
        if self.fresh.is_empty() {
            return;
        }
        if let Some(program) = ProgramFacts::of(parent) {
            self.own = program.exe;
        }
        let Self { fresh, own, programs } = self;
        fresh.retain_mut(|(child, looks)| {
            let Some(program) = ProgramFacts::of(*child) else { return false };
            *looks += 1;
            if *own == program.exe {
                return *looks < LOOKS;
            }
            if programs.len() < MOST_PROGRAMS || programs.contains_key(&program.exe) {
                *programs.entry(program.exe).or_default() += 1;
            }
            false
        });
    }

    /// Returns a note for a reader of the report.
    pub(super) fn note(&self) -> Option<String> {
        let one = |(program, count): (&String, &u64)| match count {
            1 => program.clone(),
            count => format!("{program} ({})", counted(*count, "process", "processes")),
        };
        let programs: Vec<String> = self.programs.iter().map(one).collect();
        (!programs.is_empty()).then(|| {
            format!(
                "child processes ran {}: --follow traces these programs, or give ctrace the one that \
                 you mean",
                programs.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleep() -> Child {
        Command::new("/bin/sleep").arg("100").spawn().expect("starts")
    }

    #[test]
    fn programs_of_children_are_named() {
        let (mut children, mut all) = (Children::default(), [sleep(), sleep()]);
        all.iter().for_each(|child| children.add(Pid(child.id())));
        // One that runs what the target runs, and one that has ended.
        children.add(Pid(std::process::id()));
        children.add(Pid(4_194_304));
        let own = Pid(std::process::id());
        assert_eq!(children.note(), None);
        for _ in 0..2 * LOOKS {
            children.look(own);
        }
        for child in &mut all {
            child.kill().expect("ours");
            child.wait().expect("ours");
        }
        let note = children.note().expect("sleep was seen");
        assert!(note.contains("/sleep (2 processes): --follow"), "{note}");
        let own = ProgramFacts::of(own).expect("alive").exe;
        assert!(!note.contains(&own), "{note}");
        assert!(children.fresh.is_empty());
    }
}
