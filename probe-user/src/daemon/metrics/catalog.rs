//! The catalogue of all metrics: name, meaning, and how to get the value from a snapshot.
//!
//! `docs/metrics.md` is checked against this list.

mod own;
mod plots;

use super::metric::{Metric, MetricKind};
use crate::session::keep::live::Snapshot;
use ctrace_core::{
    report::{
        FunctionReport, LossReport,
        numbers::{Number, number},
    },
    units::Nanos,
};

pub(crate) use own::{OF_OWN, OWN, Own, PROCESS, SCRAPE_DURATION};
pub(crate) use plots::{OF_PLOT, PLOT_LAST, PLOT_MAX, PLOT_MIN, PLOTS_LEFT_OUT};

/// A counter, and the source of its increments in a snapshot.
pub(crate) struct Counter<Of> {
    pub metric: Metric,
    pub of: Of,
}

/// A function in a report, with the cost of its probes and the observed time.
pub(crate) struct FunctionRow<'a> {
    pub report: &'a FunctionReport,
    pub spent: Nanos,
    pub observed: Nanos,
}

/// The increment of a function counter.
#[derive(Clone, Copy)]
pub(crate) enum OfFunction {
    /// Numbers of the report, each of which adds up over time.
    Numbers(&'static [&'static Number]),
    /// A value that needs more than the report.
    Else(fn(&FunctionRow<'_>) -> u64),
}

impl Counter<OfFunction> {
    pub(crate) fn value(&self, row: &FunctionRow<'_>) -> u64 {
        match self.of {
            OfFunction::Numbers(numbers) => {
                let values = numbers.iter().filter_map(|number| (number.of)(row.report).whole());
                values.fold(0, u64::saturating_add)
            }
            OfFunction::Else(of) => of(row),
        }
    }
}

pub(crate) type OfLoss = fn(&LossReport) -> u64;
pub(crate) type OfTarget = Counter<fn(&Snapshot) -> u64>;

const FUNCTION: &[&str] = &["target", "function", "object", "kind", "group"];
/// As [`FUNCTION`]; `which` is value, others, unread or lost.
const VALUE: &[&str] =
    &["target", "function", "object", "kind", "group", "argument", "which", "value"];
const TARGET: &[&str] = &["target"];

pub(crate) const FUNCTION_SUMS: usize = 9;

pub(crate) static OF_FUNCTION: [Counter<OfFunction>; FUNCTION_SUMS] = [
    Counter {
        metric: Metric::counter(
            "ctrace_function_calls_total",
            FUNCTION,
            "Calls that have ended, with or without a known duration.",
        ),
        of: OfFunction::Numbers(&[number("timed"), number("untimed")]),
    },
    Counter {
        metric: Metric::counter(
            "ctrace_function_untimed_calls_total",
            FUNCTION,
            "Calls that have ended at an unknown time: left by longjmp, an exception, a lost event.",
        ),
        of: OfFunction::Numbers(&[number("untimed")]),
    },
    Counter {
        metric: Metric::counter(
            "ctrace_function_headless_exits_total",
            FUNCTION,
            "Exits whose entry was not seen; they are no calls.",
        ),
        of: OfFunction::Numbers(&[number("headless")]),
    },
    Counter {
        metric: Metric::counter(
            "ctrace_function_time_seconds_total",
            FUNCTION,
            "Sum of the durations of calls.",
        ),
        of: OfFunction::Numbers(&[number("total_ns")]),
    },
    Counter {
        metric: Metric::counter(
            "ctrace_function_self_seconds_total",
            FUNCTION,
            "The same without the durations of direct traced callees.",
        ),
        of: OfFunction::Numbers(&[number("self_ns")]),
    },
    Counter {
        metric: Metric::counter(
            "ctrace_function_active_seconds_total",
            FUNCTION,
            "Time in which the function was on a stack of any thread, each process for itself.",
        ),
        of: OfFunction::Numbers(&[number("active_ns")]),
    },
    Counter {
        metric: Metric::counter(
            "ctrace_function_active_exclusive_seconds_total",
            FUNCTION,
            "Time in which it was the innermost traced function of any thread, each process for itself.",
        ),
        of: OfFunction::Numbers(&[number("active_exclusive_ns")]),
    },
    Counter {
        metric: Metric::counter(
            "ctrace_function_overhead_seconds_total",
            FUNCTION,
            "Estimated time that the function's probes cost the target.",
        ),
        of: OfFunction::Else(|row| row.spent.0),
    },
    Counter {
        metric: Metric::counter(
            "ctrace_function_disarmed_seconds_total",
            FUNCTION,
            "Time in which the function's probes were away, to keep within the budget, each process for itself.",
        ),
        of: OfFunction::Else(|row| {
            row.report.sampled.map_or(0, |sampled| row.observed.since(sampled.armed_ns).0)
        }),
    },
];

pub(crate) static OPEN_CALLS: Metric =
    Metric::gauge("ctrace_function_open_calls", FUNCTION, "Calls that have not ended yet.");

pub(crate) static DURATION: Metric = Metric {
    name: "ctrace_function_duration_seconds",
    kind: MetricKind::Histogram,
    help: "Durations of the calls whose duration is known.",
    labels: FUNCTION,
};

pub(crate) static VALUE_CALLS: Metric = Metric::counter(
    "ctrace_value_calls_total",
    VALUE,
    "Calls that have ended, by a value of theirs (`by` of the target).",
);

pub(crate) static VALUE_TIME: Metric = Metric::counter(
    "ctrace_value_time_seconds_total",
    VALUE,
    "Sum of the durations of these calls.",
);

pub(crate) const TARGET_SUMS: usize = 4;

pub(crate) static OF_TARGET: [OfTarget; TARGET_SUMS] = [
    Counter {
        metric: Metric::counter(
            "ctrace_target_observed_seconds_total",
            TARGET,
            "Time that processes of the target were traced, each process for itself.",
        ),
        of: |snapshot| snapshot.report.duration_ns.0,
    },
    Counter {
        metric: Metric::counter(
            "ctrace_target_tracked_seconds_total",
            TARGET,
            "Time in which any traced function ran, each process for itself.",
        ),
        of: |snapshot| snapshot.report.tracked_ns.unwrap_or_default().0,
    },
    Counter {
        metric: Metric::counter(
            "ctrace_target_overhead_seconds_total",
            TARGET,
            "Estimated time that all probes cost the target.",
        ),
        of: |snapshot| snapshot.cost().0,
    },
    Counter {
        metric: Metric::counter(
            "ctrace_target_filtered_calls_total",
            TARGET,
            "Calls that a filter left out.",
        ),
        of: |snapshot| snapshot.report.filtered_calls,
    },
];

pub(crate) static CPU: Metric = Metric::counter(
    "ctrace_target_cpu_seconds_total",
    TARGET,
    "CPU time that the target used from the first look at each process on.",
);

pub(crate) static LOSSES: Metric = Metric::counter(
    "ctrace_target_losses_total",
    &["target", "kind"],
    "What could not be measured: events that found no room, came too late or made no sense, calls \
     of unknown duration, exits without entry, values beside calls that found no room.",
);

pub(crate) const LOSS_KINDS: usize = 6;

/// The values of the label `kind` of [`LOSSES`].
pub(crate) static OF_LOSS: [(&str, OfLoss); LOSS_KINDS] = [
    ("event", |loss| loss.events),
    ("late_event", |loss| loss.late),
    ("decode_error", |loss| loss.decode_errors),
    ("untimed_call", |loss| loss.calls_untimed),
    ("headless_exit", |loss| loss.calls_headless),
    ("payload", |loss| loss.payloads),
];

/// An event of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetEvent {
    Started,
    Ended,
    Interval,
    AttachFailed,
    ValuesLost,
    PlotsLost,
}

pub(crate) const EVENTS: usize = 6;

/// The metrics of events, by [`TargetEvent`].
pub(crate) static OF_EVENT: [Metric; EVENTS] = [
    Metric::counter(
        "ctrace_target_starts_total",
        TARGET,
        "Processes of the target that were attached to.",
    ),
    Metric::counter(
        "ctrace_target_ends_total",
        TARGET,
        "Processes of the target that are no longer traced, because they ended or otherwise.",
    ),
    Metric::counter(
        "ctrace_target_intervals_total",
        TARGET,
        "Intervals that are complete, each process for itself.",
    ),
    Metric::counter(
        "ctrace_target_attach_failures_total",
        TARGET,
        "Attempts to trace a process that failed, as when it ended first.",
    ),
    Metric::counter(
        "ctrace_target_values_lost_total",
        TARGET,
        "Processes whose later calls are in no series of values (`by`), as their values could not be read.",
    ),
    Metric::counter(
        "ctrace_target_plots_lost_total",
        TARGET,
        "Processes whose later numbers of plots are in no series, as they could not be read.",
    ),
];

pub(crate) static PROCESSES: Metric = Metric::gauge(
    "ctrace_target_processes",
    TARGET,
    "Processes of the target that are traced now.",
);

pub(crate) static FUNCTIONS: Metric = Metric::gauge(
    "ctrace_target_functions",
    TARGET,
    "Functions of the target that have been called and have series of their own.",
);

pub(crate) static IN_OTHER: Metric = Metric::gauge(
    "ctrace_target_functions_in_other",
    TARGET,
    "Functions beyond the bound on series, told together with function=\"other\", kind=\"other\".",
);

pub(crate) static SAMPLED: Metric = Metric::gauge(
    "ctrace_target_functions_sampled",
    TARGET,
    "Functions that were armed for a part of the last interval only, each process for itself.",
);

pub(crate) static BUDGET: Metric = Metric::gauge(
    "ctrace_target_budget_ratio",
    TARGET,
    "What the probes may cost of the CPU time that the target uses for itself, as configured.",
);

pub(crate) static BUILD: Metric =
    Metric::gauge("ctrace_build_info", &["version"], "The version of ctrace; always 1.");

/// Returns all metrics in their output order.
pub(crate) fn all() -> impl Iterator<Item = &'static Metric> {
    let functions = OF_FUNCTION.iter().map(|sum| &sum.metric).chain([&OPEN_CALLS, &DURATION]);
    let values = [&VALUE_CALLS, &VALUE_TIME];
    let targets = OF_TARGET.iter().map(|sum| &sum.metric).chain([&CPU, &LOSSES, &PLOTS_LEFT_OUT]);
    let targets = targets.chain(&OF_EVENT).chain([&PROCESSES, &FUNCTIONS, &IN_OTHER]);
    let targets = targets.chain([&SAMPLED, &BUDGET]);
    let own = [&BUILD].into_iter().chain(&OF_OWN).chain([&SCRAPE_DURATION]).chain(&PROCESS);
    functions.chain(values).chain(plots::all()).chain(targets).chain(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_core::report::numbers::Unit;

    #[test]
    fn names_follow_the_conventions() {
        let mut names: Vec<&str> = all().map(|metric| metric.name).collect();
        for metric in all() {
            let total = metric.name.ends_with("_total");
            assert_eq!(total, metric.kind == MetricKind::Counter, "{}", metric.name);
            assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{}", metric.name);
        }
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }

    /// Times are exported in seconds, and the metric names say so.
    #[test]
    fn numbers_add_up_and_have_the_unit_of_their_metric() {
        for Counter { metric, of } in &OF_FUNCTION {
            let OfFunction::Numbers(numbers) = of else { continue };
            for number in *numbers {
                assert!(number.is_additive(), "{} of {}", number.key, metric.name);
                let is_time = number.unit == Unit::Time;
                assert_eq!(metric.unit() == "s", is_time, "{} of {}", number.key, metric.name);
            }
        }
    }

    #[test]
    fn the_numbers_of_events_fit_their_names() {
        assert!(OF_EVENT[TargetEvent::AttachFailed as usize].name.contains("attach"));
        assert!(OF_EVENT[TargetEvent::Ended as usize].name.contains("ends"));
        assert!(OF_EVENT[TargetEvent::ValuesLost as usize].name.contains("values_lost"));
        assert!(OF_EVENT[TargetEvent::PlotsLost as usize].name.contains("plots_lost"));
        assert!(OF_OWN[Own::OtlpGivenUp as usize].name.contains("given_up"));
        assert!(OF_OWN[Own::SlowCallsDropped as usize].name.contains("slow_calls_dropped"));
        assert!(OF_OWN[Own::Unanswered as usize].name.contains("unanswered"));
    }
}
