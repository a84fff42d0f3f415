//! Tests that all references in a report stay correct when its functions move.

use crate::fixture;

use ctrace_core::report::render::json;
use ctrace_core::report::{ByValue, Report};
use serde_json::Value;

/// Returns names in place of indices of functions, in order.
fn named(report: &Report) -> Vec<String> {
    let name = |index: usize| report.functions[index].name.to_string();
    let mut names: Vec<String> = report.paths.iter().map(|path| name(path.function)).collect();
    names.extend(report.histograms.iter().flat_map(|h| &h.functions).map(|f| name(f.function)));
    for call in report.slowest_calls.iter().flatten() {
        names.push(name(call.function));
        names.extend(call.functions.iter().map(|function| name(*function)));
        names.extend(call.inside.iter().map(|row| name(row.function)));
    }
    for lane in report.timeline.iter().flat_map(|timeline| &timeline.lanes) {
        names.extend(
            lane.innermost.iter().chain(lane.depths.iter().flatten()).map(|c| name(c.function)),
        );
    }
    if let Some(frames) = &report.frames {
        let functions = frames.worst.iter().map(|frame| frame.function);
        let parts = frames.parts.iter().map(|part| part.function);
        names.extend(functions.chain(parts).chain([frames.function]).map(name));
    }
    names
        .extend(report.trend.iter().flat_map(|trend| &trend.functions).map(|of| name(of.function)));
    names.extend(report.values.iter().map(|values| name(values.function)));
    names.extend(
        report.ctrack.iter().flat_map(|ctrack| &ctrack.functions).map(|f| name(f.function)),
    );
    names
}

/// Counts indices in JSON: values of keys called `function`, and numbers in lists called
/// `functions`.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(count).sum(),
        Value::Object(map) => {
            let indices = |key: &str, value: &Value| match (key, value) {
                ("function", _) => 1,
                ("functions", Value::Array(list)) => list.iter().filter(|v| v.is_u64()).count(),
                _ => 0,
            };
            map.iter().map(|(key, value)| indices(key, value) + count(value)).sum()
        }
        _ => 0,
    }
}

#[test]
fn every_index_moves() {
    let mut report = fixture::typical();
    report.values.push(ByValue {
        function: 2,
        name: "key".into(),
        is_result: false,
        rows: Vec::new(),
        others: None,
        unread: None,
        unsure: false,
    });
    let before = named(&report);
    let json: Value = serde_json::from_str(&json::to_line(&report)).expect("JSON");
    assert_eq!(before.len(), count(&json), "an index is not looked at here");
    let last = report.functions.len() - 1;
    report.functions.reverse();
    report.move_functions(&(0..=last).map(|place| last - place).collect::<Vec<_>>());
    assert_eq!(named(&report), before);
}
