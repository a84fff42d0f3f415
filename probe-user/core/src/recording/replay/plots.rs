//! The numbers of plots, in one pass over the values of calls.

use super::count::FirstPass;
use super::lens::Lens;
use super::select::{CallReader, each_part};
use super::values::each_payload;
use crate::points::PointShape;
use crate::recording::{ChunkEntry, Payload, Recording};
use crate::report::PlotReport;
use crate::stats::slices::Slices;
use crate::units::FuncId;
use crate::values::Value;
use std::collections::BTreeMap;

/// The numbers of one plot so far.
#[derive(Clone, Debug)]
struct Sums {
    count: u64,
    finite: u64,
    sum: f64,
    min: f64,
    max: f64,
    /// The latest number and its time.
    last: (u64, f64),
    /// The sum and the count of each slice.
    slices: Vec<(f64, u64)>,
}

impl Sums {
    fn new(slices: usize) -> Self {
        let slices = vec![(0.0, 0); slices];
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        Self { count: 0, finite: 0, sum: 0.0, min, max, last: (0, 0.0), slices }
    }

    fn add(&mut self, time: u64, number: f64, slice: usize) {
        self.count += 1;
        if !number.is_finite() {
            return;
        }
        self.finite += 1;
        self.sum += number;
        (self.min, self.max) = (self.min.min(number), self.max.max(number));
        if self.finite == 1 || time >= self.last.0 {
            self.last = (time, number);
        }
        self.slices[slice].0 += number;
        self.slices[slice].1 += 1;
    }

    fn merge(&mut self, other: &Self) {
        if self.finite == 0 || other.finite > 0 && other.last.0 >= self.last.0 {
            self.last = other.last;
        }
        self.count += other.count;
        self.finite += other.finite;
        self.sum += other.sum;
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
        for (slice, other) in self.slices.iter_mut().zip(&other.slices) {
            *slice = (slice.0 + other.0, slice.1 + other.1);
        }
    }
}

/// Returns the numbers of every plot whose calls count.
pub(crate) fn plots(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    slices: Slices,
) -> Vec<PlotReport> {
    let functions = recording.functions();
    let is_plot = |of: FuncId| PointShape::of(functions, of) == Some(PointShape::Plot);
    let number_of = |payload: &Payload| payload.values.iter().flatten().find_map(Value::number);
    let parts = each_part(chunks, |entries| {
        let mut sums: BTreeMap<FuncId, Sums> = BTreeMap::new();
        let mut selected = CallReader::new(recording, lens, counted);
        each_payload(&mut selected, entries, |payload, _| {
            if is_plot(payload.function)
                && let Some(number) = number_of(payload)
            {
                let of = sums.entry(payload.function).or_insert_with(|| Sums::new(slices.len()));
                of.add(payload.time.0, number, slices.of(payload.time.0));
            }
        });
        sums
    });
    let mut all: BTreeMap<FuncId, Sums> = BTreeMap::new();
    for (function, sums) in parts.into_iter().flatten() {
        all.entry(function).or_insert_with(|| Sums::new(slices.len())).merge(&sums);
    }
    let report = |(function, sums): (FuncId, Sums)| {
        let info = functions.get(function.index())?;
        let known = |number: f64| (sums.finite > 0).then_some(number);
        // The sum of finite numbers may be none.
        let mean = |(sum, count): &(f64, u64)| {
            (*count > 0).then(|| sum / *count as f64).filter(|mean| mean.is_finite())
        };
        Some(PlotReport {
            function: function.index(),
            name: info.name.clone(),
            unit: info.values.first().and_then(|value| value.unit.clone()),
            count: sums.count,
            min: known(sums.min),
            mean: mean(&(sums.sum, sums.finite)),
            max: known(sums.max),
            last: known(sums.last.1),
            over_time: sums.slices.iter().map(mean).collect(),
        })
    };
    all.into_iter().filter_map(report).collect()
}
