//! Windows: when costly groups are armed, for how long, and what that may cost.

use ctrace_core::units::Nanos;

/// The usual time from window to window.
const PERIOD: f64 = 5e9;
pub(super) const LONGEST_PERIOD: f64 = 300e9;
const SHORTEST: f64 = 20e6;
const LONGEST: f64 = 1e9;
/// A window ends early if it costs more than planned by this factor.
const OVERSPENT: f64 = 4.0;

/// A time in which costly groups are armed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub begins: Nanos,
    pub length: Nanos,
    pub groups: Vec<usize>,
    may_cost: Nanos,
}

impl Window {
    /// Returns whether a window is over that has been open for this time, at this cost so far. A
    /// target that slept when the window was planned may wake in it, and hit its probes a thousand
    /// times as often.
    pub(crate) fn is_over(&self, armed: Nanos, spent: Nanos) -> bool {
        armed >= self.length || (spent > self.may_cost && is_telling(armed))
    }
}

/// Returns whether something can be learned from a window that was armed for this time. In a
/// shorter one, a single event decides the cost.
pub(super) fn is_telling(armed: Nanos) -> bool {
    armed.0 as f64 >= SHORTEST / 2.0
}

/// Plans the next window of groups with their costs. They have waited since `since`, and may cost
/// `left` together.
pub(super) fn plan(since: Nanos, groups: Vec<(usize, f64)>, left: f64) -> Option<Window> {
    if groups.is_empty() {
        return None;
    }
    let (groups, costs): (Vec<usize>, Vec<f64>) = groups.into_iter().unzip();
    let most = costs.iter().sum::<f64>().max(left);
    let part = left / most;
    let length = (part * PERIOD).clamp(SHORTEST, LONGEST);
    let period = (length / part).min(LONGEST_PERIOD);
    Some(Window {
        begins: since.saturating_add(Nanos((period - length) as u64)),
        length: Nanos(length as u64),
        groups,
        may_cost: Nanos((OVERSPENT * length * most) as u64),
    })
}
