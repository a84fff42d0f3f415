//! The groups of a budget: what each costs, and when it is armed.

use super::window::LONGEST_PERIOD;
use ctrace_core::units::Nanos;

/// A calmer target is expected to hit probes less often, by no more than this factor.
const LEAST_CALM: f64 = 0.02;
/// The time without windows after the kernel refused a group's probes. It doubles each time.
const FIRST_PAUSE: f64 = 10e9;

/// Costs are in nanoseconds per nanosecond in which a group is armed.
#[derive(Clone, Copy, Debug)]
pub(super) enum CostGroup {
    Always {
        cost: f64,
    },
    InWindows {
        cost: f64,
        /// The target's own CPU time, per time, when the cost was measured.
        own: f64,
        /// Calm windows in a row.
        calm: u32,
        /// The pause since the kernel refused its probes, and the end of it.
        pause: f64,
        resumes: Nanos,
    },
    /// Calm again and to be armed, as soon as the kernel has let go of its last links.
    Returning {
        cost: f64,
        since: Nanos,
    },
}

impl CostGroup {
    pub(super) fn in_windows(cost: f64, own: f64) -> Self {
        Self::InWindows { cost, own, calm: 0, pause: 0.0, resumes: Nanos::ZERO }
    }

    /// Returns the group after the kernel refused its probes at `at`.
    pub(super) fn refused(self, at: Nanos, own_now: f64) -> Self {
        let (own, pause) = match self {
            Self::InWindows { own, pause, .. } => (own, pause),
            _ => (own_now, 0.0),
        };
        let pause = (2.0 * pause).clamp(FIRST_PAUSE, LONGEST_PERIOD);
        let resumes = at.saturating_add(Nanos(pause as u64));
        Self::InWindows { cost: self.cost(), own, calm: 0, pause, resumes }
    }

    pub(super) fn cost(self) -> f64 {
        match self {
            Self::Always { cost } | Self::InWindows { cost, .. } | Self::Returning { cost, .. } => {
                cost
            }
        }
    }

    /// Returns the cost that is expected of a window, while the target uses `own_now` for itself.
    ///
    /// A target that does less than when the cost was measured hits its probes less often. By the
    /// old cost, windows of a target that has become calm would be minutes apart.
    pub(super) fn expected(self, own_now: f64) -> f64 {
        match self {
            Self::InWindows { cost, own, .. } if own > own_now => {
                cost * (own_now / own).max(LEAST_CALM)
            }
            _ => self.cost(),
        }
    }
}
