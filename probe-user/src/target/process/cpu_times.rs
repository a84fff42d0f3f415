//! The CPU time of a process by kind: the kernel charges the work of a probe as system time.

use ctrace_core::units::Nanos;

/// CPU time, by where it was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    pub user: Nanos,
    pub system: Nanos,
}

impl CpuTimes {
    /// Returns both kinds together.
    pub(crate) fn total(self) -> Nanos {
        self.user.saturating_add(self.system)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let user = self.user.saturating_add(other.user);
        Self { user, system: self.system.saturating_add(other.system) }
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { user: self.user.since(earlier.user), system: self.system.since(earlier.system) }
    }
}
