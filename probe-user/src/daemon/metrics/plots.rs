//! The numbers that processes of a target plot.
//!
//! Sums last as long as the daemon. The latest number and the range are of processes that are traced now.

use super::{
    catalog::{self, OF_PLOT},
    family::{Families, Labels},
    names,
};
use crate::daemon::ids::SessionId;
use ctrace_core::{
    function::FunctionInfo,
    recording::{PlotSum, later, wider},
    units::Nanos,
};
use std::{collections::BTreeMap, sync::Arc};

/// Plots of a target that have series, at most. A target may bring new names each time that it starts.
const MOST_PLOTS: usize = 100;

/// A plot as it is shown: two that are shown alike are one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct PlotKey {
    name: Arc<str>,
    group: Arc<str>,
    unit: Arc<str>,
}

/// The numbers of a plot since the last time.
#[derive(Clone, Debug)]
pub(crate) struct NumbersOfPlot {
    plot: PlotKey,
    sum: PlotSum,
}

impl NumbersOfPlot {
    pub(crate) fn new(plot: &FunctionInfo, sum: PlotSum) -> Self {
        let unit = plot.values.first().and_then(|value| value.unit.as_deref());
        let text = |text: Option<&str>| names::label(text.unwrap_or_default());
        let (group, unit) = (text(plot.group.as_deref()), text(unit));
        Self { plot: PlotKey { name: names::label(&plot.name), group, unit }, sum }
    }
}

/// A plot of one process.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    last: Option<(Nanos, f64)>,
    /// The range in the present interval, and in the one before.
    present: Option<(f64, f64)>,
    before: Option<(f64, f64)>,
}

/// The plots of one target.
#[derive(Debug, Default)]
pub(super) struct Plots {
    sums: BTreeMap<PlotKey, PlotSum>,
    sessions: BTreeMap<SessionId, BTreeMap<PlotKey, Recent>>,
    /// Numbers of plots that have no series.
    left_out: u64,
}

impl Plots {
    /// Adds numbers of a process.
    pub(super) fn add(&mut self, id: SessionId, numbers: Vec<NumbersOfPlot>) {
        let recent = self.sessions.entry(id).or_default();
        for NumbersOfPlot { plot, sum } in numbers {
            if self.sums.len() >= MOST_PLOTS && !self.sums.contains_key(&plot) {
                let all = sum.finite.saturating_add(sum.not_finite).saturating_add(sum.lost);
                self.left_out = self.left_out.saturating_add(all);
                continue;
            }
            self.sums.entry(plot.clone()).or_default().merge(&sum);
            let recent = recent.entry(plot).or_default();
            recent.last = later(recent.last, sum.last);
            recent.present = wider(recent.present, sum.range);
        }
    }

    /// Ends the interval of a process.
    pub(super) fn end_interval(&mut self, id: SessionId) {
        for recent in self.sessions.get_mut(&id).into_iter().flat_map(BTreeMap::values_mut) {
            recent.before = recent.present.take();
        }
    }

    pub(super) fn end_session(&mut self, id: SessionId) {
        self.sessions.remove(&id);
    }

    pub(super) fn tell(&self, target: &Arc<str>, families: &mut Families) {
        for (plot, sum) in &self.sums {
            let values = [target, &plot.name, &plot.group, &plot.unit];
            let labels = catalog::PLOT_LAST.labels.iter().copied();
            let labels: Labels = labels.zip(values.map(Arc::clone)).collect();
            let mut last = None;
            let mut range = None;
            for recent in self.sessions.values().filter_map(|plots| plots.get(plot)) {
                last = later(last, recent.last);
                range = wider(range, wider(recent.present, recent.before));
            }
            if let Some((_, last)) = last {
                families.push(&catalog::PLOT_LAST, labels.clone(), last);
            }
            if let Some((least, greatest)) = range {
                families.push(&catalog::PLOT_MIN, labels.clone(), least);
                families.push(&catalog::PLOT_MAX, labels.clone(), greatest);
            }
            for counter in &OF_PLOT {
                families.push(&counter.metric, labels.clone(), (counter.of)(sum));
            }
        }
        let labels = vec![("target", Arc::clone(target))];
        families.push(&catalog::PLOTS_LEFT_OUT, labels, self.left_out as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::metrics::family::MetricValue;

    fn numbers(name: &str, time: u64, all: &[f64]) -> NumbersOfPlot {
        let mut sum = PlotSum { lost: 1, ..PlotSum::default() };
        (time..).zip(all).for_each(|(time, number)| sum.add(Nanos(time), *number));
        NumbersOfPlot::new(&FunctionInfo::new(name, "program"), sum)
    }

    /// Returns the values of a metric by the name of the plot.
    fn told(plots: &Plots, metric: &str) -> Vec<(String, f64)> {
        let mut families = Families::default();
        plots.tell(&"web".into(), &mut families);
        let families = families.finish();
        let family = families.iter().find(|family| family.metric.name == metric);
        let points = family.into_iter().flat_map(|family| &family.points);
        let of = points.map(|point| {
            let name = point.labels.iter().find(|(label, _)| *label == "plot");
            let MetricValue::Number(number) = point.value else { panic!("a number") };
            (name.map(|(_, name)| name.to_string()).unwrap_or_default(), number)
        });
        of.collect()
    }

    fn one(name: &str, number: f64) -> Vec<(String, f64)> {
        vec![(name.to_owned(), number)]
    }

    #[test]
    fn the_range_is_of_two_intervals_and_sums_outlast_processes() {
        let (mut plots, [a, b]) = (Plots::default(), [SessionId(3), SessionId(5)]);
        plots.add(a, vec![numbers("queue", 10, &[7.0, 2.0, f64::NAN])]);
        plots.add(b, vec![numbers("queue", 15, &[-1.5])]);
        assert_eq!(told(&plots, "ctrace_plot_last"), one("queue", -1.5));
        assert_eq!(told(&plots, "ctrace_plot_min"), one("queue", -1.5));
        plots.end_session(b);
        assert_eq!(told(&plots, "ctrace_plot_last"), one("queue", 2.0));
        plots.end_interval(a);
        plots.add(a, vec![numbers("queue", 20, &[4.0])]);
        assert_eq!(told(&plots, "ctrace_plot_max"), one("queue", 7.0));
        plots.end_interval(a);
        assert_eq!(told(&plots, "ctrace_plot_max"), one("queue", 4.0));
        plots.end_interval(a);
        assert_eq!(told(&plots, "ctrace_plot_max"), []);
        assert_eq!(told(&plots, "ctrace_plot_last"), one("queue", 4.0));
        plots.end_session(a);
        assert_eq!(told(&plots, "ctrace_plot_last"), []);
        assert_eq!(told(&plots, "ctrace_plot_numbers_total"), one("queue", 4.0));
        assert_eq!(told(&plots, "ctrace_plot_sum_total"), one("queue", 13.0));
        assert_eq!(told(&plots, "ctrace_plot_negative_sum_total"), one("queue", 1.5));
        assert_eq!(told(&plots, "ctrace_plot_not_finite_total"), one("queue", 1.0));
        assert_eq!(told(&plots, "ctrace_plot_lost_total"), one("queue", 3.0));
    }

    #[test]
    fn names_without_end_have_bounded_series() {
        let mut plots = Plots::default();
        for number in 0..MOST_PLOTS + 7 {
            plots.add(SessionId(1), vec![numbers(&format!("p{number}"), 1, &[1.0, f64::INFINITY])]);
        }
        assert_eq!(told(&plots, "ctrace_plot_last").len(), MOST_PLOTS);
        let left_out = told(&plots, "ctrace_target_plot_numbers_left_out_total");
        assert_eq!(left_out, one("", 21.0));
    }
}
