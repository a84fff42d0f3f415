//! Tests `ctrace log`: the messages of a program's USDT probes, in the order in which it tells of them.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Finished, Running, run};
use ctrace_tests::recorded::Recorded;
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);

/// The texts of `logs.c`, and the functions around them.
const SELECTION: [&str; 6] = ["--arg", "app:log__*: 0:str, n=1:i32", "-f", "handle", "-f", "parse"];

/// A message: the process, the thread, the level and the text.
type Said = (u64, u64, String, String);

/// Returns the messages of which the program tells.
fn said(stdout: &str) -> Vec<Said> {
    let lines = stdout.lines().filter_map(|line| line.strip_prefix("said "));
    let said = lines.map(|line| {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().expect("four words").to_owned();
        let [pid, tid] = [word(), word()].map(|word| word.parse().expect("a number"));
        (pid, tid, word(), word())
    });
    said.collect()
}

fn objects(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

fn seen(objects: &[Value]) -> Vec<Said> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let number = |value: &Value| value.as_u64().expect("a number");
    let of = |it: &Value| {
        (number(&it["pid"]), number(&it["tid"]), text(&it["level"]), text(&it["text"]))
    };
    objects.iter().map(of).collect()
}

fn log(env: &Env, options: &[&str]) -> Command {
    let mut command = Command::new(&env.ctrace);
    command.args(["log", "--link", env.link.name()]).args(options);
    command
}

/// Traces `logs.c`. Returns its output, and the lines.
fn of_program(env: &Env, arguments: &[&str], options: &[&str]) -> (Finished, String) {
    of_source(env, "logs.c", arguments, options)
}

fn of_source(env: &Env, source: &str, arguments: &[&str], options: &[&str]) -> (Finished, String) {
    let target = env.targets.get(&program(source)).expect("builds");
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("lines");
    let mut command = log(env, options);
    command.arg("-o").arg(&file).arg("--").arg(target).args(arguments);
    let finished = run(&mut command, LIMIT).expect("runs");
    // There is none without lines.
    (finished, read_to_string(file).unwrap_or_default())
}

fn of_recording(env: &Env, file: &Path, options: &[&str]) -> Finished {
    let mut command = Command::new(&env.ctrace);
    let finished = run(command.arg("log").arg(file).args(options), LIMIT).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    finished
}

/// Returns a line without the gaps of its columns, which depend on the lengths of ids.
fn unpadded(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the objects without their times, which differ between two runs, as do the ids.
fn without_times(mut objects: Vec<Value>) -> Vec<Value> {
    for object in &mut objects {
        let object = object.as_object_mut().expect("an object");
        for key in ["time_ns", "pid", "tid"] {
            object.remove(key).expect("it has one");
        }
    }
    objects
}

#[test]
fn messages_of_all_threads_and_processes_are_complete_and_in_order() {
    let env = or_skip!(gate::live(Link::Session));
    let options = [&SELECTION[..], &["--follow", "--json"]].concat();
    let (finished, lines) = of_program(&env, &["2", "3", "120"], &options);
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let (told, objects) = (said(&finished.stdout), objects(&lines));
    assert_eq!(told.len(), 3 * 3 * 120);
    assert_eq!(seen(&objects), told);
    let processes: BTreeSet<u64> = told.iter().map(|(pid, ..)| *pid).collect();
    let threads: BTreeSet<u64> = told.iter().map(|(_, tid, ..)| *tid).collect();
    assert_eq!((processes.len(), threads.len()), (3, 9));
    let times: Vec<u64> = objects.iter().map(|it| it["time_ns"].as_u64().expect("one")).collect();
    assert!(times.is_sorted());
    for object in &objects {
        let (level, text) = (&object["level"], object["text"].as_str().expect("a text"));
        assert_eq!(object["category"], json!(format!("app:log__{}", level.as_str().unwrap())));
        assert_eq!(object["stack"], json!(["handle", "parse"]), "{object}");
        let number = -object["values"]["n"].as_i64().expect("a number");
        assert!(text.starts_with(&format!("number {number}, ")), "{object}");
        assert!(object["thread"].as_str().is_some_and(|name| name.starts_with("talker-")));
    }
    let end = finished.stderr.lines().last().expect("a summary");
    assert!(end.contains("1,080 messages in ") && end.contains("; no events lost"), "{end}");
}

#[test]
fn filters_choose_by_level_text_and_thread() {
    let env = or_skip!(gate::live(Link::Session));
    let options = [&SELECTION[..], &["--level", "warn", "--grep", "number [0-9]*9,"]].concat();
    let options = [&options[..], &["--thread", "talker-1"]].concat();
    let (finished, lines) = of_program(&env, &["0", "2", "50"], &options);
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    for (line, number) in lines.iter().zip([9, 19, 29, 39, 49]) {
        let path = "talker-1 WARN handle > parse > app:log__warn: ";
        let text = format!("{path}number {number}, all in all ");
        let line = unpadded(line);
        assert!(line.contains(&text) && line.ends_with(&format!(" n={}", -number)), "{line}");
    }
    let end = finished.stderr.lines().last().expect("a summary");
    assert!(end.contains("5 of 50 messages in "), "{end}");
}

#[test]
fn a_recording_has_the_same_messages() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("logs.c")).expect("builds");
    let mut recorded = Recorded::new(&env, []).expect("a folder").args(SELECTION);
    let finished = recorded.program(&path, &["0", "1", "80"]).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let of = |options: &[&str]| of_recording(&env, &recorded.file, options).stdout;
    let all = objects(&of(&["--json"]));
    assert_eq!(seen(&all), said(&finished.stdout));
    // One thread says the same each time.
    let (_, live) = of_program(&env, &["0", "1", "80"], &[&SELECTION[..], &["--json"]].concat());
    assert_eq!(without_times(all), without_times(objects(&live)));
    let text = of(&[]);
    assert_eq!(text.lines().count(), 80);
    let third = unpadded(text.lines().nth(2).expect("a line"));
    let shown = "talker-0 INFO handle > parse > app:log__info: number 2, all in all 2 n=-2";
    assert!(third.contains(shown), "{third}");
    let of_handle = of(&["-f", "handle"]);
    let first = unpadded(of_handle.lines().next().expect("a line"));
    assert!(first.contains(" INFO handle > app:log__info: number 0, all in all 0"), "{first}");
    assert_eq!(of_handle.lines().count(), 80);
    assert_eq!(of(&["--level", "error"]), "");
    assert_eq!(of(&["--grep", "in all 7[0-9]"]).lines().count(), 10);
    let warnings = of(&["-u", "app:log__warn"]);
    let (first, count) = (warnings.lines().next().expect("a line"), warnings.lines().count());
    assert!(count == 16 && first.contains(" WARN   app:log__warn: number 4, "), "{first}");
    let coloured = of(&["--color", "always"]);
    assert!(coloured.contains("\u{1b}[1;33mWARN\u{1b}[0m"), "{coloured:?}");
}

/// A message waits for no call around it.
#[test]
fn a_call_that_never_ends_holds_up_no_message() {
    let env = or_skip!(gate::live(Link::Session));
    let target = env.targets.get(&program("logs.c")).expect("builds");
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("lines");
    let mut command = log(&env, &["--arg", "app:log__*: 0:str", "-f", "forever", "-o"]);
    command.arg(&file).arg("--").arg(target).args(["0", "1", "3", "wait"]);
    let running = Running::start(&mut command).expect("starts");
    let (begun, lines) = (Instant::now(), || read_to_string(&file).unwrap_or_default());
    while lines().lines().count() < 4 {
        assert!(begun.elapsed() < LIMIT, "the message did not come: {}", lines());
        std::thread::sleep(Duration::from_millis(20));
    }
    let last = lines().lines().last().expect("a line").to_owned();
    assert!(last.ends_with("WARN   forever > app:log__warn: number 4, all in all 3"), "{last}");
    running.signal(Signal::TERM).expect("ctrace runs");
    let finished = running.wait(LIMIT).expect("it ends");
    assert_eq!(finished.shell_code(), 143, "{}", finished.stderr);
    assert_eq!(lines().lines().count(), 4, "{}", lines());
}

#[test]
fn a_crash_loses_no_message() {
    let env = or_skip!(gate::live(Link::Session));
    for (end, code) in [("abort", 134), ("kill", 137)] {
        let options = [&SELECTION[..], &["--json"]].concat();
        let (finished, lines) = of_program(&env, &["0", "2", "90", end], &options);
        assert_eq!(finished.shell_code(), code, "{end}: {}", finished.stderr);
        assert_eq!(seen(&objects(&lines)), said(&finished.stdout), "{end}");
        assert_eq!(lines.lines().count(), 180, "{end}");
    }
}

/// All of them come, also from processes that are killed: `messages_and_plots` of the table of checks.
#[test]
fn messages_of_markers_need_no_option() {
    let env = or_skip!(gate::live(Link::Session));
    let (finished, lines) = of_source(&env, "marks_log.c", &["6", "1"], &["--follow"]);
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let shown = lines.lines().map(unpadded).collect::<Vec<_>>();
    assert!(
        shown.iter().any(|line| line.ends_with(" WARN request > parse > net: miss for 4")),
        "{lines}"
    );
    assert!(shown.iter().any(|line| line.ends_with(" request > parse: loaded 5 files")), "{lines}");
}

#[test]
fn a_hostile_text_drives_no_terminal_and_begins_no_line() {
    let env = or_skip!(gate::live(Link::Session));
    let asked = ["--arg", "app:log__error: 0:str"];
    let (finished, line) = of_program(&env, &["hostile"], &asked);
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let shown = "ERROR  app:log__error: \\u{1b}]0;pwned\\u{7} \"a\\b\" \\u{202e}\\n   0.1  1/1 x  forged: \
                 \\xff\\t.\n";
    assert!(line.ends_with(shown), "{line:?}");
    assert_eq!(line.lines().count(), 1);
    let (_, line) = of_program(&env, &["hostile"], &[&asked[..], &["--json"]].concat());
    assert!(!line.contains(['\u{1b}', '\u{202e}']), "{line:?}");
    let text = "\u{1b}]0;pwned\u{7} \"a\\b\" \u{202e}\n   0.1  1/1 x  forged: \\xff\t.";
    assert_eq!(objects(&line)[0]["text"], json!(text));
}

#[test]
fn what_does_not_fit_is_told() {
    let env = or_skip!(gate::live(Link::Session));
    for (arguments, why) in [
        (&["1", "--grep", "("][..], "--grep <REGEX>"),
        (&["1", "--level", "loud"], "--level <LEVEL>"),
    ] {
        let mut command = Command::new(&env.ctrace);
        let finished = run(command.arg("log").args(arguments), LIMIT).expect("runs");
        assert_eq!(finished.shell_code(), 125, "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(why), "{arguments:?}: {}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    }
    // Numbers alone are no message.
    let (finished, lines) = of_program(&env, &["0", "1", "2"], &["-u", "app:*"]);
    assert_eq!((finished.shell_code(), lines.as_str()), (0, ""), "{}", finished.stderr);
    let hint = "nothing that was traced has messages. A USDT probe has, if its text is read: --arg";
    assert!(finished.stderr.contains(hint), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("beside --arg or -u, choose these with -m '*'"),
        "{}",
        finished.stderr
    );
}
