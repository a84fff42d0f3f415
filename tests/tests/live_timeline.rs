//! Tests `ctrace ui --live`: its server has every call of a process while the process goes on.

use ctrace_tests::env::Link;
use ctrace_tests::http::get;
use ctrace_tests::look::wait_until;
use ctrace_tests::process::Running;
use ctrace_tests::targets::program;
use ctrace_tests::{gate, look, or_skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
/// A user without an account.
const USER: &str = "54321";

/// Returns the name of each thread of a process, and the user whose rights it has.
fn threads(pid: i32) -> Vec<(String, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let of = |task: std::io::Result<std::fs::DirEntry>| {
        let status = std::fs::read_to_string(task.ok()?.path().join("status")).ok()?;
        let line = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
        let user = line("Uid:")?.split_whitespace().nth(1)?;
        Some((line("Name:")?.trim().to_owned(), user.to_owned()))
    };
    tasks.filter_map(of).collect()
}

#[test]
fn every_call_is_shown_while_the_process_goes_on() {
    let env = or_skip!(gate::live(Link::Session));
    let target = env.targets.get(&program("turns.c")).expect("builds");
    let (target, mut input, output) =
        Running::start_piped(&mut Command::new(target)).expect("starts");
    let mut output = BufReader::new(output).lines();
    let mut said = || output.next().and_then(Result::ok).unwrap_or_default();
    assert_eq!(said(), "ready");
    let mut command = Command::new(&env.ctrace);
    command.args(["ui", "--live", "-f", "work", &target.pid().to_string()]);
    command.envs([("SUDO_UID", USER), ("SUDO_GID", USER)]);
    let (ctrace, _, page) = Running::start_piped(&mut command).expect("starts");
    let mut url = String::new();
    BufReader::new(page).read_line(&mut url).expect("an address");
    let (address, path) =
        url.trim().strip_prefix("http://").and_then(|url| url.split_once('/')).expect("a path");
    let address: SocketAddr = address.parse().expect("an address");
    let about = || -> Value {
        // Nothing is there before the first calls were read.
        let answer = get(address, &format!("/{path}api/about"));
        answer.map_or(Value::Null, |answer| serde_json::from_str(&answer).expect("JSON"))
    };
    let await_calls = |calls: u64| {
        let is_so = || about()["calls"] == calls;
        wait_until(&format!("{calls} calls are shown"), is_so).expect("they come");
    };
    let mut turns = |bytes: &str| {
        input.write_all(bytes.as_bytes()).expect("it reads");
        bytes.bytes().for_each(|_| assert_eq!(said(), "done"));
    };
    turns("x");
    await_calls(40);
    turns("yz");
    await_calls(120);
    assert_eq!(about()["live"]["has_ended"], false);
    let threads = threads(ctrace.pid());
    let is_root = |name: &str| threads.iter().any(|(of, user)| of == name && user == "0");
    let serving = ["timeline", "tokio-rt-worker"];
    assert!(is_root("session") && !serving.iter().any(|name| is_root(name)), "{threads:?}");
    drop(input);
    assert_eq!(target.wait(LIMIT).expect("it ends").shell_code(), 0);
    wait_until("the end is told", || about()["live"]["has_ended"] == true).expect("it is told");
    let about = about();
    assert_eq!((&about["calls"], &about["threads"][0]["calls"]), (&122.into(), &122.into()));
    let length = about["length_ns"].as_u64().expect("a length");
    let report = get(address, &format!("/{path}api/report?from=0&to={length}")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!((&report["calls"], &report["rows"][0]["name"]), (&122.into(), &"work".into()));
    ctrace.signal(Signal::INT).expect("it runs");
    let ended = ctrace.wait(LIMIT).expect("it ends");
    assert_eq!(ended.shell_code(), 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("122 calls in "), "{}", ended.stderr);
    assert!(ended.stderr.contains(", nothing lost"), "{}", ended.stderr);
}

/// Nobody looks at a page that shows nothing new, and it may be open for hours.
#[test]
fn an_error_of_the_session_is_told_at_once() {
    let env = or_skip!(gate::live(Link::Session));
    let target = env.targets.get(&program("turns.c")).expect("builds");
    let (target, input, output) = Running::start_piped(&mut Command::new(target)).expect("starts");
    let mut output = BufReader::new(output).lines();
    assert_eq!(output.next().and_then(Result::ok).as_deref(), Some("ready"));
    let mut command = Command::new(&env.ctrace);
    command.args(["ui", "--live", "-f", "work", &target.pid().to_string()]);
    let (mut ctrace, _, page) = Running::start_piped(&mut command).expect("starts");
    let mut url = String::new();
    BufReader::new(page).read_line(&mut url).expect("an address");
    let [guard] = look::children(ctrace.pid())[..] else { panic!("one child") };
    let guard = Pid::from_raw(guard).expect("a guard");
    kill_process(guard, Signal::KILL).expect("it runs");
    let is_told = || ctrace.said().contains("Ctrl-C ends the page");
    wait_until("the error is told", is_told).expect("it is told");
    assert!(ctrace.is_running(), "{}", ctrace.said());
    ctrace.signal(Signal::INT).expect("it runs");
    let ended = ctrace.wait(LIMIT).expect("it ends");
    assert_eq!(ended.shell_code(), 125, "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("guard").count(), 1, "{}", ended.stderr);
    drop(input);
    assert_eq!(target.wait(LIMIT).expect("it ends").shell_code(), 0);
}
