//! The verdict on a change, by its interval.

use super::metric::Metric;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Calls take longer.
    Slower,
    Faster,
    /// More of it per second.
    More,
    Less,
    /// A change that is too small to matter, or none.
    NoChange,
    /// Possibly no change.
    Noise,
    /// Too few calls, or stretches with calls, to judge.
    TooFew,
    /// A report, without single calls.
    Unjudged,
}

impl Verdict {
    pub const ALL: [Self; 8] = [
        Self::Slower,
        Self::More,
        Self::Faster,
        Self::Less,
        Self::Noise,
        Self::NoChange,
        Self::TooFew,
        Self::Unjudged,
    ];

    /// Returns the verdict in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::More => "more",
            Self::Less => "less",
            Self::NoChange => "no change",
            Self::Noise => "noise",
            Self::TooFew => "too few",
            Self::Unjudged => "unjudged",
        }
    }

    pub fn is_worse(self) -> bool {
        matches!(self, Self::Slower | Self::More)
    }

    /// Returns whether it is more than noise and more than the margin.
    pub fn is_significant(self) -> bool {
        self.is_worse() || matches!(self, Self::Faster | Self::Less)
    }

    /// Judges bounds of new divided by old. Changes within `margin`, such as 0.01, do not matter.
    pub(crate) fn of(metric: Metric, low: f64, high: f64, margin: f64) -> Self {
        let (up, down) = match metric.is_rate() {
            true => (Self::More, Self::Less),
            false => (Self::Slower, Self::Faster),
        };
        if low >= 1.0 - margin && high <= 1.0 + margin {
            Self::NoChange
        } else if low > 1.0 {
            up
        } else if high < 1.0 {
            down
        } else {
            Self::Noise
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_certain_and_matters_is_told() {
        for (low, high, expected) in [
            (1.03, 1.2, Verdict::Slower),
            (0.7, 0.99, Verdict::Faster),
            (0.9, 1.2, Verdict::Noise),
            (0.995, 1.008, Verdict::NoChange),
            (1.002, 1.004, Verdict::NoChange),
            (1.002, 1.02, Verdict::Slower),
            (0.0, f64::INFINITY, Verdict::Noise),
        ] {
            assert_eq!(Verdict::of(Metric::P99, low, high, 0.01), expected);
        }
        assert_eq!(Verdict::of(Metric::CALLS, 1.5, 2.0, 0.01), Verdict::More);
        assert_eq!(Verdict::of(Metric::EXCLUSIVE, 0.5, 0.6, 0.01), Verdict::Less);
    }
}
