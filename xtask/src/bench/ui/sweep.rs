//! Places at which the timeline is looked at, and the times that this takes.

/// The shortest time across the screen.
const SHORTEST: f64 = 1_000.0;

/// Returns random stretches of a time, the same for all tools: from the whole of it to a microsecond.
pub(super) fn views(length: u64, count: usize) -> Vec<(u64, u64)> {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as f64 / (1_u64 << 53) as f64
    };
    let whole = length as f64;
    let view = |_| {
        let long = SHORTEST * (whole / SHORTEST).max(1.0).powf(next());
        let from = ((whole - long).max(0.0) * next()) as u64;
        (from, from + long as u64 + 1)
    };
    (0..count).map(view).collect()
}

/// Times in milliseconds.
pub(super) struct Times(Vec<f64>);

impl Times {
    pub(super) fn new(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self(times)
    }

    /// Returns the time that this part of all do not exceed.
    pub(super) fn at(&self, part: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * part).round() as usize).copied().unwrap_or(f64::NAN)
    }

    pub(super) fn told(&self) -> String {
        let [p50, p99, most] = [0.5, 0.99, 1.0].map(|part| self.at(part));
        format!("p50 {p50:.2} ms, p99 {p99:.2} ms, longest {most:.2} ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_within_the_recording_and_of_all_lengths() {
        let length = 10_000_000_000;
        let views = views(length, 1_000);
        assert!(views.iter().all(|(from, to)| from < to && *to <= length + 1));
        let long = |least: u64| views.iter().filter(|(from, to)| to - from >= least).count();
        assert!(
            long(1_000_000_000) > 50 && long(10_000) < 950,
            "from a microsecond to ten seconds"
        );
        assert_eq!(super::views(10, 1), [(0, 1_001)], "a short one is seen as a whole");
    }

    #[test]
    fn parts_of_times_are_by_rank() {
        let times = Times::new((0..=100).rev().map(f64::from).collect());
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|part| times.at(part)), [0.0, 50.0, 99.0, 100.0]);
        assert!(Times::new(Vec::new()).at(0.5).is_nan());
    }
}
