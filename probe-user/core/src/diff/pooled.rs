//! Compares sums by stretch that come from elsewhere than recordings: from the tables of a fleet, where
//! a stretch is some time on some hosts, and each group of hosts takes the place of a recording.

use super::catalogue::{Catalogue, Named};
use super::gather::Stretch;
use super::judge::{self, CONFIDENCE, Judged, Side};
use super::matching::Description;
use super::model::{Compared, Diff, FunctionDiff, SCHEMA, SideReport, SourceKind};
use super::resample::ROUNDS;
use super::survey::{Activity, Chosen};
use super::{MAX_ROWS, Options};
use crate::report::LossReport;
use crate::stats::{Histogram, Summary};
use crate::units::Nanos;

/// A function in a stretch. Its histogram is on the scale of the comparison.
pub(crate) struct Pooled {
    pub(crate) summary: Summary,
    pub(crate) histogram: Histogram,
}

/// Some time on some hosts.
pub(crate) struct PooledStretch {
    pub(crate) seconds: f64,
    /// The functions by their place in the list.
    pub(crate) rows: Vec<(usize, Pooled)>,
}

/// One side.
pub(crate) struct PooledSide {
    /// Its name for the reader.
    pub(crate) name: String,
    pub(crate) duration: Nanos,
    pub(crate) loss: LossReport,
    /// The stretches of each group of hosts.
    pub(crate) groups: Vec<Vec<PooledStretch>>,
}

/// Compares two sides. `functions`: those of each side. `sub_bits`: the scale of the histograms.
pub(crate) fn diff(
    functions: [Vec<Description<'_>>; 2],
    sides: [PooledSide; 2],
    sub_bits: u32,
    options: &Options,
    notes: Vec<String>,
) -> Diff {
    let catalogue = Catalogue::new(functions.each_ref().map(|side| side.iter().copied()));
    let ids = functions
        .each_ref()
        .map(|side| side.iter().map(|told| catalogue.function(told).index()).collect::<Vec<_>>());
    let count = catalogue.functions.len();
    let activity = [0, 1].map(|side: usize| {
        let mut all = vec![Activity::default(); count];
        for (place, pooled) in sides[side].groups.iter().flatten().flat_map(|stretch| &stretch.rows)
        {
            let tally = &pooled.summary.tally;
            all[ids[side][*place]]
                .add(Activity { total_ns: tally.total_ns(), calls: tally.ended() });
        }
        all
    });
    let chosen = Chosen::of_functions(&activity, count, MAX_ROWS);
    let metrics = options.metrics();
    let reports = sides.each_ref().map(|side| SideReport {
        files: vec![side.name.clone()],
        kind: SourceKind::Fleet,
        time: None,
        duration_ns: side.duration,
        stretches: side.groups.iter().map(Vec::len).sum::<usize>() as u64,
        loss: side.loss,
    });
    let mut seed = 0;
    let mut ids = ids.into_iter();
    let judged_sides = sides.map(|side| {
        let ids = ids.next().unwrap_or_default();
        let stretch = |rows: Vec<(usize, Pooled)>| {
            let mut stretch = Stretch::new(chosen.slots());
            for (place, pooled) in rows {
                let Some(slot) = chosen.slot_of_function[ids[place]] else { continue };
                stretch.sums[slot as usize].add(&pooled.summary);
                stretch.histograms[slot as usize].merge(&pooled.histogram);
            }
            stretch
        };
        let (mut seconds, mut groups) = (Vec::new(), Vec::new());
        for group in side.groups {
            seconds.extend(group.iter().map(|it| it.seconds));
            groups.push(group.into_iter().map(|it| stretch(it.rows)).collect());
        }
        seed += 1;
        Side::of_stretches(groups, seconds, seed - 1, sub_bits)
    });
    let verdicts = judge::judge(&judged_sides, &chosen, metrics, options.margin);
    let row = |(id, judged): (&crate::units::FuncId, &Vec<Judged>)| {
        let calls = activity.each_ref().map(|side| side[id.index()].calls);
        let Named { name, object, kind, group } = catalogue.functions[id.index()].clone();
        let compared = Compared::new(calls, &verdicts.metrics, judged, options);
        FunctionDiff { name, object, kind, group, ids: Default::default(), compared }
    };
    let functions: Vec<_> = chosen.functions.iter().zip(&verdicts.judged).map(row).collect();
    let [old, new] = reports;
    Diff {
        schema: SCHEMA,
        part: None,
        metric: options.metric,
        metrics: verdicts.metrics.clone(),
        confidence_percent: CONFIDENCE * 100.0,
        margin_percent: options.margin,
        rounds: ROUNDS as u64,
        fail_over_percent: options.fail_over,
        failed: functions.iter().any(|function| function.compared.failed),
        functions,
        functions_left_out: chosen.functions_left_out,
        paths: Vec::new(),
        paths_left_out: 0,
        notes,
        old,
        new,
    }
}
