//! Times of a recording: functions over time, and two times compared with each other.

mod support;

use ctrace_common::Kind;
use serde_json::Value;
use support::{Event, ctrace, record};
use tempfile::TempDir;

const SECOND: u64 = 1_000_000_000;
/// The length of the recording.
const SECONDS: u64 = 4;
const CALLS: u64 = 4_000;

/// A recording of four seconds. From call to call `work` takes longer, from 12 µs to 28 µs. `look_up` takes
/// 5 µs, more or less, in every second but the third.
fn folder() -> TempDir {
    let mut events = Vec::new();
    for call in 0..CALLS {
        let start = 1 + call * SECONDS * SECOND / CALLS;
        let noise = call * 7_919 % 500;
        let work = 12_000 + call * 16_000 / CALLS + noise;
        let look_up = 5_000 + 3 * noise;
        let mut add = |function, from: u64, took: u64| {
            events.push(Event { kind: Kind::Enter, function, time: from });
            events.push(Event { kind: Kind::Return, function, time: from + took });
        };
        add(0, start, work);
        if start / SECOND != 2 {
            add(1, start + 100_000, look_up);
        }
    }
    let bytes = record("/srv/app", &["work", "look_up"], events, SECONDS * SECOND);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), bytes).unwrap();
    folder
}

/// The exit status, stdout and stderr.
fn run(folder: &TempDir, arguments: &[&str]) -> (i32, String, String) {
    let output = ctrace(folder.path(), arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(folder: &TempDir, schema: &str, arguments: &[&str]) -> Value {
    let (code, out, error) = run(folder, &[arguments, &["--format", "json"]].concat());
    assert_eq!((code, error.as_str()), (0, ""));
    let value = serde_json::from_str(&out).unwrap();
    let path = format!("{}/../docs/{schema}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    value
}

#[track_caller]
fn refused(folder: &TempDir, arguments: &[&str], words: &str) {
    let (code, out, error) = run(folder, arguments);
    assert_eq!((code, out.as_str()), (125, ""), "{error}");
    assert!(error.starts_with("ctrace: ") && error.contains(words), "{error}");
}

#[test]
fn an_interval_has_the_numbers_of_a_report_of_that_time() {
    let folder = folder();
    let arguments = ["report", "a", "--view", "trend", "--interval", "1"];
    let trend = &json(&folder, "report", &arguments)["trend"];
    assert_eq!(trend["intervals"].as_array().map(Vec::len), Some(4));
    for interval in 0..4 {
        let time = format!("{interval}s..{}s", interval + 1);
        let part = json(&folder, "report", &["report", "a", "--time", &time]);
        assert_eq!(part["start_ns"], trend["intervals"][interval]["start_ns"]);
        for (function, name) in ["work", "look_up"].into_iter().enumerate() {
            let row = trend["functions"][function]["rows"][interval].as_object().unwrap();
            let expected = part["functions"].as_array().unwrap();
            let expected = expected.iter().find(|row| row["name"] == name).unwrap();
            assert!(row.len() > 15, "{row:?}");
            row.iter().for_each(|(key, number)| assert_eq!(number, &expected[key], "{name} {key}"));
        }
    }
    let calls = |interval: usize| &trend["functions"][1]["rows"][interval]["calls"];
    assert_eq!([calls(1), calls(2)], [1_000, 0]);
}

#[test]
fn a_trend_reads_downward_in_time() {
    let folder = folder();
    let of = |arguments: &[&str]| {
        let all = [&["report", "a", "--view", "trend", "-f", "work"], arguments].concat();
        let (code, out, _) = run(&folder, &all);
        assert_eq!(code, 0);
        out
    };
    let rows = |out: &str| -> Vec<String> {
        let rows = out.lines().map(str::trim_start).filter(|line| line.starts_with('+'));
        rows.map(str::to_owned).collect()
    };
    let out = of(&[]);
    let all = rows(&out);
    assert_eq!(all.len(), 20, "{out}");
    assert!(all[0].starts_with("+0 ns ") && all[19].starts_with("+3.80 s "), "{out}");
    assert!(out.contains("An interval is 200.00 ms.") && !out.contains("look_up"), "{out}");
    let bar = |row: &str| row.chars().filter(|c| *c == '█').count();
    assert!(
        bar(&all[0]) > 0 && bar(&all[0]) < bar(&all[10]) && bar(&all[10]) < bar(&all[19]),
        "{out}"
    );
    // The time of --time alone is divided, and the last interval may be shorter.
    let out = of(&["--time", "1s..3s", "--interval", "1500ms"]);
    assert_eq!(rows(&out).len(), 2, "{out}");
    assert!(out.contains("An interval is 1.50 s, the last 500.00 ms."), "{out}");
    let csv = of(&["--format", "csv", "--interval", "2"]);
    assert_eq!(csv.lines().count(), 3, "{csv}");
}

#[test]
fn a_trend_is_one_report() {
    let folder = folder();
    let of = |interval| ["report", "a", "--view", "trend", "--interval", interval];
    refused(&folder, &of("3ms"), "at most 1,000 are made");
    refused(&folder, &[&of("1")[..], &["--cumulative"]].concat(), "--cumulative");
}

#[test]
fn two_times_of_one_recording_are_compared() {
    let folder = folder();
    let times = ["diff", "a", "--time", "0s..1s", "--time", "3s..4s"];
    let value = json(&folder, "diff", &times);
    let time = |side: &str| {
        let time = &value[side]["time"];
        (time["from_ns"].as_u64(), time["to_ns"].as_u64())
    };
    assert_eq!(time("old"), (Some(0), Some(SECOND)));
    assert_eq!(time("new"), (Some(3 * SECOND), Some(4 * SECOND)));
    let of = |name: &str| {
        let rows = value["functions"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!(of("work")["verdict"], "slower");
    assert_ne!(of("look_up")["verdict"], "slower");
    assert_eq!([&of("work")["old_calls"], &of("work")["new_calls"]], [1_000, 1_000]);
    let (_, out, _) = run(&folder, &times);
    assert!(out.starts_with("old: a · time 0 ns to 1.00 s · 1.00 s"), "{out}");
    assert!(out.contains("\nnew: a · time 3.00 s to 4.00 s · 1.00 s"), "{out}");
    assert!(out.contains("Both sides are of one recording") && !out.contains("overlap"), "{out}");
    assert!(!out.contains("record each side five times"), "{out}");
    let (_, out, _) = run(&folder, &["diff", "a", "--time", "0s..2s", "--time", "1s..4s"]);
    assert!(out.contains("The times of both sides overlap"), "{out}");
}

/// One time is that of both sides, and with two files the second is that of the new one.
#[test]
fn times_belong_to_sides() {
    let folder = folder();
    std::fs::copy(folder.path().join("a"), folder.path().join("b")).unwrap();
    let times = |arguments: &[&str]| {
        let value = json(&folder, "diff", &[&["diff", "a", "b"], arguments].concat());
        ["old", "new"].map(|side| value[side]["time"]["from_ns"].as_u64())
    };
    assert_eq!(times(&[]), [None, None]);
    assert_eq!(times(&["--time", "1s.."]), [Some(SECOND); 2]);
    assert_eq!(times(&["--time", "1s..", "--time", "2s.."]), [Some(SECOND), Some(2 * SECOND)]);
    let three = ["diff", "a", "--time", "1s..", "--time", "2s..", "--time", "3s.."];
    refused(&folder, &three, "3 times");
    refused(&folder, &["diff", "a", "--time", "1s..", "--time", "9s.."], "the recording is over");
    let (code, _, error) = run(&folder, &["report", "a", "--time", "1s..", "--time", "2s.."]);
    assert!(code == 125 && error.contains("cannot be used multiple times"), "{error}");
}

/// Where a function gets slower all the time, its change is noise, and that is told.
#[test]
fn a_drift_within_a_side_is_told() {
    let folder = folder();
    let (_, out, _) = run(&folder, &["diff", "a", "--time", "0s..4s", "--time", "100ms..4s"]);
    assert!(out.contains("work rises steadily within old, from "), "{out}");
    assert!(!out.contains("look_up rises") && !out.contains("look_up falls"), "{out}");
}
