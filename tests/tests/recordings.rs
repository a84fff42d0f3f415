//! Tests the promises of `ctrace record` and `ctrace report`, whatever happens to the recording.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Running, run};
use ctrace_tests::recorded::{Recorded, report};
use ctrace_tests::report::Report;
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const LIMIT: Duration = Duration::from_secs(120);

fn spin(env: &Env) -> Running {
    let path = env.targets.get(&program("spin.c")).expect("builds");
    Running::start_ready(Command::new(path).args(["0", "20000"])).expect("starts")
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "{what} did not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Starts to record `step` of a process that calls it 20,000 times a second.
fn record(target: &Running, recorded: &mut Recorded) -> Running {
    let recording = recorded.start(target.pid()).expect("starts");
    let file = recorded.file.clone();
    // A chunk a second: two are some 20 KB.
    wait_for("a recording", || size(&file) > 20_000);
    recording
}

#[test]
fn a_killed_ctrace_leaves_what_it_recorded() {
    let env = or_skip!(gate::live(Link::Session));
    let target = spin(&env);
    let mut recorded = Recorded::new(&env, ["step"]).expect("a folder");
    let recording = record(&target, &mut recorded);
    recording.signal(Signal::KILL).expect("ctrace runs");
    recording.wait(LIMIT).expect("it ends");
    let report = recorded.report(&[]).expect("it can be read");
    let calls = report.expect("step").expect("recorded").calls();
    assert!(calls > 1_000, "{calls} calls");
    report.expect_note(&["not ended"]).expect("the report says so");
    target.signal(Signal::TERM).expect("the target lives");
    let finished = target.wait(LIMIT).expect("it ends");
    assert!(finished.stdout.contains("ok "), "{}", finished.stdout);
}

/// Each report has the calls of the function with one value, and what these called.
#[test]
fn the_calls_of_a_function_have_a_report_for_each_value() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("requests.c")).expect("builds");
    let recorded = Recorded::new(&env, ["step"]).expect("a folder");
    let mut recorded = recorded.args(["--arg", "serve: key=0:str", "--ret", "serve: i64"]);
    let finished = recorded.program(&path, &["30"]).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let report_by = |what: &str| recorded.by(what).expect("ends");
    let parts_of = |text: &str| -> Vec<(Value, u64, u64)> {
        let reports = text.lines().map(|line| Report::parse(line).expect("a report"));
        let part = |report: Report| {
            report.check_schema().expect("as documented");
            let calls = |name: &str| report.function(name).map_or(0, |function| function.calls());
            (report.0["part"]["calls"]["value"].clone(), calls("serve"), calls("step"))
        };
        reports.map(part).collect()
    };
    let parts = |what: &str| parts_of(&report_by(what).stdout);
    let by_key = parts("serve: key");
    let [whole, .., others] = &by_key[..] else { panic!("{by_key:?}") };
    assert_eq!(*whole, (Value::Null, 95, 600));
    assert!(by_key.contains(&(Value::from("dear"), 25, 500)), "{by_key:?}");
    assert!(by_key.contains(&(Value::from("cheap"), 40, 40)), "{by_key:?}");
    // Of those that come once, 14 have a part, and the others one together.
    assert_eq!((by_key.len(), others), (18, &(Value::Null, 16, 32)));
    // The sums of all parts are the whole.
    let sums = by_key[1..].iter().fold((0, 0), |sum, part| (sum.0 + part.1, sum.1 + part.2));
    assert_eq!(sums, (95, 600));
    let by_result = parts("serve: retval");
    assert_eq!(by_result.len(), 3, "{by_result:?}");
    // As tables, parts have titles of their own and say once what holds for all.
    let mut table = Command::new(&env.ctrace);
    let table = table.arg("report").arg(&recorded.file).args(["--by", "serve: key"]).output();
    let table = String::from_utf8_lossy(&table.expect("runs").stdout).into_owned();
    let times = |what: &str| table.matches(what).count();
    assert_eq!(times("Calls of serve"), 17, "{table}");
    for once in ["exited with 0", "Times are wall time", "no events lost", "from 2"] {
        assert_eq!(times(once), 1, "{once}: {table}");
    }
    // The same without a recording.
    let run_by = |what: &str| {
        let mut command = Command::new(&env.ctrace);
        command.args(["run", "-f", "step", "--arg", "serve: key=0:str", "--by", what]);
        let file = recorded.file.with_extension("json");
        command.args(["--format", "json", "-o"]).arg(&file).arg("--").arg(&path).arg("30");
        (run(&mut command, LIMIT).expect("ends"), file)
    };
    let (finished, file) = run_by("serve: key");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let live_parts = parts_of(&std::fs::read_to_string(file).expect("reports"));
    let sorted = |parts: &[(Value, u64, u64)]| {
        let mut parts = parts.to_vec();
        parts.sort_by_key(|(value, serve, step)| (value.to_string(), *serve, *step));
        parts
    };
    let of_many = |parts: &[(Value, u64, u64)]| -> Vec<_> {
        sorted(parts).into_iter().filter(|(_, serve, _)| *serve > 1).collect()
    };
    // Which of those that come once have a part of their own is left to time.
    assert_eq!((live_parts.len(), of_many(&live_parts)), (18, of_many(&by_key)));
    // A value that is not there is told before the program starts.
    let (without, _) = run_by("serve: size");
    assert_eq!((without.shell_code(), &*without.stdout), (125, ""), "{without:?}");
    assert!(without.stderr.contains("serve has no value `size`; there are key"), "{without:?}");
    let refused = report_by("serve: size");
    assert_ne!(refused.shell_code(), 0);
    assert!(refused.stderr.contains("has no value `size`; there are key, retval"), "{refused:?}");
}

/// A histogram of a part holds the calls with its value, and those of all parts are the whole.
#[test]
fn each_value_has_a_histogram() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("requests.c")).expect("builds");
    let recorded = Recorded::new(&env, ["step"]).expect("a folder");
    let mut recorded = recorded.args(["--arg", "serve: key=0:str"]);
    let finished = recorded.program(&path, &["30"]).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let mut command = Command::new(&env.ctrace);
    command.arg("report").arg(&recorded.file).args(["--by", "serve: key", "--view", "hist"]);
    let shown = run(command.args(["--format", "json"]), LIMIT).expect("ends");
    assert_eq!(shown.shell_code(), 0, "{}", shown.stderr);
    let in_histogram = |report: &Report, name: &str| {
        let rows = report.0["histograms"]["functions"].as_array().expect("histograms");
        let functions = report.0["functions"].as_array().expect("rows");
        let is_it = |row: &&Value| {
            let place = row["function"].as_u64().expect("a place") as usize;
            functions[place]["name"] == name
        };
        let counts = rows.iter().find(is_it).map(|row| row["counts"].as_array().expect("counts"));
        counts.into_iter().flatten().filter_map(Value::as_u64).sum::<u64>()
    };
    let part = |line: &str| {
        let report = Report::parse(line).expect("a report");
        let value = report.0["part"]["calls"]["value"].clone();
        (value, in_histogram(&report, "serve"), in_histogram(&report, "step"))
    };
    let parts: Vec<(Value, u64, u64)> = shown.stdout.lines().map(part).collect();
    assert_eq!(parts[0], (Value::Null, 95, 600));
    assert!(parts.contains(&(Value::from("dear"), 25, 500)), "{parts:?}");
    assert!(parts.contains(&(Value::from("cheap"), 40, 40)), "{parts:?}");
    let sums = parts[1..].iter().fold((0, 0), |sum, part| (sum.0 + part.1, sum.1 + part.2));
    assert_eq!(sums, (95, 600));
}

/// Each key of one build is compared with itself in another. Keys that come once have no partner.
#[test]
fn two_recordings_are_compared_by_value() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("requests.c")).expect("builds");
    let record = |steps: &str| {
        let recorded = Recorded::new(&env, ["step"]).expect("a folder");
        let mut recorded = recorded.args(["--arg", "serve: key=0:str"]);
        let finished = recorded.program(&path, &["3", steps]).expect("runs");
        assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
        recorded
    };
    let (old, new) = (record("20"), record("60"));
    let diff = |by: &str| {
        let mut command = Command::new(&env.ctrace);
        command.arg("diff").arg(&old.file).arg(&new.file);
        run(command.args(["--format", "json", "--by", by]), LIMIT).expect("ends")
    };
    let found = diff("serve: key");
    assert_eq!(found.shell_code(), 0, "{}", found.stderr);
    let change_of_serve = |found: &Value| {
        let rows = found["functions"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["name"] == "serve").expect("it was called");
        row["changes"]["p50_ns"]["change_percent"].as_f64().expect("a change")
    };
    let parts = found.stdout.lines().map(|line| serde_json::from_str(line).expect("a document"));
    let parts: Vec<(Value, f64)> = parts
        .map(|part: Value| (part["part"]["calls"]["value"].clone(), change_of_serve(&part)))
        .collect();
    let of = |key: &str| parts.iter().find(|part| part.0 == key).expect("it is compared").1;
    assert_eq!((parts.len(), &parts[0].0), (6, &Value::Null), "{parts:?}");
    // The threefold work, as far as a machine with other work tells.
    assert!(of("dear") > 70.0 && of("cheap").is_finite(), "{parts:?}");
    let refused = diff("thread");
    assert_eq!(refused.shell_code(), 125);
    assert!(refused.stderr.contains("ids differ from run to run"), "{}", refused.stderr);
}

#[test]
fn a_flight_recorder_keeps_the_newest_calls() {
    let env = or_skip!(gate::live(Link::Session));
    let target = spin(&env);
    let recorded = Recorded::new(&env, ["step", "mix"]).expect("a folder");
    let mut recorded = recorded.args(["--max-size", "1MiB"]);
    let recording = recorded.start(target.pid()).expect("starts");
    // It has shrunk at least once.
    let (file, mut largest) = (recorded.file.clone(), 0);
    wait_for("a smaller file", || {
        let now = size(&file);
        largest = largest.max(now);
        now > 0 && now < largest
    });
    recording.signal(Signal::INT).expect("ctrace runs");
    let finished = recording.wait(LIMIT).expect("it ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    assert!(finished.stderr.contains(": the newest "), "{}", finished.stderr);
    assert!(size(&recorded.file) <= 1 << 20, "{} bytes", size(&recorded.file));
    let report = recorded.report(&[]).expect("it can be read");
    report.check_lossless().expect("nothing is lost");
    let step = report.expect("step").expect("recorded").calls();
    let mix = report.expect("mix").expect("recorded").calls();
    // Each step mixes once. A call under way at an edge may be in or out.
    assert!(step > 1_000 && step.abs_diff(mix) <= 1, "{step} steps, {mix} mixes");
    target.signal(Signal::TERM).expect("the target lives");
    target.wait(LIMIT).expect("it ends");
}

#[test]
fn a_flight_recorder_keeps_the_values_of_the_newest_calls() {
    let env = or_skip!(gate::live(Link::Session));
    let mut recorded = Recorded::new(&env, []).expect("a folder").args([
        "-u",
        "values:registers",
        "--max-size",
        "1MiB",
    ]);
    let path = env.targets.get(&program("usdt_values.c")).expect("builds");
    let rounds = 100_000;
    let finished = recorded.program(&path, &[&rounds.to_string()]).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    assert!(size(&recorded.file) <= 1 << 20, "{} bytes", size(&recorded.file));
    let report = recorded.report(&["--view", "calls", "--top", "100000"]).expect("it can be read");
    report.check_lossless().expect("nothing is lost");
    let hits = report.0["points"]["first"].as_array().expect("hits");
    // Two of the values say which round they are of.
    let round = |hit: &Value| {
        let first = hit["values"]["arg0"].as_u64().expect("a number") - 0x1122_3344_5566_7788;
        let second = hit["values"]["arg5"].as_u64().expect("a number");
        assert_eq!((first / 0x1_0101, first % 0x1_0101), (second >> 33, 0), "{hit}");
        second >> 33
    };
    let kept: Vec<u64> = hits.iter().map(round).collect();
    assert!((1_000..rounds).contains(&(kept.len() as u64)), "{} hits", kept.len());
    assert!(kept.iter().copied().eq(rounds - kept.len() as u64..rounds), "{kept:?}");
}

#[test]
fn each_rotated_file_stands_for_itself() {
    let env = or_skip!(gate::live(Link::Session));
    let mut recorded =
        Recorded::new(&env, ["leaf", "ping", "pong"]).expect("a folder").args(["--rotate", "1MiB"]);
    let path = env.targets.get(&program("counts.c")).expect("builds");
    let finished = recorded.program(&path, &["1000000"]).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    assert!(finished.stderr.contains(" files: "), "{}", finished.stderr);
    let truth = ctrace_tests::truth::Truth::parse(&finished.stdout);
    let (mut files, mut leaf, mut others) = (0, 0, Vec::new());
    loop {
        let name = if files == 0 { "ctrace".to_owned() } else { format!("{files}.ctrace") };
        let file = recorded.file.with_extension(name);
        if !file.exists() {
            break;
        }
        let report = report(&env.ctrace, &file, &[]).expect("it stands for itself");
        report.check_lossless().expect("nothing is lost");
        let in_it = report.function("leaf").map_or(0, |leaf| {
            let (_, timed, untimed, _) = leaf.ends();
            timed + untimed
        });
        assert!(in_it > 0, "there are calls in each, file {files}");
        assert!(size(&file) <= 1 << 20, "file {files} has {} bytes", size(&file));
        leaf += in_it;
        files += 1;
        others.insert(0, file.to_str().expect("text").to_owned());
    }
    assert!(files > 1, "one file only");
    let expected = truth.calls.iter().find(|(name, _)| name == "leaf").expect("it counts").1;
    assert_eq!(leaf, expected, "in {files} files");
    // Together they are one recording, in any order.
    let first = others.pop().expect("a file");
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let whole = report(&env.ctrace, Path::new(&first), &others).expect("they go together");
    whole.check_lossless().expect("nothing is lost");
    assert_eq!(whole.expect("leaf").expect("recorded").ends(), (expected, expected, 0, 0));
    let gap = Command::new(&env.ctrace).args(["report", &first, others[0]]).output().expect("ends");
    let said = String::from_utf8_lossy(&gap.stderr);
    assert!(files == 2 || said.contains("a file between them is missing"), "{said}");
}

#[test]
fn a_full_disk_ends_a_recording_that_can_be_read() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = tempfile::tempdir().expect("a folder");
    let mount = |arguments: &[&str]| {
        let done = run(Command::new(arguments[0]).args(&arguments[1..]), LIMIT);
        done.is_ok_and(|finished| finished.shell_code() == 0)
    };
    let at = folder.path().to_str().expect("text");
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=256k", "none", at]) {
        println!("skipped: a small file system cannot be mounted here");
        return;
    }
    let recorded = Recorded::new(&env, ["leaf", "ping", "pong"]).expect("a folder");
    let mut recorded = recorded.to(&folder.path().join("full.ctrace"));
    let path = env.targets.get(&program("counts.c")).expect("builds");
    let finished = recorded.program(&path, &["1000000"]);
    let report = recorded.report(&[]);
    assert!(mount(&["umount", at]), "cannot be unmounted");
    let finished = finished.expect("it ends");
    assert_eq!(finished.shell_code(), 125, "{}", finished.stderr);
    let words = ["full.ctrace", "space", "ctrace report"];
    assert!(words.iter().all(|word| finished.stderr.contains(word)), "{}", finished.stderr);
    assert!(!finished.stderr.contains("cannot be read"), "{}", finished.stderr);
    // The command came to its end, and ctrace with it.
    assert!(finished.stdout.contains("calls leaf"), "{}", finished.stdout);
    let report = report.expect("it can be read");
    assert!(report.expect("leaf").expect("recorded").calls() > 1_000);
}

#[test]
fn other_files_are_not_replaced() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("counts.c")).expect("builds");
    let mut recorded = Recorded::new(&env, ["leaf"]).expect("a folder");
    std::fs::write(&recorded.file, "notes").expect("written");
    let finished = recorded.program(&path, &["10"]).expect("ends");
    assert_eq!(finished.shell_code(), 125);
    assert!(finished.stderr.contains("no recording"), "{}", finished.stderr);
    assert_eq!(std::fs::read_to_string(&recorded.file).expect("there"), "notes");
}

/// Other tools get times without zones; people get local times.
#[test]
fn a_recording_knows_both_times() {
    const AHEAD: i64 = 9 * 3600;
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("counts.c")).expect("builds");
    let mut recorded = Recorded::new(&env, ["leaf"]).expect("a folder").env("TZ", "XYZ-9");
    assert_eq!(recorded.program(&path, &["10"]).expect("ends").shell_code(), 0);
    let ctrace = |arguments: &[&str]| {
        let mut command = Command::new(&env.ctrace);
        command.arg(arguments[0]).arg(&recorded.file).args(&arguments[1..]);
        run(&mut command, LIMIT).expect("reads it").stdout
    };
    let chrome: Value =
        serde_json::from_str(&ctrace(&["export", "--format", "chrome"])).expect("JSON");
    let told = |key: &str| chrome["otherData"][key].as_i64().expect("a number");
    let begun = (told("start_ns") + told("epoch_offset_ns")) / 1_000_000_000;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    assert!((now as i64 - begun).unsigned_abs() < 600, "{begun} is not about {now}");

    let summary = ctrace(&["report", "--view", "summary"]);
    let shown = |time: i64| {
        let mut date = Command::new("date");
        let date = date.args(["-u", "-d", &format!("@{time}"), "+%F %T"]).output().expect("date");
        String::from_utf8_lossy(&date.stdout).trim().to_owned()
    };
    let local = shown(begun + AHEAD);
    assert!(summary.contains(&local), "{local} is not in: {summary}");
}
