//! Tests that a provider file makes texts of the arguments of USDT probes, and gives the others names and
//! types; and what texts on such probes say of them.

use ctrace_tests::env::Link;
use ctrace_tests::process::{Finished, run};
use ctrace_tests::recorded::Recorded;
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const ROUNDS: usize = 300;
const FILE: &str = "/* As for dtrace -h. */
#define Number long
provider texts {
    probe query__start(const char *sql, Number n);
    probe query__done(int);
    probe say(int, string what);
};
";

fn ctrace(path: &Path, arguments: &[&str]) -> Finished {
    run(Command::new(path).args(arguments), LIMIT).expect("runs")
}

#[test]
fn arguments_have_the_types_and_names_of_a_provider_file() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("texts.d");
    std::fs::write(&file, FILE).expect("written");
    let file = file.to_str().expect("UTF-8");
    let target = env.targets.get(&program("usdt_texts.c")).expect("builds");
    let options = ["-u", "texts:*", "--provider", file];
    let mut recorded = Recorded::new(&env, []).expect("a folder").args(options);
    let finished = recorded.program(&target, &[&ROUNDS.to_string()]).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let recording = recorded.file.to_str().expect("UTF-8");

    let exported = ctrace(&env.ctrace, &["export", recording, "--format", "jsonl", "-o", "-"]);
    let mut calls: Vec<Value> =
        exported.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    calls.sort_by_key(|call| call["start_ns"].as_u64());
    let values = |name: &str| {
        let of = calls.iter().filter(|call| call["function"] == *name);
        of.map(|call| call["values"].clone()).collect::<Vec<_>>()
    };
    let text = |n: usize| format!("select {}", n * 7);
    let queries: Vec<Value> = (0..ROUNDS).map(|n| json!({ "sql": text(n), "n": n })).collect();
    assert_eq!(values("texts:query"), queries);
    let said = |n: usize| json!({ "arg0": -(n as i64), "what": text(n) });
    assert_eq!(values("texts:say"), (0..ROUNDS).map(said).collect::<Vec<_>>());

    // Points have no end that could be missing. JSON counts them as before.
    let shown = ctrace(&env.ctrace, &["report", recording]);
    assert!(shown.stdout.contains("no events lost"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("ended unseen"), "{}", shown.stdout);
    let report = recorded.report(&[]).expect("a report");
    assert_eq!(report.0["loss"]["calls_untimed"], ROUNDS);
    // Titles of parts have the provider.
    let parts = ctrace(&env.ctrace, &["report", recording, "--by", "texts:query: n"]);
    assert!(parts.stdout.contains("Calls of texts:query · n = "), "{}", parts.stdout);

    let target = target.to_str().expect("UTF-8");
    let listed = ctrace(&env.ctrace, &["list", target, "-u", "*", "-v", "--provider", file]);
    for described in ["sql: str (8@%rdi), n: i64 (-8@%rsi)", "i32 (-4@%esi), what: str (8@%rdi)"] {
        assert!(listed.stdout.contains(described), "{}", listed.stdout);
    }
    // Each site has its cost and place, as functions have.
    let sites = listed.stdout.matches("probe emulated, in the code at 0x").count();
    assert_eq!(sites, 3, "{}", listed.stdout);
    let json = ctrace(&env.ctrace, &["list", target, "-u", "*", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let costs = json["functions"].as_array().expect("rows").iter().map(|row| &row["entry_cost"]);
    assert_eq!(costs.collect::<Vec<_>>(), ["emulated"; 3]);
}

#[test]
fn what_is_no_provider_file_is_refused_before_the_trace() {
    let env = or_skip!(gate::live(Link::Session));
    let refused = |file: &str| {
        let told = ctrace(&env.ctrace, &["run", "-u", "*", "--provider", file, "--", "true"]);
        assert_ne!(told.shell_code(), 0, "{file}");
        told.stderr
    };
    assert!(refused("/nowhere/app.d").contains("cannot be read: No such file"));
    assert!(refused("/dev/null").contains("declares no probe"));
    assert!(refused("/dev/zero").contains("more than 1 MiB"));
}
