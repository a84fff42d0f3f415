//! Tests the effect of options on a report, on the running kernel.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Running, run};
use ctrace_tests::report::Report;
use ctrace_tests::targets::program;
use ctrace_tests::trace::{LIMIT, Trace};
use ctrace_tests::truth::Truth;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use serde_json::Value;
use std::ffi::OsStr;
use std::process::Command;

/// Runs a target with options, and returns its report.
#[track_caller]
fn report(
    env: &Env,
    target: &str,
    arguments: &[&str],
    functions: &[&str],
    options: &[&str],
) -> Report {
    let path = env.targets.get(&program(target)).expect("builds");
    let traced = Trace::run(env)
        .expect("starts")
        .functions(functions.iter().copied())
        .args(options.iter().copied())
        .program(&path, arguments.iter().copied())
        .finish()
        .expect("runs");
    let report = traced.report().expect("reports");
    report.check_sums().expect("the sums are right");
    Report(report.0.clone())
}

fn calls(report: &Report, name: &str) -> u64 {
    report.function(name).map_or(0, |function| function.calls())
}

#[test]
fn children_are_followed_when_asked() {
    let env = or_skip!(gate::live(Link::Session));
    // 3 children: the parent calls `work` 3 + 50 times, each forked child 100 times and each of
    // the two that exec once more.
    let alone = report(&env, "forker.c", &["3"], &["work", "in_child"], &[]);
    assert_eq!((calls(&alone, "work"), calls(&alone, "in_child")), (53, 0));
    assert_eq!(alone.0["target"]["untraced_children"], 5);
    let followed = report(&env, "forker.c", &["3"], &["work", "in_child"], &["--follow"]);
    assert_eq!((calls(&followed, "work"), calls(&followed, "in_child")), (53 + 302, 302));
    assert_eq!(followed.0["target"]["untraced_children"], 0);
}

#[test]
fn short_calls_are_their_callers_time() {
    let env = or_skip!(gate::live(Link::Session));
    let functions = ["outer", "nap_short", "nap_long"];
    let all = report(&env, "sleeps.c", &[], &functions, &[]);
    let long = report(&env, "sleeps.c", &[], &functions, &["--min-duration", "20ms"]);
    // nap_short sleeps for 10 ms, and may have to wait for a CPU for as long.
    let late = calls(&long, "nap_short");
    assert!(late < calls(&all, "nap_short"), "all took 20 ms");
    if late > 0 {
        let shortest = long.expect("nap_short").unwrap().integer("min_ns").unwrap();
        assert!(shortest >= 20_000_000, "a call of {shortest} ns was kept");
    }
    assert_eq!(calls(&long, "nap_long"), calls(&all, "nap_long"));
    assert_eq!(long.0["filtered_calls"], calls(&all, "nap_short") - late);
    let own = |report: &Report| report.expect("outer").unwrap().integer("self_ns").unwrap() as f64;
    // outer sleeps 20 ms itself; the 10 ms of nap_short come on top when that is filtered.
    let ratio = own(&long) / own(&all);
    assert!((1.2..1.9).contains(&ratio), "self time of outer grew {ratio} times");
}

/// When the time is up, the command goes on without probes, and ctrace exits as it does.
#[test]
fn a_command_is_traced_for_a_while() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("budget.c")).expect("builds");
    let traced = Trace::run(&env)
        .map(|trace| trace.function("round_").args(["-d", "1"]))
        .and_then(|trace| trace.program(&path, ["4", "0"]).finish()?.expect_code(0))
        .expect("traces");
    let stderr = &traced.finished.stderr;
    let told = ["the time is up; the command (pid ", ") goes on without being traced"];
    assert!(told.iter().all(|part| stderr.contains(part)), "{stderr}");
    let stdout = &traced.finished.stdout;
    let counted = stdout.lines().find_map(|line| line.strip_prefix("calls round_ ")?.parse().ok());
    let counted: u64 = counted.unwrap_or_else(|| panic!("{stdout}"));
    let seen = calls(traced.report().expect("a report"), "round_");
    assert!(
        seen > 0 && seen < counted * 7 / 10,
        "{seen} of {counted} calls in a quarter of the time"
    );
}

#[test]
fn depth_leaves_out_what_is_deeper() {
    let env = or_skip!(gate::live(Link::Session));
    let functions = ["outer", "nap_short", "nap_long"];
    let top = report(&env, "sleeps.c", &[], &functions, &["--depth", "1"]);
    assert!(calls(&top, "outer") > 0);
    assert_eq!((calls(&top, "nap_short"), calls(&top, "nap_long")), (0, 0));
}

#[test]
fn threads_are_chosen_by_globs_on_their_names() {
    let env = or_skip!(gate::live(Link::Session));
    let functions = ["handle_request", "write_log"];
    let of = |threads: &[&str]| {
        let report = report(&env, "demo.c", &["0.3"], &functions, threads);
        functions.map(|function| calls(&report, function) > 0)
    };
    assert_eq!(of(&["--thread", "worker-*"]), [true, false]);
    assert_eq!(of(&["--thread", "logger"]), [false, true]);
    assert_eq!(of(&["--thread", "worker-[0-2]", "--thread", "log*"]), [true, true]);
    assert_eq!(of(&["--thread", "worker"]), [false, false]);
}

#[test]
fn full_rings_are_told() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("counts.c")).expect("builds");
    let traced = Trace::run(&env)
        .expect("starts")
        .function("leaf")
        .args(["--ring-size", "4096"])
        .program(&path, ["200000"])
        .finish()
        .expect("runs");
    let report = traced.report().expect("reports");
    let leaf = report.expect("leaf").expect("seen");
    assert!(report.loss("events") > 0, "{}", report.losses());
    assert!(leaf.calls() < 200_000);
    // A lost entry is no call; a lost exit makes the call untimed.
    assert!(leaf.calls() + report.loss("events") >= 200_000, "{}", report.losses());
}

#[test]
fn a_full_spool_goes_to_a_file_and_all_stays_exact() {
    let env = or_skip!(gate::live(Link::Session));
    let small = report(&env, "counts.c", &["20000"], &["leaf"], &["--spool", "64KiB"]);
    assert_eq!(small.0["approximate"], false);
    assert_eq!(calls(&small, "leaf"), 20_000);
    assert!(small.expect("leaf").unwrap().0["center"]["active_ns"].is_u64());
}

#[test]
fn a_full_spool_of_an_interval_makes_percentiles_approximate_and_nothing_else() {
    let env = or_skip!(gate::live(Link::Session));
    let interval = ["--interval", "300"];
    let exact = report(&env, "counts.c", &["20000"], &["leaf"], &interval);
    let small = ["--interval", "300", "--spool", "64KiB"];
    let folded = report(&env, "counts.c", &["20000"], &["leaf"], &small);
    assert_eq!((&exact.0["approximate"], &folded.0["approximate"]), (&false.into(), &true.into()));
    assert_eq!(calls(&exact, "leaf"), calls(&folded, "leaf"));
    let folded = folded.expect("leaf").unwrap();
    assert_eq!(folded.0["center"]["active_ns"], Value::Null);
    assert!(folded.0["p99_ns"].is_u64() && folded.0["active_ns"].as_u64() > Some(0));
}

#[test]
fn intervals_add_up() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("sleeps.c")).expect("builds");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let output = std::process::Command::new(&env.ctrace)
        .args(["run", "-f", "nap_*", "--format", "json", "--interval", "100ms", "-o"])
        .arg(file.path())
        .arg("--")
        .arg(&path)
        .output()
        .expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(file.path()).expect("a report");
    let reports: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect();
    assert!(reports.len() >= 3, "{} reports of 100 ms", reports.len());
    for pair in reports.windows(2) {
        assert_eq!(pair[0]["end_ns"], pair[1]["start_ns"], "no gap and no overlap");
    }
    let timed = |report: &Value| -> u64 {
        let functions = report["functions"].as_array().expect("functions");
        functions.iter().map(|function| function["timed"].as_u64().expect("a count")).sum()
    };
    let whole = self::report(&env, "sleeps.c", &[], &["nap_*"], &[]);
    assert_eq!(reports.iter().map(timed).sum::<u64>(), timed(&whole.0));
}

/// The table of the kernel holds fewer indirect jumps than there are. The functions beyond have
/// entries only.
#[test]
fn too_many_indirect_jumps_cost_some_functions_their_ends() {
    const FUNCTIONS: usize = 17_000;
    let env = or_skip!(gate::live(Link::Multi));
    let path = env.targets.many_jumps(FUNCTIONS).expect("builds");
    let traced = Trace::run(&env)
        .expect("starts")
        .function("/^f[0-9]+$/")
        .args(["--returns", "ret-sites", "--max-functions", "20000"])
        .program(&path, [])
        .finish()
        .and_then(|traced| traced.expect_code(0))
        .expect("runs");
    let report = traced.report().expect("reports");
    report.check_sums().expect("the sums are right");
    report.check_lossless().expect("no losses");
    let called = report.functions().filter(|f| f.calls() == 1).count();
    let timed = report.functions().filter(|f| f.ends() == (1, 1, 0, 0)).count();
    assert_eq!((called, timed), (FUNCTIONS, 16_384));
    report.expect_note(&["616 functions", "indirect jumps"]).expect("it is told");
    let list = std::process::Command::new(&env.ctrace)
        .args(["list", "-v", "--returns", "ret-sites", "--max-functions", "20000"])
        .args(["-f", "/^f[0-9]+$/"])
        .arg(&path)
        .output()
        .expect("lists");
    let list = String::from_utf8_lossy(&list.stdout);
    let unseen = list.lines().filter(|line| line.contains("more than 16384 indirect jumps"));
    assert_eq!(unseen.count(), FUNCTIONS - 16_384);
}

/// A later program's probes cannot be placed: a note tells it, and no row claims 0 calls.
#[test]
fn what_cannot_be_armed_later_is_in_a_note_only() {
    let env = or_skip!(gate::live(Link::Perf));
    let path = env.targets.get(&program("execself.c")).expect("builds");
    // More functions than perf links are allowed for.
    let many = env.targets.many_functions(1000).expect("builds");
    let traced = Trace::run(&env)
        .expect("starts")
        .functions(["work", "/^f[0-9]+$/"])
        .program(&path, ["other", many.to_str().expect("path is text")])
        .finish()
        .and_then(|traced| traced.expect_code(0))
        .expect("runs");
    let report = traced.report().expect("reports");
    let functions: Vec<_> = report.functions().map(|f| (f.name(), f.calls())).collect();
    assert_eq!(functions, [("work", 100)]);
    report.expect_note(&["1,000 functions of many1000 are not traced"]).expect("it is told");
}

/// One object of a process forbids guards, and another switches stacks, so there are no return
/// probes. Both are named: before a trace, for a program and for a process, and in the report.
#[test]
fn what_stands_against_return_probes_is_named() {
    let env = or_skip!(gate::live(Link::Session));
    let with_runtime = |source: &str| {
        let build = program(source).flag("-Wl,--no-as-needed").with("libruntime.c");
        env.targets.get(&build).expect("builds")
    };
    let said = |arguments: &[&str]| {
        let finished = run(Command::new(&env.ctrace).args(["list", "-v"]).args(arguments), LIMIT);
        finished.expect("lists").stderr
    };
    let runtime = "libruntime.so walks its own stacks (a Java virtual machine, by its symbol JNI_CreateJavaVM)";
    let switches = with_runtime("ownstack.c");
    let file = switches.file_name().and_then(OsStr::to_str).expect("a name");
    let unguarded = format!("return probes cannot be guarded here: {runtime}");
    let none = format!("no return probes here: {file} may switch stacks at 0x");
    let of_program = said(&[switches.to_str().expect("a path")]);
    assert!(of_program.contains(&unguarded) && of_program.contains(&none), "{of_program}");

    let library = env.targets.get(&program("libplug.c")).expect("builds");
    let mut waits = Command::new(with_runtime("dl.c"));
    let target = Running::start_ready(waits.arg(library).args(["1", "wait"])).expect("starts");
    let of_process = said(&["-p", &target.pid().to_string()]);
    assert!(of_process.contains(&unguarded), "{of_process}");
    let none = format!("no return probes here: {runtime}");
    assert!(of_process.contains(&none), "{of_process}");

    let doctor = run(Command::new(&env.ctrace).arg("doctor"), LIMIT).expect("looks").stdout;
    let line = doctor.lines().find(|line| line.starts_with("guarded returns")).expect("a line");
    assert!(line.ends_with("ctrace list -v -p PID"), "{line}");

    // Multi links have no guards. The runtime stands against return probes there as well.
    for link in [Link::Session, Link::Multi] {
        let trace = Trace::run(&Env { link, ..env.clone() }).expect("starts").function("dive");
        let traced = trace.program(&switches, []).finish().expect("runs");
        let report = traced.report().expect("reports");
        let reason = format!("it has no return probe ({runtime}");
        report.expect_note(&["each call of dive costs", &reason]).expect("the reason");
    }
}

/// Calls go on to be counted while a library that stands against return probes is looked at, and they are
/// timed by other probes soon. The note names the library.
#[test]
fn a_runtime_that_comes_costs_no_call() {
    let env = or_skip!(gate::live(Link::Session));
    let library = env.targets.get(&program("libruntime.c")).expect("builds");
    let path = env.targets.get(&program("busy_opener.c").flag("-pthread")).expect("builds");
    let trace = Trace::run(&env).expect("starts").function("work");
    let traced = trace.program(&path, [library.to_str().expect("a path")]).finish();
    let traced = traced.and_then(|traced| traced.expect_code(0)).expect("runs");
    let report = traced.report().expect("reports");
    Truth::parse(&traced.finished.stdout).check_calls(report).expect("all calls are counted");
    let words = ["return probes of 1 function ended", "libruntime.so walks its own stacks"];
    report.expect_note(&words).expect("it is told");
    let (calls, timed, ..) = report.expect("work").expect("called").ends();
    // How long the look takes depends on what else runs.
    assert!(timed > calls / 10, "{timed} of {calls} are timed");
    report.check_lossless().expect("nothing is lost");
}

/// A call of `event_loop` never ends, and no event tells of it, as nothing inside it is long. A report has
/// it all the same, once, and so has the next.
#[test]
fn a_long_call_is_open_in_every_report() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("longcall.c")).expect("builds");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut command = Command::new(&env.ctrace);
    command.args(["run", "-f", "event_loop", "-f", "leaf", "--min-duration", "50ms"]);
    command.args(["--interval", "0.5", "--format", "json", "-o"]).arg(file.path());
    let mut running = Running::start(command.arg("--").arg(&path)).expect("starts");
    let text = || std::fs::read_to_string(file.path()).expect("there");
    let reports = || text().lines().filter_map(|line| Report::parse(line).ok()).collect::<Vec<_>>();
    let all = loop {
        let all = reports();
        if all.len() >= 4 || !running.is_running() {
            break all;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    // It passes the signal on.
    running.signal(Signal::TERM).expect("ctrace runs");
    let finished = running.wait(LIMIT).expect("it ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    assert!(all.len() >= 4, "{} reports", all.len());
    for report in &all {
        assert_eq!(report.expect("event_loop").expect("traced").ends(), (1, 0, 0, 1));
        assert!(report.0["filtered_calls"].as_u64().is_some_and(|calls| calls > 0));
        report.check_lossless().expect("in order");
    }
}
