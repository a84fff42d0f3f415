//! Checks the documentation of metrics: `docs/metrics.md` and the dashboard.

use super::catalog;
use crate::daemon::metrics::metric::{Metric, MetricKind};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;

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
fn the_dashboard_asks_for_what_there_is() {
    let dashboard: Value = serde_json::from_str(&document("grafana-dashboard.json")).expect("JSON");
    let (series, name) = (series(), Regex::new(r"\b(ctrace|process)_[a-z_]+").expect("a pattern"));
    let by = Regex::new(r"by \(([a-z_, ]+)\)|\{\{(\w+)\}\}").expect("a pattern");
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
    };
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{panel}");
        for target in panel["targets"].as_array().into_iter().flatten() {
            let [query, legend] =
                ["expr", "legendFormat"].map(|key| target[key].as_str().expect(key));
            assert!(!query.is_empty());
            check(query, legend, &mut asked);
        }
    }
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        let query = variable["definition"].as_str().unwrap_or_default();
        check(query, "", &mut asked);
    }
    for metric in [
        "ctrace_function_calls_total",
        "ctrace_function_duration_seconds",
        "ctrace_function_active_exclusive_seconds_total",
        "ctrace_target_losses_total",
        "ctrace_target_overhead_seconds_total",
        "process_resident_memory_bytes",
    ] {
        assert!(asked.contains(metric), "nothing shows {metric}");
    }
}

#[test]
fn panels_do_not_lie_upon_each_other() {
    let dashboard: Value = serde_json::from_str(&document("grafana-dashboard.json")).expect("JSON");
    let mut taken = BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        let [x, y, w, h] =
            ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().expect(key));
        assert!(x + w <= 24 && !panel["title"].as_str().expect("a title").is_empty());
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(cell), "{}", panel["title"]);
        }
    }
}
