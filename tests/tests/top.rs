//! Runs `ctrace top` in a real terminal: tests the screen of a live target, and the keys.

use ctrace_tests::daemon::{self, Daemon};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Running, run};
use ctrace_tests::targets::program;
use ctrace_tests::tmux::{self, Terminal};
use ctrace_tests::{gate, look, or_skip};
use rustix::process::{Signal, kill_process};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const FUNCTIONS: &str = "-f '*_request' -f read_from_disk -f look_up -f render_page -f compress";

fn live() -> Result<Env, String> {
    tmux::installed()?;
    gate::live(Link::Session)
}

/// A small server that runs longer than any test.
fn server(env: &Env) -> Running {
    let path = env.targets.get(&program("demo.c")).expect("demo builds");
    let running = Running::start(Command::new(path).arg("1000")).expect("demo starts");
    look::wait_until("its threads run", || look::has_thread(running.pid(), "worker-2"))
        .expect("it runs");
    running
}

/// Runs `ctrace top` on it. Afterwards the terminal shows how it ended, and whether its settings
/// are restored.
fn top(env: &Env, target: &Running, options: &str, size: (u16, u16)) -> Terminal {
    top_with(env, &format!("{} {FUNCTIONS} {options}", target.pid()), size)
}

fn top_with(env: &Env, arguments: &str, (width, height): (u16, u16)) -> Terminal {
    let script = format!(
        "before=$(stty -g)\n'{}' top {arguments}\necho \"ended with $?\"\n\
         test \"$before\" = \"$(stty -g)\" && echo settings restored",
        env.ctrace.display(),
    );
    Terminal::start(&script, width, height).expect("a terminal")
}

/// Returns the table's rows of these functions.
fn rows<'a>(screen: &'a str, names: &[&str]) -> Vec<&'a str> {
    let is_row = |line: &&str| {
        names.iter().any(|name| line.trim_start_matches(['›', ' ']).starts_with(name))
    };
    screen.lines().filter(is_row).collect()
}

fn ctrace_in(terminal: &Terminal) -> rustix::process::Pid {
    let shell = terminal.pid().expect("a shell");
    let child = look::children(shell).into_iter().next().expect("ctrace runs");
    rustix::process::Pid::from_raw(child).expect("a process")
}

#[track_caller]
fn check_end(terminal: &Terminal) {
    terminal.shows(&["ended with 0", "settings restored"]);
    assert!(!terminal.is_taken().expect("tmux"), "the screen or the cursor is not given back");
}

#[test]
fn a_table_that_is_sorted_and_filtered() {
    let env = or_skip!(live());
    let target = server(&env);
    let terminal = top(&env, &target, "", (80, 24));
    let all = ["handle_request", "look_up", "read_from_disk", "compress", "render_page"];
    let screen =
        terminal.shows(&["handle_request", "look_up", "compress", "% CPU · no events lost"]);
    assert!(screen.contains(&format!("pid {}", target.pid())), "{screen}");
    assert!(screen.contains("[functions]") && screen.contains("self▼"), "{screen}");
    // Waits for the disk take the most time of its own.
    terminal.when("it is sorted by self time", |s| {
        rows(s, &all).first().is_some_and(|row| row.contains("read_from_disk"))
    });
    terminal.press(&["n"]).expect("keys");
    terminal.when("it is sorted by name", |s| {
        let rows = rows(s, &all);
        rows.len() == all.len() && rows[0].contains("compress")
    });
    terminal.press(&["Right"]).expect("keys");
    terminal.shows(&["calls/s▼"]);
    terminal.press(&["/", "disk"]).expect("keys");
    terminal.when("it is filtered", |s| rows(s, &all).len() == 1 && s.contains("read_from_disk"));
    terminal.press(&["Escape"]).expect("keys");
    terminal.when("the filter is gone", |s| rows(s, &all).len() == all.len());
    terminal.press(&["q"]).expect("keys");
    check_end(&terminal);
}

/// A command's output does not reach the screen. The command goes on after `top` has quit.
#[test]
fn a_command_that_is_launched() {
    let env = or_skip!(live());
    let path = env.targets.get(&program("budget.c")).expect("budget builds");
    let watch = |seconds: u32| {
        let arguments = format!("-f round_ -f often -- '{}' {seconds} 0", path.display());
        top_with(&env, &arguments, (100, 40))
    };
    let terminal = watch(600);
    let screen = terminal.shows(&["often", "round_", "no events lost"]);
    terminal.press(&["q"]).expect("keys");
    check_end(&terminal);
    let after = terminal.shows(&["the command goes on without being traced"]);
    // The command's first line.
    assert!(!screen.contains("ready") && !after.contains("ready"), "{screen}{after}");
    let pid = after.split("`kill ").nth(1).and_then(|rest| rest.split('`').next());
    let pid: i32 = pid.and_then(|pid| pid.parse().ok()).expect("it tells how to end it");
    let command = rustix::process::Pid::from_raw(pid).expect("a process");
    kill_process(command, Signal::TERM).expect("it runs");

    let terminal = watch(2);
    terminal.shows(&["often", "exited with 0"]);
    terminal.press(&["q"]).expect("keys");
    check_end(&terminal);
    let after = terminal.screen().expect("a screen");
    assert!(!after.contains("goes on"), "{after}");
}

#[test]
fn every_view() {
    let env = or_skip!(live());
    let target = server(&env);
    let terminal = top(&env, &target, "--interval 500ms --sort p999", (100, 40));
    terminal.shows(&["handle_request", "p99.9▼"]);
    terminal.press(&["t"]).expect("keys");
    terminal.shows(&["[tree]", "├─ look_up", "›"]);
    terminal.press(&["Enter"]).expect("keys");
    // It stays folded in the next intervals.
    terminal.when("the root is folded", |s| s.contains("handle_request (+") && !s.contains("├─"));
    std::thread::sleep(Duration::from_secs(1));
    terminal.when("it still is", |s| s.contains("handle_request (+") && !s.contains("├─"));
    terminal.press(&["Right", "Right", "w"]).expect("keys");
    terminal.shows(&["callers of ", "└─ handle_request"]);
    terminal.press(&["u"]).expect("keys");
    terminal.shows(&["├─ look_up"]);
    terminal.press(&["p"]).expect("keys");
    terminal.shows(&["[paths]", "handle_request → look_up"]);
    terminal.press(&["T"]).expect("keys");
    terminal.shows(&["[threads]", "worker-0", "worker-2"]);
    terminal.press(&["h"]).expect("keys");
    terminal.shows(&["[histogram]", "timed calls", "◂ p"]);
    terminal.press(&["f", "Enter"]).expect("keys");
    terminal.shows(&["[functions]", "called by", "demo.c"]);
    terminal.press(&["?"]).expect("keys");
    terminal.shows(&["sort by name", "Esc: back"]);
    terminal.press(&["Escape"]).expect("keys");
    terminal.shows(&["[functions]", "handle_request"]);
    terminal.press(&["c"]).expect("keys");
    terminal.shows(&["since start", "~ within 6 %"]);
    terminal.press(&["C-c"]).expect("keys");
    check_end(&terminal);
    // What stays is the first screen of a report.
    terminal.shows(&[
        "calls of 6 functions",
        "handle_request",
        "come from histograms",
        "events lost",
    ]);
}

/// The numbers that stay are those of a report, to the last call.
#[test]
fn the_summary_has_every_call() {
    let env = or_skip!(live());
    let path = env.targets.get(&program("counts.c")).expect("counts builds");
    let arguments =
        format!("-f leaf -f ping -f pong --interval 100ms -- '{}' 40000", path.display());
    // As wide as the path of the command needs.
    let terminal = top_with(&env, &arguments, (200, 40));
    terminal.shows(&["leaf", "exited with 0"]);
    // Neither a pause nor a freeze leaves something out.
    terminal.press(&["Space", "b", "q"]).expect("keys");
    check_end(&terminal);
    let screen =
        terminal.shows(&["40,210 calls of 3 functions", "exited with 0", "no events lost"]);
    for (name, calls) in [("leaf", "40,000"), ("ping", "110"), ("pong", "100")] {
        let rows = rows(&screen, &[name]);
        assert_eq!(rows.len(), 1, "{screen}");
        assert!(rows[0].split_whitespace().any(|word| word == calls), "{name}: {screen}");
    }
}

#[test]
fn pause_compare_and_export() {
    let env = or_skip!(live());
    let target = server(&env);
    let terminal = top(&env, &target, "--interval 300ms", (80, 24));
    terminal.shows(&["handle_request"]);
    terminal.press(&["Space"]).expect("keys");
    let paused = terminal.shows(&["PAUSED"]);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(terminal.screen().expect("a screen"), paused);
    terminal.press(&["Space"]).expect("keys");
    terminal.when("it goes on", |s| !s.contains("PAUSED"));
    terminal.press(&["b"]).expect("keys");
    // The server's load is steady: its numbers change by some percent, or not at all.
    terminal.when("changes are shown", |s| {
        let changed = |row: &&str| row.contains('%') || row.contains(" = ");
        s.contains("COMPARED") && rows(s, &["look_up"]).iter().any(changed)
    });
    terminal.press(&["b"]).expect("keys");
    terminal.when("they are not any more", |s| !s.contains("COMPARED"));
    for (key, extension, text) in
        [("t", "txt", "calls/s"), ("j", "json", "\"ctrace.report.v1\""), ("c", "csv", "p99_ns")]
    {
        let name = format!("ctrace-top-{}-1.{extension}", target.pid());
        terminal.press(&["e"]).expect("keys");
        terminal.shows(&["write as"]);
        terminal.press(&[key]).expect("keys");
        terminal.shows(&[&format!("written: ./{name}")]);
        let written = std::fs::read_to_string(terminal.folder().join(name)).expect("a file");
        assert!(written.contains(text) && written.contains("handle_request"), "{written}");
    }
    terminal.press(&["q"]).expect("keys");
    check_end(&terminal);
}

/// A daemon with this interval, and a target of it whose `step` is called 500 times a second.
fn daemon_with_spin(env: &Env, interval: &str) -> (Daemon, Running) {
    let dir = daemon::folder(env, &[("spin", &program("spin.c"))]).expect("spin builds");
    let target = format!(
        "[[target]]\nid = \"spin\"\nexe = \"DIR/spin\"\nfunctions = [\"step\", \"mix\"]\ninterval \
         = \"{interval}\"\n"
    );
    let daemon = Daemon::start(env, dir, &target).expect("the daemon starts");
    let spin = daemon.target("spin", &["0", "500"]).expect("starts");
    daemon.wait_until_traced(spin.pid()).expect("traced");
    (daemon, spin)
}

/// Shows the screen of a daemon, with its one process chosen.
fn top_of_daemon(env: &Env, daemon: &Daemon, options: &str) -> Terminal {
    let arguments = format!("--daemon --socket '{}' {options}", daemon.socket().display());
    let terminal = top_with(env, &arguments, (100, 24));
    terminal.shows(&["target", "spin", "Enter look at it"]);
    terminal.press(&["Enter"]).expect("keys");
    terminal
}

/// Returns the rate of `step` in its column.
fn rate(screen: &str) -> Option<f64> {
    let row = *rows(screen, &["step"]).first()?;
    // Letters that mark a row stand between its name and its numbers.
    row.split_whitespace().skip(1).find_map(|word| word.replace(',', "").parse().ok())
}

/// Counts the marks of its sparkline.
fn marks(screen: &str) -> usize {
    let row = rows(screen, &["step"]).first().copied().unwrap_or_default();
    row.chars().filter(|mark| ('▁'..='█').contains(mark)).count()
}

/// The daemon's interval is a minute, but the screen shows the last moment.
#[test]
fn a_process_of_a_daemon() {
    let env = or_skip!(live());
    let (daemon, spin) = daemon_with_spin(&env, "60s");
    let terminal = top_of_daemon(&env, &daemon, "--interval 500ms --sort total");
    let screen = terminal.when("the rate is that of the target", |s| {
        rate(s).is_some_and(|rate| (450.0..550.0).contains(&rate))
    });
    assert!(screen.contains(&format!("pid {}", spin.pid())), "{screen}");
    // The first look covers a whole interval, and is exact.
    terminal.shows(&["% CPU · no events lost", "· last ", "p99", "~ within 6 %"]);
    terminal.when("there is a trend", |s| marks(s) >= 4);
    terminal.press(&["Enter"]).expect("keys");
    terminal.shows(&["called by", "time in mix"]);
    terminal.press(&["h"]).expect("keys");
    terminal.shows(&["[histogram]", "timed calls", "◂ p"]);
    terminal.press(&["t"]).expect("keys");
    terminal.shows(&["[tree]", "└─ mix"]);
    terminal.press(&["T"]).expect("keys");
    terminal.shows(&["[threads]", &spin.pid().to_string()]);
    terminal.press(&["f", "c"]).expect("keys");
    terminal.shows(&["since start"]);
    terminal.press(&["c", "b"]).expect("keys");
    // Its load is steady.
    terminal.when("changes are shown", |s| {
        let changed = |row: &&str| row.contains('%') || row.contains(" = ");
        s.contains("COMPARED") && rows(s, &["step"]).iter().any(changed)
    });
    terminal.press(&["e", "j"]).expect("keys");
    let name = format!("ctrace-top-{}-1.json", spin.pid());
    terminal.shows(&[&format!("written: ./{name}")]);
    let written = std::fs::read_to_string(terminal.folder().join(name)).expect("a file");
    assert!(written.contains("\"step\"") && written.contains("come from histograms"), "{written}");
    terminal.press(&["q"]).expect("keys");
    check_end(&terminal);
}

/// Nothing is missing when the daemon's intervals end between looks.
#[test]
fn short_intervals_of_a_daemon() {
    let env = or_skip!(live());
    let (daemon, _spin) = daemon_with_spin(&env, "300ms");
    let terminal = top_of_daemon(&env, &daemon, "");
    terminal.when("there is a trend", |s| marks(s) >= 4);
    terminal.press(&["c"]).expect("keys");
    terminal.when("the rate since the start is that of the target", |s| {
        let about = rate(s).is_some_and(|rate| (450.0..550.0).contains(&rate));
        about && s.contains("since start") && s.contains("no events lost")
    });
    terminal.press(&["q"]).expect("keys");
    check_end(&terminal);
}

#[test]
fn windows_of_any_size() {
    let env = or_skip!(live());
    let target = server(&env);
    let terminal = top(&env, &target, "", (80, 24));
    terminal.shows(&["handle_request", "q quit"]);
    terminal.resize(132, 40).expect("resized");
    terminal.shows(&["handle_request", "cost %", "mean"]);
    terminal.resize(40, 10).expect("resized");
    terminal.when("it has become small", |s| !s.contains("mean") && s.contains("handle_request"));
    for (width, height) in [(20, 5), (10, 3), (2, 2), (1, 1)] {
        terminal.resize(width, height).expect("resized");
        std::thread::sleep(Duration::from_millis(100));
    }
    terminal.resize(80, 24).expect("resized");
    terminal.shows(&["handle_request", "no events lost", "q quit"]);
    terminal.press(&["q"]).expect("keys");
    check_end(&terminal);
}

#[test]
fn signals_give_the_terminal_back() {
    let env = or_skip!(live());
    let target = server(&env);
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let terminal = top(&env, &target, "", (80, 24));
        terminal.shows(&["handle_request"]);
        assert!(terminal.is_taken().expect("tmux"));
        kill_process(ctrace_in(&terminal), signal).expect("it runs");
        check_end(&terminal);
    }
}

#[test]
fn the_last_numbers_stay_when_the_target_ends() {
    let env = or_skip!(live());
    let target = server(&env);
    let terminal = top(&env, &target, "", (80, 24));
    terminal.shows(&["handle_request"]);
    target.signal(Signal::TERM).expect("it runs");
    terminal.shows(&["killed by SIGTERM"]);
    terminal.press(&["c"]).expect("keys");
    terminal.shows(&["since start", "handle_request", "killed by SIGTERM"]);
    terminal.press(&["q"]).expect("keys");
    check_end(&terminal);
}

#[test]
fn without_colour() {
    let env = or_skip!(live());
    let target = server(&env);
    // script(1) records what a terminal gets.
    let command = format!("{} top {} {FUNCTIONS}", env.ctrace.display(), target.pid());
    let recorded =
        format!("NO_COLOR=1 script -q -e -c \"{command}\" screen.txt\necho \"ended with $?\"");
    let terminal = Terminal::start(&recorded, 80, 24).expect("a terminal");
    terminal.shows(&["handle_request"]);
    terminal.press(&["q"]).expect("keys");
    terminal.shows(&["ended with 0"]);
    let bytes = std::fs::read(terminal.folder().join("screen.txt")).expect("a record");
    let text = String::from_utf8_lossy(&bytes);
    for colour in 30..38 {
        assert!(
            !text.contains(&format!("\x1b[{colour}m")) && !text.contains(&format!(";{colour}m"))
        );
    }
    assert!(!text.contains("\x1b[38;") && !text.contains("\x1b[48;"));
}

#[test]
fn mistakes_are_one_line() {
    let env = or_skip!(live());
    let target = server(&env);
    let pid = target.pid().to_string();
    // Into a pipe.
    let piped = run(Command::new(&env.ctrace).args(["top", &pid, "-f", "*"]), LIMIT).expect("runs");
    assert_eq!(piped.shell_code(), 125);
    assert_eq!(piped.stderr.lines().count(), 1, "{}", piped.stderr);
    assert!(piped.stderr.contains("ctrace attach PID --interval"), "{}", piped.stderr);
    for (script, text) in [
        (format!("TERM=dumb ctrace top {pid} -f '*'"), "TERM is 'dumb'"),
        (format!("ctrace top {pid} -f no_such_function"), "no_such_function"),
        ("ctrace top 4194304 -f '*'".to_owned(), "4194304"),
    ] {
        let script = script.replace("ctrace top", &format!("'{}' top", env.ctrace.display()));
        let script = format!("{script} 2> error.txt\necho \"ended with $?\"");
        let terminal = Terminal::start(&script, 80, 24).expect("a terminal");
        terminal.shows(&["ended with 125"]);
        let error = std::fs::read_to_string(terminal.folder().join("error.txt")).expect("a file");
        assert!(error.starts_with("ctrace: ") && error.contains(text), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
