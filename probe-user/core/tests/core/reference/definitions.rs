//! A slow and obvious implementation of the definitions.

use crate::reference::program::{Call, FUNCTIONS, THREADS};
use std::cmp::Reverse;
use std::collections::BTreeMap;

pub(crate) type Intervals = Vec<(u64, u64)>;

pub(crate) fn length(mut intervals: Intervals) -> u64 {
    intervals.sort_unstable();
    let (mut sum, mut covered) = (0, 0);
    for (start, end) in intervals {
        sum += end.saturating_sub(start.max(covered));
        covered = covered.max(end);
    }
    sum
}

pub(crate) const PERCENTILES: [(&str, usize); 6] = [
    ("p50_ns", 500),
    ("p75_ns", 750),
    ("p90_ns", 900),
    ("p95_ns", 950),
    ("p99_ns", 990),
    ("p999_ns", 999),
];

/// A function's numbers by their keys in reports.
pub(crate) type Row = BTreeMap<&'static str, u64>;

pub(crate) struct Expected {
    pub(crate) functions: Vec<Row>,
    pub(crate) centers: Vec<Row>,
    pub(crate) tracked: u64,
    pub(crate) paths: BTreeMap<String, [u64; 3]>,
}

pub(crate) fn rank(sorted: &[u64], permille: usize) -> u64 {
    sorted.get((sorted.len() * permille).div_ceil(1_000).max(1) - 1).copied().unwrap_or(0)
}

/// Applies the definitions to the calls that ended in `(from, to]` or are open at `to`.
pub(crate) fn expect(calls: &[Call], from: u64, to: u64, cut: f64) -> Expected {
    let is_in = |c: &Call| c.start <= to && c.known > from;
    let is_open = |c: &Call| c.known > to;
    let clip = |c: &Call| (c.start.max(from), if is_open(c) { to } else { c.end });
    let inside = || calls.iter().enumerate().filter(|(_, c)| is_in(c));
    let mut edges: Vec<u64> = inside().flat_map(|(_, c)| [clip(c).0, clip(c).1]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut innermost: BTreeMap<usize, Intervals> = BTreeMap::new();
    for edge in edges.windows(2) {
        for thread in 0..THREADS {
            let on = inside().filter(|(_, c)| {
                c.thread == thread && clip(c).0 <= edge[0] && clip(c).1 >= edge[1]
            });
            if let Some((index, _)) = on.max_by_key(|(_, c)| c.depth) {
                innermost.entry(index).or_default().push((edge[0], edge[1]));
            }
        }
    }
    let segments = |index: usize| innermost.get(&index).cloned().unwrap_or_default();
    let mut own: Vec<u64> = calls.iter().map(|c| c.end.saturating_sub(c.start)).collect();
    for c in calls.iter().filter(|c| c.end != u64::MAX) {
        if let Some(parent) = c.parent {
            own[parent] = own[parent].saturating_sub(c.end - c.start);
        }
    }
    let mut expected = Expected {
        functions: Vec::new(),
        centers: Vec::new(),
        tracked: length(innermost.values().flatten().copied().collect()),
        paths: BTreeMap::new(),
    };
    for (index, c) in inside() {
        let mut path = format!("f{}", c.func);
        let mut above = c.parent;
        while let Some(parent) = above {
            path = format!("f{}>{path}", calls[parent].func);
            above = calls[parent].parent;
        }
        let sums = expected.paths.entry(path).or_default();
        sums[0] += 1;
        if !is_open(c) {
            sums[1] += c.end - c.start;
            sums[2] += own[index];
        }
    }
    for func in 0..FUNCTIONS {
        let mine = || inside().filter(|(_, c)| c.func == func);
        let ended = || mine().filter(|(_, c)| !is_open(c));
        let mut timed: Vec<(usize, &Call)> = ended().filter(|(_, c)| c.timed).collect();
        // If two calls of a thread end together, the inner one ends first.
        timed.sort_by_key(|(_, c)| (c.end - c.start, c.known, Reverse(c.depth)));
        let durations: Vec<u64> = timed.iter().map(|(_, c)| c.end - c.start).collect();
        let mut threads: Vec<u64> = mine().map(|(_, c)| c.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let sum: u64 = durations.iter().sum();
        let n = durations.len() as f64;
        let mean = sum as f64 / n;
        let sd = (durations.iter().map(|&d| (d as f64 - mean).powi(2)).sum::<f64>() / n).sqrt();
        let or_zero = |value: f64| if value.is_nan() { 0 } else { value.round() as u64 };
        let mut row = Row::from([
            ("calls", mine().count() as u64),
            ("timed", timed.len() as u64),
            ("untimed", ended().filter(|(_, c)| !c.timed).count() as u64),
            ("open", mine().filter(|(_, c)| is_open(c)).count() as u64),
            ("headless", 0),
            ("threads", threads.len() as u64),
            ("total_ns", ended().map(|(_, c)| c.end - c.start).sum()),
            ("self_ns", ended().map(|(index, _)| own[index]).sum()),
            ("active_ns", length(mine().map(|(_, c)| clip(c)).collect())),
            (
                "active_exclusive_ns",
                length(mine().flat_map(|(index, _)| segments(index)).collect()),
            ),
            ("min_ns", durations.first().copied().unwrap_or(0)),
            ("mean_ns", or_zero(mean)),
            ("max_ns", durations.last().copied().unwrap_or(0)),
            ("sd_ns", or_zero(sd)),
        ]);
        for (key, permille) in PERCENTILES {
            row.insert(key, rank(&durations, permille));
        }
        expected.functions.push(row);
        let k = (n * cut / 100.0).floor() as usize;
        let (low, rest) = timed.split_at(k);
        let (middle, high) = rest.split_at(rest.len() - k);
        let lengths = |calls: &[(usize, &Call)]| -> Vec<u64> {
            calls.iter().map(|(_, c)| c.end - c.start).collect()
        };
        let mean = |d: Vec<u64>| or_zero(d.iter().sum::<u64>() as f64 / d.len() as f64);
        expected.centers.push(Row::from([
            ("fastest_min_ns", lengths(low).first().copied().unwrap_or(0)),
            ("fastest_mean_ns", mean(lengths(low))),
            ("center_min_ns", lengths(middle).first().copied().unwrap_or(0)),
            ("center_mean_ns", mean(lengths(middle))),
            ("center_median_ns", rank(&lengths(middle), 500)),
            ("center_max_ns", lengths(middle).last().copied().unwrap_or(0)),
            ("center_active_ns", length(middle.iter().map(|(_, c)| clip(c)).collect())),
            (
                "center_active_exclusive_ns",
                length(middle.iter().flat_map(|(index, _)| segments(*index)).collect()),
            ),
            ("slowest_mean_ns", mean(lengths(high))),
            ("slowest_max_ns", lengths(high).last().copied().unwrap_or(0)),
        ]));
    }
    expected
}

/// Removes the calls that `keep` rejects. Their callees become those of their callers.
pub(crate) fn filter(calls: &[Call], keep: impl Fn(&Call) -> bool) -> Vec<Call> {
    let mut places = vec![None; calls.len()];
    let mut kept: Vec<Call> = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let mut parent = call.parent;
        while let Some(above) = parent.filter(|&above: &usize| places[above].is_none()) {
            parent = calls[above].parent;
        }
        if keep(call) {
            places[index] = Some(kept.len());
            kept.push(Call { parent: parent.and_then(|above| places[above]), ..call.clone() });
        }
    }
    kept
}

/// Returns only the calls at these indices.
pub(crate) fn pick(calls: &[Call], places: &[usize]) -> Vec<Call> {
    let numbered = calls.iter().enumerate().map(|(place, call)| Call {
        // Holds the index for the moment.
        depth: place,
        ..call.clone()
    });
    let numbered: Vec<Call> = numbered.collect();
    with_depths(&filter(&numbered, |call| places.contains(&call.depth)))
}

/// Sets the depth of each call among these.
pub(crate) fn with_depths(calls: &[Call]) -> Vec<Call> {
    let mut calls = calls.to_vec();
    for place in 0..calls.len() {
        calls[place].depth = calls[place].parent.map_or(0, |parent| calls[parent].depth + 1);
    }
    calls
}
