//! The known stacks of a process, from its mappings.

use crate::units::Pid;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Known stacks, by process.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    processes: HashMap<Pid, BTreeMap<u64, u64>>,
}

impl Regions {
    /// Replaces the known stacks of a process.
    pub(crate) fn set(&mut self, pid: Pid, stacks: impl IntoIterator<Item = Range<u64>>) {
        let stacks = stacks.into_iter().filter(|stack| !stack.is_empty());
        self.processes.insert(pid, stacks.map(|stack| (stack.start, stack.end)).collect());
    }

    /// Forgets the stacks of a process that runs a new program or is gone.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.processes.remove(&pid);
    }

    /// Copies the stacks: a forked process starts with a copy of its parent's memory.
    pub(crate) fn copy(&mut self, from: Pid, to: Pid) {
        if let Some(stacks) = self.processes.get(&from).cloned() {
            self.processes.insert(to, stacks);
        }
    }

    /// Returns the known stack that contains `sp`.
    pub(crate) fn stack_of(&self, pid: Pid, sp: u64) -> Option<Range<u64>> {
        let (&low, &high) = self.processes.get(&pid)?.range(..=sp).next_back()?;
        (sp < high).then_some(low..high)
    }

    /// Returns the unclaimed space around `sp`, which lies in no known stack.
    pub(crate) fn space_around(&self, pid: Pid, sp: u64) -> Range<u64> {
        let Some(stacks) = self.processes.get(&pid) else { return 0..u64::MAX };
        let low = stacks.range(..=sp).next_back().map_or(0, |(_, &high)| high);
        let high = stacks.range(sp..).next().map_or(u64::MAX, |(&low, _)| low);
        low..high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_in_one_stack_or_between() {
        let (mut regions, pid) = (Regions::default(), Pid(1));
        regions.set(pid, [1..2, 5..6]);
        regions.set(pid, [100..200, 300..400]);
        regions.copy(pid, Pid(2));
        for (pid, sp, stack, space) in [
            (pid, 100, Some(100..200), None),
            (pid, 199, Some(100..200), None),
            (pid, 200, None, Some(200..300)),
            (pid, 50, None, Some(0..100)),
            (pid, 400, None, Some(400..u64::MAX)),
            (Pid(2), 150, Some(100..200), None),
            (Pid(3), 150, None, Some(0..u64::MAX)),
        ] {
            assert_eq!(regions.stack_of(pid, sp), stack, "{sp}");
            if let Some(space) = space {
                assert_eq!(regions.space_around(pid, sp), space, "{sp}");
            }
        }
        regions.forget(pid);
        assert_eq!(regions.stack_of(pid, 150), None);
    }
}
