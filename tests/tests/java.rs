//! Tests that methods of Java are calls: HotSpot's USDT probes are a pair, and texts without a zero byte
//! behind them have their lengths.

use ctrace_tests::env::Link;
use ctrace_tests::process::run;
use ctrace_tests::recorded::Recorded;
use ctrace_tests::{gate, or_skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(300);
const ROUNDS: &str = "200";

/// Compiles the program; `Err`: the reason why it cannot be.
fn compiled() -> Result<TempDir, String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("targets/Tree.java");
    let mut compiler = Command::new("javac");
    compiler.args(["-J-Xshare:auto", "-d"]).arg(folder.path()).arg(source);
    let built = run(&mut compiler, LIMIT).map_err(|_| "there is no javac".to_owned())?;
    assert_eq!(built.shell_code(), 0, "{}", built.stderr);
    Ok(folder)
}

#[test]
fn methods_of_java_are_calls_with_names() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = or_skip!(compiled());
    let java = Path::new("/usr/bin/java");
    if !java.exists() {
        return;
    }
    let asked = "hotspot:method: class=1:str[2], name=3:str[4]";
    let mut recorded = Recorded::new(&env, []).expect("a folder").args([
        "--follow",
        "-u",
        "hotspot:method",
        "--arg",
        asked,
        "--ring-size",
        "64MiB",
    ]);
    let classes = folder.path().to_str().expect("UTF-8");
    // An inlined method that an exception leaves has no end.
    let options = ["-XX:+DTraceMethodProbes", "-XX:-Inline", "-cp", classes];
    let arguments = [&options[..], &["Tree", ROUNDS]].concat();
    let finished = recorded.program(java, &arguments).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let mut export = Command::new(&env.ctrace);
    export.arg("export").arg(&recorded.file).args(["--format", "jsonl", "-o", "-"]);
    let exported = run(&mut export, LIMIT).expect("exports");
    let calls: Vec<Value> =
        exported.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let own: Vec<&Value> = calls.iter().filter(|call| call["values"]["class"] == "Tree").collect();
    let mut counts = BTreeMap::<&str, usize>::new();
    for call in &own {
        assert_eq!(call["timed"], true, "an exception ends a call, too: {call}");
        *counts.entry(call["values"]["name"].as_str().expect("a name")).or_default() += 1;
    }
    for line in finished.stdout.lines() {
        let (name, count) = line.split_once(' ').expect("a name and a number");
        assert_eq!(counts.get(name), Some(&count.parse().expect("a number")), "{counts:?}");
    }
    // Each call is inside that of its caller.
    let of = |name: &str| own.iter().filter(|it| it["values"]["name"] == *name).collect::<Vec<_>>();
    let span = |call: &Value| {
        let number = |key: &str| call[key].as_u64().expect("a number");
        let (start, duration) = (number("start_ns"), number("duration_ns"));
        (call["tid"].as_u64(), start, start + duration)
    };
    let outer: Vec<_> = of("branch").into_iter().map(|call| span(call)).collect();
    for call in of("middle") {
        let (thread, start, end) = span(call);
        let is_inside = |outer: &(Option<u64>, u64, u64)| {
            outer.0 == thread && outer.1 <= start && end <= outer.2
        };
        assert!(outer.iter().any(is_inside), "{call}");
    }
}
