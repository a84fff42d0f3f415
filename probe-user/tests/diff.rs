//! `ctrace diff` as a user calls it: what it says, and how it ends.

mod support;

use ctrace_common::Kind;
use ctrace_core::report::render::clean::is_harmful;
use serde_json::Value;
use support::{Event, ctrace, record};
use tempfile::TempDir;

/// A program of two functions, one in the other, for two seconds.
#[derive(Clone, Copy)]
struct Program {
    exe: &'static str,
    outer: &'static str,
    inner: &'static str,
    /// Nanoseconds in the inner function, more or less.
    takes: u64,
    seed: u64,
}

const OLD: Program =
    Program { exe: "/srv/app-1", outer: "handle", inner: "parse", takes: 50_000, seed: 1 };
const SAME: Program = Program { exe: "/srv/app-2", seed: 2, ..OLD };
const SLOWER: Program = Program { takes: 55_000, ..SAME };

impl Program {
    fn record(&self) -> Vec<u8> {
        let (mut random, mut now) = (self.seed, 1);
        let mut next = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % bound
        };
        let mut events = Vec::new();
        for call in 0..4_000 {
            let inner = self.takes * (80 + next(40)) / 100;
            let rest = 20_000 + next(20_000);
            events.extend(
                [
                    (Kind::Enter, 0, now),
                    (Kind::Enter, 1, now + 1_000),
                    (Kind::Return, 1, now + 1_000 + inner),
                    (Kind::Return, 0, now + 2_000 + inner + rest),
                ]
                .map(|(kind, function, time)| Event { kind, function, time }),
            );
            now = (call + 1) * 500_000 + next(100_000);
        }
        record(self.exe, &[self.outer, self.inner], events, 2_000_200_000)
    }
}

fn folder(files: &[(&str, Program)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, program) in files {
        std::fs::write(folder.path().join(name), program.record()).unwrap();
    }
    folder
}

/// The exit status, stdout and stderr.
fn diff(folder: &TempDir, arguments: &[&str]) -> (i32, String, String) {
    let output = ctrace(folder.path(), &[&["diff"], arguments].concat());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(folder: &TempDir, arguments: &[&str]) -> Value {
    let (_, out, error) = diff(folder, &[&["--format", "json"], arguments].concat());
    assert_eq!(error, "");
    let value = serde_json::from_str(&out).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/diff.schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    value
}

#[track_caller]
fn refused(folder: &TempDir, arguments: &[&str], words: &[&str]) {
    let (code, out, error) = diff(folder, arguments);
    assert_eq!((code, out.as_str(), error.lines().count()), (125, "", 1), "{error}");
    assert!(error.starts_with("ctrace: "), "{error}");
    words.iter().for_each(|word| assert!(error.contains(word), "{word} is not in: {error}"));
}

/// Without spaces at the ends of lines, as golden files are kept.
fn trimmed(text: &str) -> String {
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[test]
fn what_is_slower_is_told() {
    let folder = folder(&[("old", OLD), ("new", SLOWER)]);
    let (code, out, error) =
        diff(&folder, &["old", "new", "--view", "functions", "--view", "paths"]);
    assert_eq!((code, error.as_str()), (0, ""));
    insta::assert_snapshot!("diff_slower", trimmed(&out));
    let value = json(&folder, &["old", "new"]);
    let parse = &value["functions"][1];
    assert_eq!((&parse["name"], &parse["verdict"]), (&"parse".into(), &"slower".into()));
    let change = parse["changes"]["p50_ns"]["change_percent"].as_f64().unwrap();
    assert!((9.0..11.0).contains(&change), "{change}");
    assert_eq!(value["paths"][1]["path"].to_string(), r#"["handle","parse"]"#);
}

#[test]
fn noise_is_no_change() {
    let folder = folder(&[("old", OLD), ("new", SAME)]);
    let value = json(&folder, &["old", "new", "--fail-over", "0"]);
    assert_eq!(value["failed"], false);
    for function in value["functions"].as_array().unwrap() {
        let verdict = function["verdict"].as_str().unwrap();
        assert!(["noise", "no_change"].contains(&verdict), "{function}");
    }
}

#[test]
fn the_exit_status_tells_a_worsening() {
    let folder = folder(&[("old", OLD), ("same", SAME), ("slower", SLOWER)]);
    let status = |arguments: &[&str]| diff(&folder, arguments).0;
    assert_eq!(status(&["old", "slower"]), 0);
    assert_eq!(status(&["old", "slower", "--fail-over", "5%"]), 1);
    assert_eq!(status(&["old", "slower", "--fail-over", "5%", "--metric", "mean"]), 1);
    assert_eq!(status(&["old", "slower", "--fail-over", "5%", "--metric", "calls"]), 0);
    assert_eq!(status(&["old", "slower", "--fail-over", "20%"]), 0);
    assert_eq!(status(&["slower", "old", "--fail-over", "5%"]), 0);
    assert_eq!(status(&["old", "same", "--fail-over", "0"]), 0);
    assert_eq!(status(&["old", "slower", "--fail-over", "5%", "-f", "handle", "--depth", "1"]), 1);
    let (_, out, _) = diff(&folder, &["old", "slower", "--fail-over", "5%"]);
    assert!(out.contains("FAILED: 2 functions are worse by more than 5 % (p50)"), "{out}");
    let (_, out, _) = diff(&folder, &["old", "same", "--fail-over", "5%"]);
    assert!(out.contains("passed: no function"), "{out}");
}

#[test]
fn several_recordings_of_a_side_are_taken_together() {
    let files =
        [("o1", OLD), ("o2", Program { seed: 5, ..OLD }), ("o3", Program { seed: 6, ..OLD })];
    let new = [
        ("n1", SLOWER),
        ("n2", Program { seed: 7, ..SLOWER }),
        ("n3", Program { seed: 8, ..SLOWER }),
    ];
    let folder = folder(&[files, new].concat());
    let more = ["--old", "o2", "--old", "o3", "--new", "n2", "--new", "n3"];
    let value = json(&folder, &[&["o1", "n1"], &more[..]].concat());
    assert_eq!(value["old"]["files"].to_string(), r#"["o1","o2","o3"]"#);
    assert_eq!(value["functions"][1]["verdict"], "slower");
    assert_eq!(value["functions"][1]["old_calls"], 12_000);
    assert_eq!(value["notes"].to_string(), "[]");
}

#[test]
fn noise_that_hides_any_change_is_no_verdict() {
    let takes = |takes| Program { takes, ..OLD };
    let folder = folder(&[
        ("o1", takes(20_000)),
        ("o2", takes(90_000)),
        ("o3", takes(250_000)),
        ("n1", takes(30_000)),
        ("n2", takes(80_000)),
        ("n3", takes(240_000)),
    ]);
    let files = ["o1", "o2", "o3", "--", "n1", "n2", "n3"];
    let (code, out, _) = diff(&folder, &[&["-f", "parse"], &files[..]].concat());
    assert_eq!(code, 0);
    let row = out.lines().find(|line| line.starts_with("parse ")).expect("a row");
    assert!(row.contains(" cannot tell "), "{out}");
    assert!(out.contains("cannot tell: it may as well have halved or doubled"), "{out}");
    assert_eq!(out.lines().last(), Some("0 slower, 0 faster, 1 cannot tell"));
    let value = json(&folder, &[&["-f", "parse"], &files[..]].concat());
    assert_eq!(value["functions"][0]["verdict"], "noise");
}

#[test]
fn every_heading_is_explained() {
    let folder = folder(&[("old", OLD), ("new", Program { inner: "scan", ..SAME })]);
    let (_, out, _) = diff(&folder, &["old", "new", "--view", "paths", "--view", "functions"]);
    let text = include_str!("../../docs/diff.md");
    let section =
        text.split("\n## ").find(|part| part.starts_with("Headings")).expect("there is one");
    let lines: Vec<&str> = out.lines().collect();
    let rules = (2..lines.len()).filter(|&at| lines[at].starts_with('─'));
    let above = rules.flat_map(|at| match lines[at].contains('┼') {
        true => &lines[at - 2..at],
        false => &lines[at - 1..at],
    });
    let headings = above.flat_map(|line| line.split('│')).flat_map(|part| part.split("  "));
    let headings = headings.map(str::trim).filter(|heading| !heading.is_empty());
    let mut count = 0;
    for heading in headings {
        let name = heading.trim_end_matches("/s");
        let is_explained = section.contains(&format!("`{name}`"));
        assert!(is_explained, "docs/diff.md does not explain {heading}");
        count += 1;
    }
    assert!(count > 30, "these are not all:\n{out}");
}

#[test]
fn what_is_only_on_one_side_is_told() {
    let hostile = "parse\u{1b}[2J\u{202e}";
    let folder = folder(&[("old", OLD), ("new", Program { inner: hostile, ..SAME })]);
    let (code, out, _) = diff(
        &folder,
        &["old", "new", "--fail-over", "0", "--view", "paths", "--view", "functions"],
    );
    assert_eq!(code, 0);
    assert!(!out.chars().any(|c| c != '\n' && is_harmful(c)));
    insta::assert_snapshot!("diff_one_side", trimmed(&out));
    let value = json(&folder, &["old", "new", "-f", "parse*"]);
    let sides: Vec<&Value> =
        value["functions"].as_array().unwrap().iter().map(|f| &f["in"]).collect();
    assert_eq!(sides, ["new", "old"]);
}

#[test]
fn reports_are_compared_but_not_judged() {
    let folder = folder(&[("old", OLD), ("older", OLD), ("new", SLOWER)]);
    for name in ["old", "new"] {
        let json = format!("{name}.json");
        let report = ctrace(folder.path(), &["report", name, "--format", "json", "-o", &json]);
        assert!(report.status.success());
    }
    let (code, out, _) = diff(&folder, &["old.json", "new.json"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("diff_reports", trimmed(&out));
    let value = json(&folder, &["old.json", "new.json", "-f", "parse"]);
    assert_eq!(value["functions"][0]["verdict"], "unjudged");
    assert_eq!(value["functions"].as_array().unwrap().len(), 1);
    // Beside a recording, too.
    assert_eq!(json(&folder, &["old", "new.json"])["old"]["kind"], "recording");
    refused(&folder, &["old.json", "new.json", "--fail-over", "5%"], &["old.json", "--fail-over"]);
    refused(&folder, &["old", "new.json", "--depth", "2"], &["new.json", "-f"]);
    refused(&folder, &["old", "new.json", "--old", "older"], &["new.json", "together"]);
    refused(&folder, &["old", "new", "--old", "./old"], &["./old is given twice"]);
}

#[test]
fn what_cannot_be_compared_is_one_line() {
    let folder = folder(&[("old", OLD)]);
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("text", "hello");
    write("empty", "");
    write("newer", r#"{"schema": "ctrace.report.v9"}"#);
    write("cut", &"[".repeat(100_000));
    refused(&folder, &["old", "missing"], &["missing"]);
    refused(&folder, &["old", "text"], &["text", "ctrace record"]);
    refused(&folder, &["old", "empty"], &["empty"]);
    refused(&folder, &["old", "cut"], &["cut"]);
    refused(&folder, &["old", "newer"], &["ctrace.report.v9", "newer one"]);
    refused(&folder, &["old", "."], &["cannot read ."]);
    refused(&folder, &["old", "old", "-f", "prase"], &["prase", "parse"]);
    refused(&folder, &["old", "old", "--sort", "colour"], &["colour", "verdict, change, calls"]);
    refused(&folder, &["old", "old", "--metric", "p98"], &["p98"]);
    refused(&folder, &["old", "old", "--fail-over", "much"], &["much", "percent"]);
    refused(&folder, &["old"], &["cannot open trace.ctrace", "`ctrace record`"]);
    refused(&folder, &["old", "old", "old"], &["these 3 files", "OLD... -- NEW..."]);
}

#[test]
fn a_damaged_recording_is_no_measure() {
    let folder = folder(&[("old", OLD), ("new", SAME)]);
    let mut bytes = std::fs::read(folder.path().join("new")).unwrap();
    // Neither the names in front nor the index.
    let half = bytes.len() / 2;
    bytes[half] ^= 0x55;
    std::fs::write(folder.path().join("damaged"), bytes).unwrap();
    let (code, out, _) = diff(&folder, &["old", "damaged"]);
    assert_eq!(code, 0);
    assert!(out.contains(" damaged") && out.contains("old: no events lost"), "{out}");
    assert!(
        json(&folder, &["old", "damaged"])["new"]["loss"]["unreadable_calls"].as_u64() > Some(0)
    );
    refused(&folder, &["old", "damaged", "--fail-over", "5%"], &["damaged", "--fail-over"]);
    let csv = ctrace(folder.path(), &["report", "damaged", "--format", "csv"]);
    let said = String::from_utf8(csv.stderr).unwrap();
    assert!(said.contains("cannot be read") && said.contains(" in damaged parts"), "{said}");
}

#[test]
fn scopes_have_their_groups_in_paths_too() {
    let scopes =
        |program: Program| Program { outer: "net/handle", inner: "json/handle", ..program };
    let folder = folder(&[("old", scopes(OLD)), ("new", scopes(SLOWER))]);
    let (_, out, _) = diff(&folder, &["old", "new", "--view", "paths"]);
    assert!(out.contains("net/handle → json/handle"), "{out}");
    let paths = &json(&folder, &["old", "new"])["paths"];
    assert_eq!(paths[1]["path"].to_string(), r#"["handle","handle"]"#);
}

#[test]
fn rows_are_chosen_and_sorted() {
    let folder = folder(&[("old", OLD), ("new", SLOWER)]);
    let first = |arguments: &[&str]| {
        let (_, out, _) = diff(&folder, &[&["old", "new"], arguments].concat());
        let at = out.lines().position(|line| line.starts_with("──")).unwrap();
        out.lines().nth(at + 1).unwrap().split(' ').next().unwrap().to_owned()
    };
    assert_eq!(first(&[]), "parse");
    assert_eq!(first(&["--sort", "name"]), "handle");
    assert_eq!(first(&["--sort", "total", "--top", "1"]), "handle");
    assert_eq!(first(&["--sort", "change"]), "parse");
    let (_, out, _) = diff(&folder, &["old", "new", "--min-percent", "90"]);
    assert!(out.contains("2 functions not shown"), "{out}");
}

/// A metric beyond the usual ones is computed when it is asked for, and only then.
#[test]
fn any_sum_mean_or_percentile_can_be_the_metric() {
    let folder = folder(&[("old", OLD), ("new", SLOWER)]);
    let keys = |value: &Value| -> Vec<String> {
        value["functions"][1]["changes"].as_object().unwrap().keys().cloned().collect()
    };
    let usual = keys(&json(&folder, &["old", "new"]));
    assert_eq!(usual.len(), 8);
    for (name, key) in [
        ("p75", "p75_ns"),
        ("p95", "p95_ns"),
        ("a", "active_ns_per_second"),
        ("timed", "timed_per_second"),
    ] {
        let value = json(&folder, &["old", "new", "--metric", name]);
        assert_eq!(value["metric"], name);
        let added = keys(&value).into_iter().filter(|key| !usual.contains(key));
        assert_eq!(added.collect::<Vec<_>>(), [key]);
        let parse = &value["functions"][1];
        assert!(parse["changes"][key]["old"].as_f64() > Some(0.0), "{parse}");
        assert_eq!(parse["verdict"], parse["changes"][key]["verdict"]);
    }
    // 60 of 4,000 calls are beyond it; p999 would need 10,000 calls.
    let value = json(&folder, &["old", "new", "--metric", "p99.9"]);
    assert_eq!(
        (&value["metric"], &value["functions"][1]["verdict"]),
        (&"p999".into(), &"too_few".into())
    );
    let status = |limit| diff(&folder, &["old", "new", "--metric", "p95", "--fail-over", limit]).0;
    assert_eq!((status("5%"), status("20%")), (1, 0));
    let (_, out, _) = diff(&folder, &["old", "new", "--sort", "p95"]);
    assert!(out.lines().any(|line| line.contains("p99") && line.contains("p95")), "{out}");
    // Paths have percentiles and sums, but nobody measures the time of theirs.
    let path = &json(&folder, &["old", "new", "--metric", "a"])["paths"][1]["changes"];
    assert!(path["total_ns_per_second"]["old"].is_number(), "{path}");
    assert!(path["active_ns_per_second"]["old"].is_null(), "{path}");
    assert!(path["active_exclusive_ns_per_second"]["old"].is_null(), "{path}");
    // A report has the numbers of functions, too.
    for name in ["old", "new"] {
        let report = ctrace(
            folder.path(),
            &["report", name, "--format", "json", "-o", &format!("{name}.json")],
        );
        assert!(report.status.success());
    }
    let value = json(&folder, &["old.json", "new.json", "--metric", "p95"]);
    let change = value["functions"][1]["changes"]["p95_ns"]["change_percent"].as_f64().unwrap();
    assert!((8.0..12.0).contains(&change), "{change}");
    let others =
        "choose one of calls, p50, p90, p99, mean, total, self, innermost, timed, untimed, a, p95";
    for name in ["max", "headless", "threads", "cv", "center_mean"] {
        refused(&folder, &["old", "new", "--metric", name], &[name, others]);
        refused(&folder, &["old", "new", "--sort", name], &[name, "p95"]);
    }
}
