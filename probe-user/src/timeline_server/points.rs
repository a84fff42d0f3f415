//! Messages, plots and frame marks as JSON.

use ctrace_core::{
    points::Level,
    recording::Recording,
    report::render::clean::clean,
    timeline::{Lost, MessageColumn, Points},
    units::{FuncId, ThreadId},
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The points of a picture. Columns without any are left out.
#[derive(Serialize)]
pub(super) struct PointsJson {
    messages: Vec<OfThread>,
    plots: Vec<Plot>,
    marks: Vec<Marks>,
    left_out: u64,
    lost: Lost,
}

#[derive(Serialize)]
struct OfThread {
    thread: u32,
    /// Place, count, and the gravest level: 0 for none, 1 for the least.
    columns: Vec<(u32, u64, usize)>,
}

#[derive(Serialize)]
struct Plot {
    function: u32,
    unit: Option<String>,
    /// Place, count, least, greatest, and latest number.
    columns: Vec<(u32, u64, f64, f64, f64)>,
}

#[derive(Serialize)]
struct Marks {
    function: u32,
    /// Place and count.
    columns: Vec<(u32, u64)>,
}

/// Puts the columns of one thread or function together.
fn apart<K: Copy + Ord, V, C>(
    all: BTreeMap<(K, u32), V>,
    column: impl Fn(u32, V) -> C,
) -> Vec<(K, Vec<C>)> {
    let mut apart: Vec<(K, Vec<C>)> = Vec::new();
    for ((of, place), value) in all {
        match apart.last_mut() {
            Some((last, columns)) if *last == of => columns.push(column(place, value)),
            _ => apart.push((of, vec![column(place, value)])),
        }
    }
    apart
}

impl PointsJson {
    pub(super) fn new(recording: &Recording, points: Points) -> Self {
        let rank =
            |level: Level| Level::ALL.iter().position(|it| *it == level).map_or(0, |at| at + 1);
        let message = |at, MessageColumn { count, level }| (at, count, level.map_or(0, rank));
        let messages = apart(points.messages, message).into_iter();
        let unit = |function: FuncId| {
            let value = recording.functions().get(function.index())?.values.first()?;
            value.unit.as_ref().map(|unit| clean(unit).into_owned())
        };
        let plots = apart(points.plots, |at, of| (at, of.count, of.min, of.max, of.last()));
        let marks = apart(points.marks, |at, count| (at, count)).into_iter();
        Self {
            messages: messages
                .map(|(ThreadId(thread), columns)| OfThread { thread, columns })
                .collect(),
            plots: plots
                .into_iter()
                .map(|(of, columns)| Plot { function: of.0, unit: unit(of), columns })
                .collect(),
            marks: marks.map(|(of, columns)| Marks { function: of.0, columns }).collect(),
            left_out: points.left_out,
            lost: points.lost,
        }
    }
}
