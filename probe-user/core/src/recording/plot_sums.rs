//! Sums of the numbers of plots, while they are written: blocks in, sums out.

use super::{Block, RecordError, Recording, Start};
use crate::function::FunctionInfo;
use crate::points::PointShape;
use crate::units::{FuncId, Nanos};
use crate::values::Value;
use std::collections::BTreeMap;

/// The numbers of a plot since the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlotSum {
    /// Finite numbers. Only these count below.
    pub finite: u64,
    /// Numbers that are infinite, or none.
    pub not_finite: u64,
    /// Numbers that were lost or could not be read.
    pub lost: u64,
    /// The sum of the positive ones.
    pub positive: f64,
    /// The sum of the negative ones, without their sign.
    pub negative: f64,
    /// The least and the greatest.
    pub range: Option<(f64, f64)>,
    /// The latest, and its time.
    pub last: Option<(Nanos, f64)>,
}

impl PlotSum {
    /// Adds a number.
    pub fn add(&mut self, time: Nanos, number: f64) {
        if !number.is_finite() {
            self.not_finite = self.not_finite.saturating_add(1);
            return;
        }
        self.merge(&Self {
            finite: 1,
            positive: number.max(0.0),
            negative: (-number).max(0.0),
            range: Some((number, number)),
            last: Some((time, number)),
            ..Self::default()
        });
    }

    /// Adds further numbers.
    pub fn merge(&mut self, more: &Self) {
        self.finite = self.finite.saturating_add(more.finite);
        self.not_finite = self.not_finite.saturating_add(more.not_finite);
        self.lost = self.lost.saturating_add(more.lost);
        // A counter that is infinite once would be so for ever.
        self.positive = (self.positive + more.positive).min(f64::MAX);
        self.negative = (self.negative + more.negative).min(f64::MAX);
        self.range = wider(self.range, more.range);
        self.last = later(self.last, more.last);
    }
}

/// Returns the least and the greatest of both.
pub fn wider(one: Option<(f64, f64)>, other: Option<(f64, f64)>) -> Option<(f64, f64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

/// Returns the later of two numbers, and the second of those of one time.
pub fn later(one: Option<(Nanos, f64)>, other: Option<(Nanos, f64)>) -> Option<(Nanos, f64)> {
    let is_later = |other: &(Nanos, f64)| one.is_none_or(|one| other.0 >= one.0);
    other.filter(is_later).or(one)
}

/// The sums of all plots.
pub struct PlotSums {
    recording: Recording,
    sums: BTreeMap<FuncId, PlotSum>,
}

impl Default for PlotSums {
    fn default() -> Self {
        Self { recording: Recording::begun(Start::default()), sums: BTreeMap::new() }
    }
}

impl PlotSums {
    /// Adds the numbers of the next block of an engine.
    pub fn take(&mut self, block: &Block) -> Result<(), RecordError> {
        let Some((chunk, payloads)) = self.recording.grow(block)? else { return Ok(()) };
        let functions = self.recording.functions();
        let is_plot = |of: FuncId| PointShape::of(functions, of) == Some(PointShape::Plot);
        let mut written: BTreeMap<FuncId, u64> = BTreeMap::new();
        for call in chunk.threads().iter().flat_map(|thread| chunk.calls(thread)) {
            let function = self.recording.nodes()[call.path() as usize].func;
            if is_plot(function) {
                *written.entry(function).or_default() += 1;
            }
        }
        for payload in payloads.each.iter().filter(|of| is_plot(of.function)) {
            let number = payload.values.iter().flatten().find_map(Value::number);
            let Some(number) = number else { continue };
            if let Some(left) = written.get_mut(&payload.function).filter(|left| **left > 0) {
                *left -= 1;
                self.sums.entry(payload.function).or_default().add(payload.time, number);
            }
        }
        for (function, lost) in written {
            let sum = self.sums.entry(function).or_default();
            sum.lost = sum.lost.saturating_add(lost);
        }
        self.recording.forget(block.ended.iter().copied());
        Ok(())
    }

    /// Returns the sums since the last time, each with its plot.
    pub fn drain(&mut self) -> impl Iterator<Item = (&FunctionInfo, PlotSum)> {
        let functions = self.recording.functions();
        let sums = std::mem::take(&mut self.sums).into_iter();
        sums.filter_map(|(function, sum)| Some((functions.get(function.index())?, sum)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_range_sums_and_a_latest() {
        let mut sum = PlotSum::default();
        for (time, number) in
            [(30, 2.5), (50, -4.0), (40, 8.0), (60, f64::NAN), (70, f64::INFINITY)]
        {
            sum.add(Nanos(time), number);
        }
        let all = PlotSum {
            finite: 3,
            not_finite: 2,
            lost: 0,
            positive: 10.5,
            negative: 4.0,
            range: Some((-4.0, 8.0)),
            last: Some((Nanos(50), -4.0)),
        };
        assert_eq!(sum, all);
        let mut earlier = PlotSum { lost: 6, ..PlotSum::default() };
        earlier.add(Nanos(20), 9.0);
        sum.merge(&earlier);
        assert_eq!((sum.finite, sum.lost, sum.range), (4, 6, Some((-4.0, 9.0))));
        assert_eq!(sum.last, Some((Nanos(50), -4.0)));
        sum.merge(&PlotSum::default());
        assert_eq!(sum.last, Some((Nanos(50), -4.0)));
        (0..2).for_each(|time| sum.add(Nanos(time), 1.7e308));
        assert_eq!(sum.positive, f64::MAX);
    }
}
