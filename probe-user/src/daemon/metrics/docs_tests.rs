//! Checks the documentation of metrics: `docs/metrics.md` and the dashboards.

use super::catalog;
use crate::daemon::metrics::metric::{Metric, MetricKind};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;

/// The dashboards of a host and of a fleet, with metrics that each must show.
const DASHBOARDS: [(&str, &[&str]); 2] = [
    (
        "grafana-dashboard.json",
        &[
            "ctrace_function_calls_total",
            "ctrace_function_duration_seconds",
            "ctrace_function_active_exclusive_seconds_total",
            "ctrace_target_losses_total",
            "ctrace_target_overhead_seconds_total",
            "ctrace_plot_last",
            "process_resident_memory_bytes",
        ],
    ),
    (
        "grafana-fleet-dashboard.json",
        &[
            "ctrace_function_calls_total",
            "ctrace_function_time_seconds_total",
            "ctrace_function_self_seconds_total",
            "ctrace_function_duration_seconds",
            "ctrace_target_losses_total",
            "ctrace_target_overhead_seconds_total",
            "ctrace_build_info",
        ],
    ),
];

fn dashboard(name: &str) -> Value {
    serde_json::from_str(&document(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn document(name: &str) -> String {
    let path = format!("{}/../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn row(metric: &Metric) -> String {
    let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
    let Metric { name, kind, help, .. } = metric;
    format!("| `{name}` | {} | {} | {help} |", kind.name(), labels.join(", "))
}

#[test]
fn every_metric_is_documented_as_it_is() {
    let text = document("metrics.md");
    let (_, table) = text.split_once("## All metrics").expect("the table of all");
    let told: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    let rows: Vec<String> = catalog::all().map(row).collect();
    assert!(told == rows, "docs/metrics.md must have these rows:\n{}", rows.join("\n"));
}

/// Returns the series that a query may name, with the labels to group by.
fn series() -> Vec<(String, &'static Metric)> {
    let ends = |metric: &Metric| match metric.kind {
        MetricKind::Histogram => vec!["", "_bucket", "_sum", "_count"],
        _ => vec![""],
    };
    let all = catalog::all();
    all.flat_map(|metric| {
        ends(metric).into_iter().map(move |end| (format!("{}{end}", metric.name), metric))
    })
    .collect()
}

#[test]
fn the_dashboards_ask_for_what_there_is() {
    for (file, shown) in DASHBOARDS {
        let asked = asked(&dashboard(file));
        for metric in shown {
            assert!(asked.contains(*metric), "nothing in {file} shows {metric}");
        }
    }
}

/// Checks the queries of a dashboard. Returns the metrics in them.
fn asked(dashboard: &Value) -> BTreeSet<String> {
    let (series, name) = (series(), Regex::new(r"\b(ctrace|process)_[a-z_]+").expect("a pattern"));
    let by = Regex::new(r"by \(([a-z_, ]+)\)|\{\{(\w+)\}\}").expect("a pattern");
    let variable = Regex::new(r"\$(\w+)").expect("a pattern");
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let mut asked = BTreeSet::new();
    let check = |query: &str, legend: &str, asked: &mut BTreeSet<String>| {
        let mut labels = BTreeSet::from(["le", "job", "instance"]);
        for found in name.find_iter(query) {
            let known = series.iter().find(|(series, _)| series == found.as_str());
            let (_, metric) = known.unwrap_or_else(|| panic!("there is no {}", found.as_str()));
            labels.extend(metric.labels);
            asked.insert(metric.name.to_owned());
        }
        for text in [query, legend] {
            for found in by.captures_iter(text) {
                let names = found.get(1).or(found.get(2)).map_or("", |names| names.as_str());
                names
                    .split(", ")
                    .for_each(|label| assert!(labels.contains(label), "{label}: {query}"));
            }
        }
        for found in variable.captures_iter(query) {
            let known = variables.iter().any(|variable| variable["name"] == found[1]);
            assert!(known || &found[1] == "__rate_interval", "${}: {query}", &found[1]);
        }
    };
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{panel}");
        for target in panel["targets"].as_array().into_iter().flatten() {
            let [query, legend] =
                ["expr", "legendFormat"].map(|key| target[key].as_str().expect(key));
            assert!(!query.is_empty());
            check(query, legend, &mut asked);
        }
    }
    for variable in variables {
        let query = variable["definition"].as_str().unwrap_or_default();
        check(query, "", &mut asked);
    }
    asked
}

#[test]
fn panels_do_not_lie_upon_each_other() {
    for (file, _) in DASHBOARDS {
        let mut taken = BTreeSet::new();
        for panel in dashboard(file)["panels"].as_array().expect("panels") {
            let [x, y, w, h] =
                ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().expect(key));
            assert!(x + w <= 24 && !panel["title"].as_str().expect("a title").is_empty());
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                assert!(taken.insert(cell), "{file}: {}", panel["title"]);
            }
        }
    }
}
