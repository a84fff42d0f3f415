//! The machine formats: JSON against its published schema, CSV against the needs of its readers.

use crate::fixture;

use ctrace_core::report::numbers::{NUMBERS, Number, Unit};
use ctrace_core::report::render::RowKind;
use ctrace_core::report::render::columns;
use ctrace_core::report::render::rows::{self, RowChoice};
use ctrace_core::report::render::{csv, json};
use ctrace_core::report::{FramePart, Report, TargetExit, ctrack};
use ctrace_core::units::Nanos;
use serde_json::Value;
use std::collections::BTreeSet;

fn reports() -> Vec<Report> {
    vec![
        fixture::empty(),
        fixture::typical(),
        fixture::lossy(),
        fixture::hostile(),
        fixture::long_names(),
        fixture::nothing_called(),
        fixture::recursion(10),
    ]
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn validator() -> jsonschema::Validator {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/report.schema.json");
    let schema = parse(&std::fs::read_to_string(path).expect("the schema is in docs/"));
    jsonschema::draft202012::new(&schema).expect("a schema of draft 2020-12")
}

fn assert_valid(value: &Value) {
    let errors: Vec<String> = validator()
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn every_report_follows_the_schema() {
    for report in reports() {
        let pretty = parse(&json::to_pretty(&report));
        assert_valid(&pretty);
        let line = json::to_line(&report);
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(parse(&line), pretty);
    }
}

#[test]
fn what_was_not_asked_for_is_not_there() {
    let value = parse(&json::to_line(&fixture::empty()));
    for key in ["histograms", "slowest_calls", "timeline"] {
        assert!(value.get(key).is_none(), "{key}");
        assert!(parse(&json::to_line(&fixture::typical())).get(key).is_some(), "{key}");
    }
    assert!(parse(&json::to_line(&fixture::recursion(3)))["paths"][0].get("histogram").is_none());
}

#[test]
fn every_way_to_end_follows_the_schema() {
    let ends = [
        (None, "null"),
        (Some(TargetExit::Code(0)), r#"{"code":0}"#),
        (Some(TargetExit::Signal(9)), r#"{"signal":9}"#),
        (Some(TargetExit::Unknown), r#""unknown""#),
    ];
    for (exit, text) in ends {
        let mut report = fixture::typical();
        report.target.exit = exit;
        let value = parse(&json::to_line(&report));
        assert_valid(&value);
        assert_eq!(value["target"]["exit"].to_string(), text);
    }
}

#[test]
fn the_schema_refuses_what_is_no_report() {
    let validator = validator();
    let good = parse(&json::to_line(&fixture::typical()));
    for pointer in [
        "/loss",
        "/functions/0/p999_ns",
        "/functions/0/center/median_ns",
        "/schema",
        "/histograms/functions/0/counts",
        "/slowest_calls/0/inside/0/parent",
        "/timeline/lanes/0/depths",
    ] {
        let mut bad = good.clone();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        let parent = bad.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
        parent.remove(key).expect("the key is there");
        assert!(!validator.is_valid(&bad), "{pointer} is required");
    }
    let mut bad = good.clone();
    bad["duration_ns"] = 1.5.into();
    assert!(!validator.is_valid(&bad), "integers are integers");
}

/// The order of keys is that of the interface's description.
#[test]
fn keys_are_in_the_documented_order() {
    let text = json::to_line(&fixture::typical());
    let mut at = 0;
    for key in [
        "schema",
        "target",
        "pid",
        "exe",
        "command",
        "exit",
        "start_ns",
        "end_ns",
        "duration_ns",
        "tracked_ns",
        "tracked_percent",
        "approximate",
        "filtered_calls",
        "loss",
        "events",
        "late",
        "calls_untimed",
        "calls_open",
        "calls_headless",
        "decode_errors",
        "functions",
        "name",
        "aliases",
        "object",
        "file",
        "line",
        "kind",
        "group",
        "calls",
        "timed",
        "untimed",
        "open",
        "headless",
        "threads",
        "total_ns",
        "self_ns",
        "active_ns",
        "active_exclusive_ns",
        "active_exclusive_percent",
        "min_ns",
        "mean_ns",
        "p50_ns",
        "p90_ns",
        "p95_ns",
        "p99_ns",
        "p999_ns",
        "max_ns",
        "sd_ns",
        "cv",
        "fastest",
        "center",
        "slowest",
        "p75_ns",
        "calls_per_second",
        "paths",
        "threads",
    ] {
        let quoted = format!("\"{key}\":");
        at += text[at..].find(&quoted).unwrap_or_else(|| panic!("{key} is not in its place"));
    }
}

/// Each number of a function is in JSON under its key, and the schema describes it.
#[test]
fn every_number_is_in_json_and_in_the_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/report.schema.json");
    let schema = parse(&std::fs::read_to_string(path).expect("the schema is in docs/"));
    let properties = &schema["$defs"]["function"]["properties"];
    let report = fixture::typical();
    let told = parse(&json::to_line(&report));
    let rows = told["functions"].as_array().expect("rows");
    for number in NUMBERS {
        let own = number.json_key();
        let (in_row, in_schema) = match number.parent {
            Some(parent) => (format!("/{parent}/{own}"), format!("/{parent}/properties/{own}")),
            None => (format!("/{own}"), format!("/{own}")),
        };
        check_described(number, properties.pointer(&in_schema));
        for (function, row) in report.functions.iter().zip(rows) {
            check_told(number, function, row.pointer(&in_row));
        }
    }
    let properties = &schema["$defs"]["ctrackFunction"]["properties"];
    let ctrack = report.ctrack.as_ref().expect("a typical report has everything");
    let rows = told["ctrack"]["functions"].as_array().expect("rows");
    assert_eq!(rows.len(), ctrack.functions.len());
    for number in ctrack::NUMBERS {
        check_described(number, properties.get(number.key));
        for (function, row) in ctrack.functions.iter().zip(rows) {
            check_told(number, function, row.get(number.key));
        }
    }
}

fn check_described<T>(number: &Number<T>, described: Option<&Value>) {
    let Number { key, unit, help, .. } = number;
    let described = described.unwrap_or_else(|| panic!("no {key}"));
    let form = described["$ref"].as_str().and_then(|form| form.rsplit('/').next());
    let forms = match unit {
        Unit::Count => ["count", "countOrNull"],
        Unit::Time => ["ns", "nsOrNull"],
        Unit::Percent => ["percent", "numberOrNull"],
        Unit::Ratio | Unit::Rate => ["numberOrNull", "numberOrNull"],
    };
    assert!(form.is_some_and(|form| forms.contains(&form)), "{key}: {form:?}");
    assert!(described["description"].as_str().is_none_or(|text| text == *help), "{key}");
}

fn check_told<T>(number: &Number<T>, of: &T, told: Option<&Value>) {
    let value = told.unwrap_or_else(|| panic!("no {} in JSON", number.key));
    assert_eq!((number.of)(of).to_string().parse().ok(), value.as_f64(), "{}", number.key);
}

#[test]
fn json_keeps_functions_without_calls_and_all_64_bits() {
    let value = parse(&json::to_line(&fixture::nothing_called()));
    assert_eq!(value["functions"].as_array().map(Vec::len), Some(37));
    let value = parse(&json::to_pretty(&fixture::extreme()));
    assert_eq!(value["duration_ns"].as_u64(), Some(u64::MAX));
    assert_eq!(value["functions"][1]["cv"], Value::Null);
}

#[test]
fn json_is_safe_to_print_and_loses_nothing() {
    let report = fixture::hostile();
    let text = json::to_pretty(&report);
    let harmful = |c: char| c != '\n' && ctrace_core::report::render::clean::is_harmful(c);
    assert!(!text.contains(harmful));
    assert_eq!(parse(&text)["functions"][0]["name"], *report.functions[0].name);
}

/// Reads CSV as RFC 4180 describes it.
fn read_csv(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let row = rows.last_mut().expect("a row");
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                row.last_mut().expect("a field").push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            c => row.last_mut().expect("a field").push(c),
        }
    }
    assert_eq!(rows.pop(), Some(vec![String::new()]), "the last line is ended");
    rows
}

#[test]
fn csv_rows_have_all_columns() {
    let everything = RowChoice { show_zero: true, ..RowChoice::default() };
    for report in reports() {
        let calls = report.slowest_calls.as_ref().map_or(0, Vec::len);
        let ctrack = report.ctrack.as_ref().map_or(0, |ctrack| ctrack.functions.len());
        let known = |part: &&FramePart| part.function < report.functions.len();
        let frames = report.frames.iter().flat_map(|frames| &frames.parts).filter(known).count();
        let trend = report.trend.iter().flat_map(|trend| &trend.functions);
        let known = trend.filter(|of| of.function < report.functions.len());
        let trend: usize = known.map(|of| of.rows.len()).sum();
        for table in RowKind::ALL {
            let text = csv::render(&report, table, &everything).expect("no sort is asked for");
            let rows = read_csv(&text);
            let len = match table {
                RowKind::Functions => report.functions.len(),
                RowKind::Paths | RowKind::Counts => report.paths.len(),
                RowKind::Threads => report.threads.len(),
                RowKind::Calls => calls,
                RowKind::Frames => frames,
                RowKind::Values | RowKind::Wakers | RowKind::Plots | RowKind::Locks => 0,
                RowKind::Trend => trend,
                RowKind::Ctrack => ctrack,
                RowKind::Histograms | RowKind::Timeline => rows.len() - 1,
            };
            assert_eq!(rows.len(), len + 1);
            assert!(rows.iter().all(|row| row.len() == rows[0].len()));
        }
    }
}

#[test]
fn csv_has_raw_numbers_and_quotes() {
    let text = csv::render(&fixture::hostile(), RowKind::Functions, &RowChoice::default());
    let rows = read_csv(&text.expect("no sort is asked for"));
    let column = |name| rows[0].iter().position(|n| n == name).expect("a column of that name");
    let slow = &rows[1];
    assert_eq!(slow[column("name")], "variable_timing_function");
    assert_eq!(slow[column("total_ns")], "1110000000");
    assert_eq!(slow[column("slowest_max_ns")], "100420000");
    assert_eq!(slow[column("group")], "");
    assert!(rows[2][column("name")].ends_with("name,\"quoted\"\\u{202e}\\u{9b}31m"));
}

#[test]
fn scopes_of_one_name_are_told_apart_in_csv() {
    let all = RowChoice::default();
    let render =
        |table| csv::render(&fixture::scopes(), table, &all).expect("no sort is asked for");
    for table in [RowKind::Paths, RowKind::Counts, RowKind::Calls] {
        let rows = read_csv(&render(table));
        let paths: Vec<&str> = rows.iter().map(|row| &*row[0]).collect();
        assert_eq!(paths[0], "path");
        assert!(paths.iter().any(|path| path.ends_with("render/parse")), "{paths:?}");
        let frames = paths.iter().flat_map(|path| path.split(';'));
        assert!(!frames.into_iter().any(|frame| frame == "parse"), "{paths:?}");
    }
    for table in [RowKind::Functions, RowKind::Histograms, RowKind::Timeline] {
        let rows = read_csv(&render(table));
        let column = |name| rows[0].iter().position(|n| n == name).expect("a column of that name");
        let scopes = rows.iter().filter(|row| row[column("name")] == "parse");
        let groups: BTreeSet<&str> = scopes.map(|row| &*row[column("group")]).collect();
        assert_eq!(groups, ["ingest", "render"].into());
    }
}

#[test]
fn csv_golden() {
    for (name, table) in [
        ("functions", RowKind::Functions),
        ("paths", RowKind::Paths),
        ("counts", RowKind::Counts),
        ("threads", RowKind::Threads),
        ("histograms", RowKind::Histograms),
        ("calls", RowKind::Calls),
        ("timeline", RowKind::Timeline),
        ("frames", RowKind::Frames),
        ("values", RowKind::Values),
        ("trend", RowKind::Trend),
        ("ctrack", RowKind::Ctrack),
    ] {
        let text = csv::render(&fixture::lossy(), table, &RowChoice::default());
        insta::assert_snapshot!(format!("csv_{name}"), text.expect("no sort is asked for"));
    }
}

/// Where calls are only counted, own time takes the place of the innermost time, which is not known.
#[test]
fn counted_rows_are_chosen_by_their_own_time() {
    let mut report = fixture::empty();
    for (name, calls, typical) in [("small", 40, 1_000_000), ("large", 3, 900_000_000)] {
        let mut row = fixture::function(name, calls, typical, report.duration_ns);
        row.counted = true;
        (row.active_exclusive_ns, row.active_exclusive_percent) = (Nanos::ZERO, 0.0);
        report.functions.push(row);
    }
    report.counted = true;
    let names = |sort: Option<&str>, min_percent| {
        let choice =
            RowChoice { sort: sort.map(str::to_owned), min_percent, ..RowChoice::default() };
        let rows = rows::functions(&report, &choice);
        rows.indices.iter().map(|at| report.functions[*at].name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(None, None), ["large", "small"]);
    assert_eq!(names(Some("calls"), None), ["small", "large"]);
    // 40 ms of 10 s are 0.4 %.
    assert_eq!(names(None, Some(0.5)), ["large"]);
    assert_eq!(names(None, Some(0.3)), ["large", "small"]);
}

#[test]
fn rows_are_sorted_and_cut() {
    let report = fixture::typical();
    let names = |sort: &str, top, min_percent| {
        let selection =
            RowChoice { sort: Some(sort.to_owned()), top, min_percent, show_zero: false };
        let rows = rows::functions(&report, &selection);
        let name = |&i: &usize| report.functions[i].name.split('(').next().map(str::to_owned);
        (rows.indices.iter().filter_map(name).collect::<Vec<_>>(), rows.left_out)
    };
    assert_eq!(names("calls", Some(1), None), (vec!["parse_header".to_owned()], 5));
    assert_eq!(names("P99.9", Some(1), None).0, ["variable_timing_function"]);
    assert_eq!(names("name", Some(2), None).0, ["http::Connection::handle_request", "main"]);
    assert_eq!(names("p50", None, None).0.last().map(String::as_str), Some("main"));
    assert_eq!(names("ae", None, Some(20.0)).1, 3);
    let all = RowChoice { show_zero: true, ..RowChoice::default() };
    assert_eq!(rows::functions(&report, &all).indices.len(), 7);
    assert_eq!(rows::functions(&report, &RowChoice::default()).never_called, 1);
}

#[test]
fn every_column_sorts_without_panic() {
    for report in reports().iter().chain([&fixture::extreme()]) {
        for name in columns::names(&RowKind::ALL) {
            let selection = RowChoice { sort: Some(name.to_owned()), ..RowChoice::default() };
            rows::functions(report, &selection);
            rows::paths(report, &selection);
            rows::threads(report, &selection);
            rows::counts(report, &selection);
            rows::calls(report, &selection);
            rows::ctrack(report, &selection);
        }
    }
}

#[test]
fn an_unknown_column_is_told_with_those_there_are() {
    let selection = RowChoice { sort: Some("p98".to_owned()), ..RowChoice::default() };
    let error = csv::render(&fixture::typical(), RowKind::Paths, &selection).expect_err("no p98");
    assert_eq!(
        error.to_string(),
        "cannot sort by 'p98': choose one of total, self, calls, p50, p90, p99, max, depth, name"
    );
}
