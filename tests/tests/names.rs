//! Tests that functions with the same short name are told apart, from a live program to each
//! output, and that what is printed can be typed.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::run;
use ctrace_tests::targets::program;
use ctrace_tests::trace::LIMIT;
use ctrace_tests::{gate, or_skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The calls of the target by the names that are shown.
const CALLS: [(&str, u64); 7] = [
    ("shop::format(char const*)", 100),
    ("shop::format(double)", 100),
    ("shop::format(int)", 300),
    ("shop::load", 400),
    ("shop::twice<int>", 300),
    ("shop::twice<long>", 300),
    ("work", 400),
];

/// Runs ctrace, which must succeed, and returns its output.
#[track_caller]
fn ctrace(env: &Env, arguments: &[&str]) -> String {
    let done = run(Command::new(&env.ctrace).args(arguments), LIMIT).expect("ctrace");
    assert_eq!(done.shell_code(), 0, "{arguments:?}: {}", done.stderr);
    done.stdout
}

/// Records functions of the target into a file of this folder.
fn record(env: &Env, folder: &Path, name: &str, functions: &[&str]) -> String {
    let file = folder.join(name).display().to_string();
    let target = env.targets.get(&program("overloads.cpp")).expect("builds");
    let mut arguments = vec!["record", "-o", &file];
    functions.iter().for_each(|function| arguments.extend(["-f", function]));
    arguments.extend(["--", target.to_str().expect("a path of this workspace")]);
    ctrace(env, &arguments);
    file
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Returns names and calls of the rows of a report.
fn calls(report: &Value) -> Vec<(String, u64)> {
    let rows = report["functions"].as_array().expect("functions").iter();
    let row = |row: &Value| {
        (row["name"].as_str().expect("a name").to_owned(), row["calls"].as_u64().expect("calls"))
    };
    let mut rows: Vec<_> = rows.map(row).collect();
    rows.sort();
    rows
}

/// A program that a link started has the link's name in JSON and in text, and its file beside it.
#[test]
fn a_program_has_the_name_of_its_link() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = tempfile::tempdir().expect("a folder");
    let target = env.targets.get(&program("counts.c")).expect("builds");
    let link = folder.path().join("counter");
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    let (link, file) = (link.to_str().expect("text"), folder.path().join("file.ctrace"));
    let file = file.to_str().expect("text");
    ctrace(&env, &["record", "-f", "leaf", "-o", file, "--", link, "10"]);
    let report = json(&ctrace(&env, &["report", file, "--format", "json"]));
    let target = target.canonicalize().expect("is there");
    let target = target.to_str().expect("text");
    assert_eq!(report["target"]["program"], "counter");
    assert_eq!(report["target"]["exe"], target);
    assert_eq!(report["functions"][0]["object"], "counter");
    let text = ctrace(&env, &["report", file]);
    let head = text.lines().next().expect("a head");
    assert!(head.starts_with(&format!("{link} 10 · {target} · pid ")), "{head}");
    let folded = ctrace(&env, &["export", file, "--format", "speedscope"]);
    assert!(folded.contains("\"counter"), "{folded}");
}

/// The standard library has a thousand times as many functions as a small program.
#[test]
fn a_list_begins_with_the_functions_of_the_program() {
    let env = or_skip!(gate::live(Link::Session));
    let target = env.targets.get(&program("panic.rs").flags(["-O"])).expect("builds");
    let list = json(&ctrace(&env, &["list", "--json", target.to_str().expect("text")]));
    let rows = list["functions"].as_array().expect("functions").iter();
    let names: Vec<&str> = rows.filter_map(|row| row["name"].as_str()).collect();
    let places = |begin: &str| {
        let is_there = |(_, name): &(usize, &&str)| name.starts_with(begin);
        names.iter().enumerate().filter(is_there).map(|(place, _)| place).collect::<Vec<_>>()
    };
    let [own, passer, gimli, std] = ["panic::", "passer", "gimli::", "std::"].map(places);
    assert!(own.len() > 1 && gimli.len() > 4 && std.len() > 10, "{own:?} {gimli:?} {std:?}");
    assert_eq!(own, (0..own.len()).collect::<Vec<_>>());
    assert!(passer.first() < gimli.first() && passer.first() < std.first(), "{:?}", &names[..9]);
}

#[test]
fn overloads_are_told_apart_everywhere() {
    let env = or_skip!(gate::live(Link::Multi));
    let folder = tempfile::tempdir().expect("a folder");
    let file = record(&env, folder.path(), "all.ctrace", &["shop::*", "work"]);

    let report = |options: &[&str]| {
        let arguments = [&["report", &file, "--format", "json", "--top", "100"], options].concat();
        calls(&json(&ctrace(&env, &arguments)))
    };
    let expected = CALLS.map(|(name, calls)| (name.to_owned(), calls));
    assert_eq!(report(&[]), expected);
    // Each shown name can be typed, and means one row.
    for (name, calls) in &expected {
        assert_eq!(report(&["-f", name]), [(name.clone(), *calls)]);
    }
    assert_eq!(report(&["-f", "shop::format"]), expected[..3]);
    assert_eq!(report(&["-f", "*(double)"]), expected[1..2]);

    // Frames with different names are not added up.
    let folded = ctrace(&env, &["export", &file, "--format", "folded"]);
    for stack in ["work;shop::load;shop::format(int) ", "work;shop::format(double) "] {
        assert!(folded.contains(stack), "{folded}");
    }
    let tree = ctrace(&env, &["report", &file, "--view", "tree"]);
    assert!(tree.contains("─ shop::format(char const*)"), "{tree}");
}

#[test]
fn recordings_that_name_a_function_differently_are_compared() {
    let env = or_skip!(gate::live(Link::Multi));
    let folder = tempfile::tempdir().expect("a folder");
    let all = record(&env, folder.path(), "all.ctrace", &["shop::*"]);
    let one = record(&env, folder.path(), "one.ctrace", &["shop::load", "*::format(int)"]);
    let diff = json(&ctrace(&env, &["diff", &one, &all, "--format", "json"]));
    let rows = diff["functions"].as_array().expect("functions").iter();
    let rows: BTreeMap<&str, (&str, u64, u64)> = rows
        .map(|row| {
            let calls = |key: &str| row[key].as_u64().expect("calls");
            let text = |key: &str| row[key].as_str().expect("a text");
            (text("name"), (text("in"), calls("old_calls"), calls("new_calls")))
        })
        .collect();
    assert_eq!(rows["shop::format(int)"], ("both", 300, 300));
    assert_eq!(rows["shop::load"], ("both", 400, 400));
    assert_eq!(rows["shop::format(double)"], ("new", 0, 100));
    let chosen = ["diff", &one, &all, "-f", "shop::format(int)", "--format", "json"];
    let chosen = json(&ctrace(&env, &chosen));
    assert_eq!(chosen["functions"].as_array().map(Vec::len), Some(1), "{chosen}");
}

#[test]
fn no_call_ends_after_its_caller_in_a_chrome_trace() {
    let env = or_skip!(gate::live(Link::Multi));
    let folder = tempfile::tempdir().expect("a folder");
    for (target, thrown) in [("throw.cpp", 1_000), ("overloads.cpp", 100)] {
        let file = folder.path().join(format!("{target}.ctrace")).display().to_string();
        let target = env.targets.get(&program(target)).expect("builds");
        let target = target.to_str().expect("a path of this workspace");
        ctrace(&env, &["record", "-o", &file, "-f", "*", "--", target]);
        let trace = json(&ctrace(&env, &["export", &file, "--format", "chrome"]));
        let calls = trace["traceEvents"].as_array().expect("events").iter();
        let calls = calls.filter(|event| event["ph"] == "X");
        let mut calls: Vec<(f64, f64, &Value)> = calls
            .map(|event| {
                let number = |key: &str| event[key].as_f64().expect("a number");
                (number("ts"), number("ts") + number("dur"), event)
            })
            .collect();
        calls.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        let untimed = calls.iter().filter(|(.., event)| event["args"]["untimed"] == true);
        assert!(untimed.count() >= thrown, "of {}", calls.len());
        let mut inside: Vec<f64> = Vec::new();
        for (start, end, event) in calls {
            inside.retain(|outer| *outer > start || (*outer == start && start == end));
            assert!(inside.last().is_none_or(|outer| end <= *outer), "{event}");
            inside.push(end);
        }
    }
}
