//! The description of a metric.
//!
//! Names follow Prometheus, whose conventions put the unit and `_total` into them. OTLP keeps both
//! apart, so its names are derived.

/// The way in which a metric's values change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricKind {
    /// Never decreases.
    Counter,
    Gauge,
    Histogram,
}

impl MetricKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub help: &'static str,
    pub labels: &'static [&'static str],
}

/// Name suffixes, and OTLP's form of each unit.
const UNITS: [(&str, &str); 2] = [("_seconds", "s"), ("_bytes", "By")];

impl Metric {
    pub(crate) const fn counter(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: MetricKind::Counter, help, labels }
    }

    pub(crate) const fn gauge(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: MetricKind::Gauge, help, labels }
    }

    fn stem(&self) -> &'static str {
        self.name.strip_suffix("_total").unwrap_or(self.name)
    }

    /// Returns the unit in OTLP's form. `1` means a count.
    pub(crate) fn unit(&self) -> &'static str {
        let unit = UNITS.iter().find(|(end, _)| self.stem().ends_with(end));
        unit.map_or("1", |(_, unit)| unit)
    }

    /// Returns the name without unit and `_total`, with dots, as in `ctrace.function.self`.
    pub(crate) fn otlp_name(&self) -> String {
        let units = UNITS.iter().find_map(|(end, _)| self.stem().strip_suffix(end));
        let stem = units.unwrap_or(self.stem());
        let parts = 2 + usize::from(
            ["ctrace_function_", "ctrace_plot_", "ctrace_target_"]
                .iter()
                .any(|p| stem.starts_with(p)),
        );
        stem.splitn(parts, '_').collect::<Vec<_>>().join(".")
    }

    /// Converts a sum: times are kept in nanoseconds and exported in seconds.
    pub(crate) fn value(&self, sum: u64) -> f64 {
        if self.unit() == "s" { sum as f64 / 1e9 } else { sum as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_in_the_name() {
        let of = |name| Metric::counter(name, &[], "");
        let time = of("ctrace_function_active_exclusive_seconds_total");
        assert_eq!(time.unit(), "s");
        assert_eq!(time.otlp_name(), "ctrace.function.active_exclusive");
        assert_eq!(time.value(1_500_000_000), 1.5);
        let memory = of("process_resident_memory_bytes");
        assert_eq!(
            (memory.unit(), memory.otlp_name()),
            ("By", "process.resident_memory".to_owned())
        );
        let calls = of("ctrace_function_calls_total");
        assert_eq!((calls.unit(), calls.otlp_name()), ("1", "ctrace.function.calls".to_owned()));
        assert_eq!(calls.value(3), 3.0);
    }
}
