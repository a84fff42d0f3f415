//! The calls of each function by the values of each of its arguments, and by its result.
//!
//! A target may have as many different values as calls. So one pass looks for the values that took
//! the most time, in bounded memory, and a second one counts exactly the calls of those. A third one
//! gathers their ranks, as those of functions are.

use super::count::FirstPass;
use super::lens::Lens;
use super::ranks::{Gathered, Interest, Order, percentiles};
use super::select::{CallReader, each_part};
use super::values::each_payload;
use crate::calls::spool::Call;
use crate::recording::{ChunkEntry, Payload, Recording};
use crate::report::percentiles::Percentiles;
use crate::report::{ByValue, OneValue, ValueCalls};
use crate::stats::histogram::{Histogram, HistogramCounter};
use crate::stats::rank::WantedRanks;
use crate::stats::tally::Tally;
use crate::units::Nanos;
use crate::values::Value;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

/// Different values of all arguments together that are compared, by all workers, about.
pub(super) const COMPARED: usize = 1 << 18;
/// The same of one argument, at least.
pub(super) const LEAST_COMPARED: usize = 64;

/// Returns the calls by each value that a function has. Each has at most `most` rows.
pub(crate) fn by_value(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    most: usize,
) -> Vec<ByValue> {
    let columns = Columns::of(recording);
    let heaviest = heaviest(recording, lens, chunks, counted, &columns);
    let chosen: Vec<Chosen> = heaviest.into_iter().map(|heavy| heavy.choose(most)).collect();
    let first = firsts(chosen.iter().map(Chosen::rows));
    let rows = Rows { columns, chosen, first };
    let pass = Pass { recording, lens, chunks, counted, rows: &rows };
    let (tallies, histograms) = pass.sums();
    let percentiles = pass.percentiles(&tallies, histograms);
    let Rows { chosen, first, .. } = &rows;
    let named = recording
        .functions()
        .iter()
        .enumerate()
        .flat_map(|(function, info)| info.values.iter().map(move |value| (function, value)));
    let tables = named.zip(chosen.iter().zip(first)).map(|((function, info), (chosen, first))| {
        let at = |row: usize| calls(&tallies[first + row], &percentiles[first + row]);
        let values = chosen.values.iter().enumerate();
        let mut rows: Vec<OneValue> = values
            .filter_map(|(row, value)| Some(OneValue { value: value.clone(), of: at(row)? }))
            .collect();
        rows.sort_by_key(|row| Reverse((row.of.total_ns, row.of.calls)));
        let (others, unread) = (at(chosen.others()), at(chosen.unread()));
        let weights = rows.iter().map(|row| row.of.total_ns.0.saturating_add(row.of.calls));
        let least = weights.min().unwrap_or(0);
        ByValue {
            function,
            name: info.name.clone(),
            is_result: info.is_result,
            unsure: others.is_some() && chosen.unlisted > least,
            rows,
            others,
            unread,
        }
    });
    tables.filter(|table| !table.rows.is_empty() || table.unread.is_some()).collect()
}

fn calls(tally: &Tally, percentiles: &Percentiles) -> Option<ValueCalls> {
    let calls = tally.ended();
    (calls > 0).then(|| ValueCalls {
        calls,
        timed: tally.timed,
        total_ns: Nanos(tally.total_ns()),
        mean_ns: tally.mean().map(Nanos),
        p50_ns: percentiles.at(500),
        p90_ns: percentiles.at(900),
        p99_ns: percentiles.at(990),
        max_ns: tally.max().map(Nanos),
    })
}

/// Returns the first place of each of these lists, which lie one after the other.
fn firsts(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut next = 0;
    lengths
        .map(|length| {
            next += length;
            next - length
        })
        .collect()
}

/// The columns of values, those of all functions one after the other.
struct Columns {
    /// The first column of each function.
    first: Vec<usize>,
    all: usize,
}

impl Columns {
    fn of(recording: &Recording) -> Self {
        let of_each = recording.functions().iter().map(|info| info.values.len());
        Self { all: of_each.clone().sum(), first: firsts(of_each) }
    }

    /// Shows the values of a call with their columns, but not those that it lacks.
    fn each<'p>(&self, payload: &'p Payload, mut show: impl FnMut(usize, Option<&'p Value>)) {
        let first = self.first[payload.function.index()];
        for (place, value) in payload.values.iter().enumerate() {
            if payload.absent >> place & 1 == 0 {
                show(first + place, value.as_ref());
            }
        }
    }
}

/// The weights of values, in bounded memory (Misra and Gries). A weight is at most `missing` too
/// small, and what is not here weighs no more than that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heavy<T: Eq + Hash> {
    weights: HashMap<T, u64>,
    missing: u64,
    most: usize,
}

impl<T: Clone + Eq + Hash + Ord> Heavy<T> {
    pub(super) fn new(most: usize) -> Self {
        Self { weights: HashMap::new(), missing: 0, most }
    }

    pub(super) fn add(&mut self, value: &T, weight: u64) {
        if let Some(sum) = self.weights.get_mut(value) {
            *sum = sum.saturating_add(weight);
            return;
        }
        self.weights.insert(value.clone(), weight);
        if self.weights.len() >= 2 * self.most {
            self.cut();
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.missing = self.missing.saturating_add(other.missing);
        for (value, weight) in other.weights {
            let sum = self.weights.entry(value).or_default();
            *sum = sum.saturating_add(weight);
        }
        self.cut();
    }

    /// Takes the weight of the heaviest one that does not fit from all.
    fn cut(&mut self) {
        if self.weights.len() <= self.most {
            return;
        }
        let mut weights: Vec<u64> = self.weights.values().copied().collect();
        let (_, &mut heaviest, _) =
            weights.select_nth_unstable_by_key(self.most, |it| Reverse(*it));
        self.missing = self.missing.saturating_add(heaviest);
        self.weights.retain(|_, weight| {
            *weight = weight.saturating_sub(heaviest);
            *weight > 0
        });
    }

    pub(super) fn choose(self, most: usize) -> Chosen<T> {
        let mut all: Vec<(T, u64)> = self.weights.into_iter().collect();
        all.sort_unstable_by(|(a, x), (b, y)| y.cmp(x).then_with(|| a.cmp(b)));
        let next = all.get(most).map_or(0, |(_, weight)| *weight);
        all.truncate(most);
        let values: Vec<T> = all.into_iter().map(|(value, _)| value).collect();
        let rows = values.iter().cloned().enumerate().map(|(row, value)| (value, row)).collect();
        Chosen { values, rows, unlisted: next.saturating_add(self.missing) }
    }
}

/// The values of a column that get rows.
pub(super) struct Chosen<T: Eq + Hash = Value> {
    pub(super) values: Vec<T>,
    pub(super) rows: HashMap<T, usize>,
    /// No other value weighs more.
    pub(super) unlisted: u64,
}

impl<T: Eq + Hash> Chosen<T> {
    pub(super) fn others(&self) -> usize {
        self.values.len()
    }

    fn unread(&self) -> usize {
        self.values.len() + 1
    }

    pub(super) fn rows(&self) -> usize {
        self.values.len() + 2
    }
}

/// Returns a call's weight: the time that it was seen to last, and that it was made.
pub(super) fn weight(call: Call) -> u64 {
    call.duration.saturating_add(1)
}

fn heaviest(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    columns: &Columns,
) -> Vec<Heavy<Value>> {
    let workers = rayon::current_num_threads().max(1);
    let most = (COMPARED / workers / columns.all.max(1)).max(LEAST_COMPARED);
    let new = || vec![Heavy::new(most); columns.all];
    let parts = each_part(chunks, |entries| {
        let mut all = new();
        let mut selected = CallReader::new(recording, lens, counted);
        each_payload(&mut selected, entries, |payload, call| {
            columns.each(payload, |column, value| {
                if let Some(value) = value {
                    all[column].add(value, weight(call));
                }
            });
        });
        all
    });
    let mut all = new();
    for part in parts {
        all.iter_mut().zip(part).for_each(|(all, part)| all.merge(part));
    }
    all
}

/// The rows of all columns, one after the other. A column has one for each chosen value, one for the
/// others and one for what could not be read, from `first` on.
struct Rows {
    columns: Columns,
    chosen: Vec<Chosen>,
    first: Vec<usize>,
}

impl Rows {
    fn all(&self) -> usize {
        self.chosen.iter().map(Chosen::rows).sum()
    }

    /// Shows the rows that a call is in.
    fn each(&self, payload: &Payload, mut show: impl FnMut(usize)) {
        self.columns.each(payload, |column, value| {
            let chosen = &self.chosen[column];
            let row = match value {
                Some(value) => chosen.rows.get(value).copied().unwrap_or(chosen.others()),
                None => chosen.unread(),
            };
            show(self.first[column] + row);
        });
    }
}

/// The calls that are in rows.
struct Pass<'a, 'l> {
    recording: &'a Recording,
    lens: &'a Lens<'l>,
    chunks: &'a [ChunkEntry],
    counted: &'a FirstPass,
    rows: &'a Rows,
}

impl Pass<'_, '_> {
    /// Shows each call of some chunks with each of its rows.
    fn each(&self, entries: &[ChunkEntry], mut show: impl FnMut(usize, Call)) {
        let mut selected = CallReader::new(self.recording, self.lens, self.counted);
        each_payload(&mut selected, entries, |payload, call| {
            self.rows.each(payload, |row| show(row, call));
        });
    }

    /// Sums up the calls of each row.
    fn sums(&self) -> (Vec<Tally>, Vec<Histogram>) {
        let rows = self.rows.all();
        let new = || (vec![Tally::default(); rows], vec![Histogram::default(); rows]);
        let parts = each_part(self.chunks, |entries| {
            let (mut tallies, mut histograms) = new();
            let mut counter = HistogramCounter::default();
            self.each(entries, |row, call| {
                if call.timed {
                    tallies[row].add_timed(call.duration, 0);
                    counter.add(&mut histograms, row, call.duration);
                } else {
                    tallies[row].add_untimed(call.duration, 0);
                }
            });
            counter.flush(&mut histograms);
            (tallies, histograms)
        });
        let mut all = new();
        for (tallies, histograms) in parts {
            all.0.iter_mut().zip(&tallies).for_each(|(sum, tally)| sum.merge(tally));
            all.1.iter_mut().zip(&histograms).for_each(|(sum, histogram)| sum.merge(histogram));
        }
        all
    }

    /// Returns the percentiles of each row.
    fn percentiles(&self, tallies: &[Tally], histograms: Vec<Histogram>) -> Vec<Percentiles> {
        let mut interests = vec![Interest::in_ranks_alone(); tallies.len()];
        let mut slots = 0;
        let rows = tallies.iter().zip(histograms).enumerate();
        let orders: Vec<Order> = rows
            .map(|(row, (tally, histogram))| {
                let mut order = Order::new(histogram);
                let wanted = WantedRanks::percentiles(tally.timed).map(|rank| rank as u64);
                order.want(wanted, &[row as u32], &mut interests, &mut slots);
                order
            })
            .collect();
        let new = || Gathered::new(slots, 0);
        let parts = each_part(self.chunks, |entries| {
            let mut gathered = new();
            self.each(entries, |row, call| {
                if call.timed {
                    gathered.add(&interests[row], call.duration);
                }
            });
            gathered
        });
        let mut all = new();
        parts.into_iter().for_each(|part| all.merge(part));
        let gathered = all.take_sorted();
        let rows = orders.iter().zip(tallies);
        rows.map(|(order, tally)| percentiles(order, tally.timed, &gathered)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However the weights arrive, none is missing more than is said.
        #[test]
        fn weights_are_off_by_no_more_than_is_said(
            all in prop::collection::vec((0_u8..60, 1_u64..1_000), 0..400),
            most in 1_usize..20,
            split in 0_usize..400,
        ) {
            let mut sums = HashMap::<u8, u64>::new();
            all.iter().for_each(|(value, weight)| *sums.entry(*value).or_default() += weight);
            let (first, second) = all.split_at(split.min(all.len()));
            let of = |part: &[(u8, u64)]| {
                let mut heavy = Heavy::new(most);
                part.iter().for_each(|(value, weight)| heavy.add(value, *weight));
                heavy
            };
            let mut heavy = of(first);
            heavy.merge(of(second));
            prop_assert!(heavy.weights.len() <= most);
            for (value, sum) in &sums {
                let weight = heavy.weights.get(value).copied().unwrap_or(0);
                prop_assert!(weight <= *sum && *sum <= weight + heavy.missing);
            }
            let chosen = heavy.choose(3);
            let unlisted = sums.iter().filter(|(value, _)| !chosen.rows.contains_key(value));
            prop_assert!(unlisted.map(|(_, sum)| *sum).max().unwrap_or(0) <= chosen.unlisted);
        }
    }
}
