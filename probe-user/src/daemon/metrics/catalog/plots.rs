//! The metrics of plots.

use super::{Counter, TARGET};
use crate::daemon::metrics::metric::Metric;
use ctrace_core::recording::PlotSum;

const PLOT: &[&str] = &["target", "plot", "group", "unit"];

pub(crate) static PLOT_LAST: Metric = Metric::gauge(
    "ctrace_plot_last",
    PLOT,
    "The finite number that was written last (`plots` of the target).",
);

pub(crate) static PLOT_MIN: Metric = Metric::gauge(
    "ctrace_plot_min",
    PLOT,
    "The least finite number of the present interval and the one before it.",
);

pub(crate) static PLOT_MAX: Metric = Metric::gauge(
    "ctrace_plot_max",
    PLOT,
    "The greatest finite number of the present interval and the one before it.",
);

/// A counter of plots, and its value.
pub(crate) type OfPlot = Counter<fn(&PlotSum) -> f64>;

pub(crate) static OF_PLOT: [OfPlot; 5] = [
    Counter {
        metric: Metric::counter(
            "ctrace_plot_numbers_total",
            PLOT,
            "Finite numbers that were written.",
        ),
        of: |sum| sum.finite as f64,
    },
    Counter {
        metric: Metric::counter("ctrace_plot_sum_total", PLOT, "Sum of the positive numbers."),
        of: |sum| sum.positive,
    },
    Counter {
        metric: Metric::counter(
            "ctrace_plot_negative_sum_total",
            PLOT,
            "Sum of the negative numbers, without their sign.",
        ),
        of: |sum| sum.negative,
    },
    Counter {
        metric: Metric::counter(
            "ctrace_plot_not_finite_total",
            PLOT,
            "Infinite numbers, and NaN. They count here only.",
        ),
        of: |sum| sum.not_finite as f64,
    },
    Counter {
        metric: Metric::counter(
            "ctrace_plot_lost_total",
            PLOT,
            "Numbers that were lost or could not be read. They count here only.",
        ),
        of: |sum| sum.lost as f64,
    },
];

pub(crate) static PLOTS_LEFT_OUT: Metric = Metric::counter(
    "ctrace_target_plot_numbers_left_out_total",
    TARGET,
    "Numbers of plots beyond the bound on series.",
);

/// Returns those that each plot has, in their output order.
pub(super) fn all() -> impl Iterator<Item = &'static Metric> {
    let recent = [&PLOT_LAST, &PLOT_MIN, &PLOT_MAX].into_iter();
    recent.chain(OF_PLOT.iter().map(|counter| &counter.metric))
}
