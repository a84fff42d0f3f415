//! Tests the daemon's socket, its recordings, and a full disk.

use ctrace_tests::daemon::{Daemon, check_reports, folder, reports};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::look::wait_until;
use ctrace_tests::process::{Running, run};
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use std::fs::{Permissions, read_to_string, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const HICCUP: &str = "[[target]]\nid = \"hiccup\"\nexe = \"DIR/hiccup\"\nfunctions = [\"quick\", \
    \"slow\"]\n";
const LIMIT: Duration = Duration::from_secs(120);

fn start(env: &Env, targets: &str) -> Daemon {
    let (spin, hiccup) = (program("spin.c"), program("hiccup.c"));
    let dir = folder(env, &[("spin", &spin), ("hiccup", &hiccup)]).expect("targets build");
    Daemon::start(env, dir, targets).expect("the daemon starts")
}

fn recordings(daemon: &Daemon) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(daemon.path("recordings")).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// Returns a recording as `ctrace report` shows it.
fn shown(env: &Env, file: &str) -> serde_json::Value {
    let mut command = Command::new(&env.ctrace);
    let finished = run(command.args(["report", "--format", "json", file]), LIMIT).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).expect("JSON")
}

#[test]
fn commands_do_what_they_say() {
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(&env, &format!("{HICCUP}interval = \"60m\"\n"));
    let hiccup = daemon.target("hiccup", &[]).expect("starts");
    let spin = daemon.target("spin", &["0", "500"]).expect("starts");
    let (h, s) = (i64::from(hiccup.pid()), i64::from(spin.pid()));
    daemon.wait_until_traced(hiccup.pid()).expect("traced");
    let status = daemon.ask(&["status"]).expect("answers");
    assert_eq!((&status["processes"], &status["pid"]), (&1.into(), &daemon.pid().into()));

    daemon.ask(&["attach", &s.to_string(), "-f", "step"]).expect("attaches");
    assert_eq!(daemon.traced().len(), 2, "it is traced by then");
    let by_hand = format!("pid-{s}");
    wait_until("calls are seen", || {
        let report = daemon.ask(&["report", &by_hand]).expect("answers");
        report["reports"][0]["functions"][0]["calls"].as_u64().unwrap_or(0) > 100
    })
    .expect("calls");
    daemon.ask(&["detach", &s.to_string()]).expect("detaches");
    assert_eq!(daemon.traced(), [h], "it is let go by then");

    let recorded = daemon.ask(&["record", "hiccup", "-d", "1"]).expect("records");
    let report = shown(&env, recorded["file"].as_str().expect("a file"));
    assert!(ctrace_tests::daemon::calls(&report, "quick") > 20, "{report}");

    daemon.ask(&["detach", "hiccup"]).expect("detaches");
    wait_until("it is let go", || daemon.traced().is_empty()).expect("gone");
    daemon.ask(&["attach", &h.to_string(), "--target", "hiccup"]).expect("attaches");
    daemon.wait_until_traced(hiccup.pid()).expect("traced");

    let shown = daemon.ctl(&["targets"]).expect("answers").stdout;
    assert!(shown.contains("hiccup") && shown.contains(&h.to_string()), "{shown}");
    let report = daemon.ctl(&["report", "hiccup"]).expect("answers").stdout;
    assert!(report.contains("=== target hiccup"), "{report}");
    for (wrong, part) in [
        (&["report", "nobody"][..], "no target `nobody`"),
        (&["detach", "1"], "is not traced"),
        (&["attach", "4194303", "-f", "x"], "no process"),
        (&["attach", &h.to_string(), "-f", "x"], "traced already"),
        (&["attach", &s.to_string(), "-f", "nosuch"], "nosuch"),
        (&["attach", &daemon.pid().to_string(), "-f", "main"], "does not trace itself"),
    ] {
        let refused = daemon.ctl(wrong).expect("runs");
        assert_eq!(refused.shell_code(), 125, "{wrong:?}: {}", refused.stdout);
        assert!(refused.stderr.contains(part), "{wrong:?}: {}", refused.stderr);
    }
}

/// A process attached by hand for a target follows that target's settings, also after a change.
#[test]
fn reloads_reach_what_was_attached_by_hand() {
    let env = or_skip!(gate::live(Link::Session));
    let target = "[[target]]\nid = \"hand\"\nexe = \"DIR/nothing\"\ninterval = \"60m\"\n";
    let daemon = start(&env, &format!("{target}functions = \"slow\"\n"));
    let hiccup = daemon.target("hiccup", &[]).expect("starts");
    let pid = hiccup.pid().to_string();
    daemon.ask(&["attach", &pid, "--target", "hand"]).expect("attaches");
    let session = || daemon.sessions().get(&hiccup.pid()).copied();
    let first = session().expect("traced");
    daemon.ask(&["reload"]).expect("sound");
    assert_eq!(session(), Some(first), "nothing changed");
    daemon.configure(&format!("{target}functions = \"quick\"\n")).expect("written");
    daemon.ask(&["reload"]).expect("sound");
    wait_until("it is traced anew", || session().is_some_and(|id| id > first)).expect("traced");
    wait_until("calls are seen", || {
        let report = daemon.ask(&["report", &pid]).expect("answers");
        ctrace_tests::daemon::calls(&report["reports"][0], "quick") > 10
    })
    .expect("calls");
    // One starts while the previous session still ends.
    for functions in ["slow", "quick"] {
        daemon.configure(&format!("{target}functions = \"{functions}\"\n")).expect("written");
        daemon.ask(&["reload"]).expect("sound");
    }
    wait_until("it is traced again", || session().is_some()).expect("traced");
    daemon.configure("").expect("written");
    daemon.ask(&["reload"]).expect("sound");
    std::thread::sleep(Duration::from_millis(500));
    // The last session may still begin.
    wait_until("what was asked for by hand stays", || session().is_some()).expect("traced");
    daemon.ask(&["detach", &pid]).expect("detaches");
    daemon.ask(&["reload"]).expect("sound");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(session(), None, "it was let go");
}

/// A recording that a client waits for is complete up to the daemon's end.
#[test]
fn a_recording_ends_with_the_daemon() {
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(&env, &format!("{HICCUP}interval = \"60m\"\n"));
    let hiccup = daemon.target("hiccup", &[]).expect("starts");
    daemon.wait_until_traced(hiccup.pid()).expect("traced");
    let mut record = daemon.ctl_command(&["record", "hiccup", "-d", "10m"]);
    let asker = Running::start(&mut record).expect("starts");
    wait_until("it records", || recordings(&daemon).len() == 1).expect("a recording");
    std::thread::sleep(Duration::from_secs(2));
    let file = recordings(&daemon).remove(0);
    let (_, _dir) = daemon.end().expect("ends");
    let told = asker.wait(LIMIT).expect("ends as well");
    assert!(told.stdout.contains(".ctrace"), "{}{}", told.stdout, told.stderr);
    let mut command = Command::new(&env.ctrace);
    let finished = run(command.arg("report").arg(&file), LIMIT).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    assert!(finished.stdout.contains("quick"), "{}", finished.stdout);
    let all = finished.stdout + &finished.stderr;
    assert!(!all.contains("was not ended"), "{all}");
}

/// Rings with few events are read every few seconds only. A client's report still contains
/// everything.
#[test]
fn reports_out_of_turn_are_up_to_date() {
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(&env, &format!("{HICCUP}interval = \"60m\"\n"));
    let hiccup = daemon.target("hiccup", &[]).expect("starts");
    daemon.wait_until_traced(hiccup.pid()).expect("traced");
    std::thread::sleep(Duration::from_secs(6));
    let told = || {
        let reply = daemon.ask(&["report", "hiccup"]).expect("answers");
        let report = reply["reports"][0].clone();
        (
            report["end_ns"].as_u64().expect("a number"),
            ctrace_tests::daemon::calls(&report, "quick"),
        )
    };
    let mut before = told();
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(500));
        let now = told();
        assert!(now.0 >= before.0 + 400_000_000 && now.1 > before.1, "{before:?}, then {now:?}");
        before = now;
    }
}

/// Repeated looks miss nothing at the end of an interval, and do not change the target's reports.
#[test]
fn looks_lie_end_to_end() {
    let env = or_skip!(gate::live(Link::Session));
    let config = format!("{HICCUP}interval = \"700ms\"\noutput = \"DIR/out.jsonl\"\n");
    let daemon = start(&env, &config);
    let hiccup = daemon.target("hiccup", &[]).expect("starts");
    daemon.wait_until_traced(hiccup.pid()).expect("traced");
    let look = |since: Option<u64>| {
        let since = since.map_or(String::new(), |since| format!(",\"since_ns\":{since}"));
        let line =
            format!("{{\"v\":1,\"do\":\"report\",\"target\":\"hiccup\",\"full\":true{since}}}");
        daemon.request(&line).expect("answers")["reports"].as_array().cloned().expect("reports")
    };
    let number = |report: &serde_json::Value, key: &str| report[key].as_u64().expect("a number");
    let mut last = look(None).pop().expect("a look");
    let mut ended = 0;
    while ended < 3 {
        std::thread::sleep(Duration::from_millis(250));
        for report in look(Some(number(&last, "end_ns"))) {
            let (start, end) = (number(&report, "start_ns"), number(&report, "end_ns"));
            if start != number(&last, "start_ns") {
                assert_eq!(start, number(&last, "end_ns"), "something between is missing");
                ended += 1;
            }
            assert!(end > number(&last, "end_ns"));
            let functions = report["functions"].as_array().expect("functions").len();
            assert_eq!(report["daemon"]["spent_ns"].as_array().map(Vec::len), Some(functions));
            assert!(report["daemon"]["cpu_ns"].is_u64(), "{report}");
            assert!(report["histograms"].is_object(), "{report}");
            last = report;
        }
    }
    let plain = daemon.ask(&["report", "hiccup"]).expect("answers");
    assert!(plain["reports"][0]["histograms"].is_null(), "{plain}");
    let (_, dir) = daemon.end().expect("ends");
    let all = reports(&read_to_string(dir.path().join("out.jsonl")).expect("there"));
    let all = all.expect("whole lines");
    check_reports(&all).expect("end to end");
    assert!(all.iter().all(|report| report["histograms"].is_null()));
}

/// The socket's mode keeps strangers out. If the mode does not, the daemon does.
#[test]
fn strangers_are_refused() {
    const NOBODY: u32 = 65534;
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(&env, HICCUP);
    set_permissions(daemon.dir.path(), Permissions::from_mode(0o755)).expect("ours");
    let ctrace = daemon.path("ctrace");
    std::fs::copy(&env.ctrace, &ctrace).expect("copied");
    let ask = || {
        let mut command = Command::new(&ctrace);
        command.args(["ctl", "status", "--socket"]).arg(daemon.socket());
        run(command.uid(NOBODY).gid(NOBODY), LIMIT).expect("runs")
    };
    let refused = ask();
    assert_eq!(refused.shell_code(), 125);
    assert!(refused.stderr.contains("root may ask"), "{}", refused.stderr);
    set_permissions(daemon.socket(), Permissions::from_mode(0o666)).expect("ours");
    let refused = ask();
    assert_eq!(refused.shell_code(), 125);
    assert!(refused.stderr.contains("user 65534 may not ask"), "{}", refused.stderr);
    assert_eq!(daemon.ctl(&["status"]).expect("runs").shell_code(), 0);
}

/// Garbage at the socket is answered, and harms nobody.
#[test]
fn garbage_is_answered() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(&env, HICCUP);
    for garbage in [&b"hello\n"[..], b"{}\n", b"{\"v\":9,\"do\":\"status\"}\n", b"\xff\xfe\n"] {
        let mut stream = UnixStream::connect(daemon.socket()).expect("listens");
        stream.write_all(garbage).expect("written");
        stream.shutdown(std::net::Shutdown::Write).expect("ours");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        assert!(answer.contains("\"ok\":false"), "{answer}");
    }
    let mut stream = UnixStream::connect(daemon.socket()).expect("listens");
    let long = vec![b'x'; 1 << 20];
    // It may hang up in the middle.
    let _ = stream.write_all(&long);
    assert_eq!(daemon.ctl(&["status"]).expect("runs").shell_code(), 0);
}

/// A slow call leaves a recording that contains it. Reports go on, and the number of recordings is
/// limited.
#[test]
fn slow_calls_are_kept() {
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(
        &env,
        &format!(
            "recordings_keep = 2\n{HICCUP}interval = \"500ms\"\noutput = \"DIR/out.jsonl\"\nslow = \
             \"100ms\"\nslow_functions = \"slow\"\nslow_keep = \"3s\"\nslow_pause = \"1s\"\n"
        ),
    );
    let hiccup = daemon.target("hiccup", &[]).expect("starts");
    daemon.wait_until_traced(hiccup.pid()).expect("traced");
    let mut seen = std::collections::HashSet::new();
    wait_until("there are three recordings", || {
        seen.extend(recordings(&daemon));
        seen.len() >= 3
    })
    .expect("recorded");
    hiccup.signal(Signal::TERM).expect("runs");
    wait_until("it is let go", || daemon.traced().is_empty()).expect("gone");
    std::thread::sleep(Duration::from_millis(500));
    let kept = recordings(&daemon);
    assert!((1..=2).contains(&kept.len()), "{kept:?}");
    for file in &kept {
        let report = shown(&env, file.to_str().expect("text"));
        assert!(ctrace_tests::daemon::calls(&report, "slow") >= 1, "{report}");
        assert!(ctrace_tests::daemon::calls(&report, "quick") > 100, "{report}");
        let longest = report["functions"].as_array().expect("functions").iter();
        let longest = longest.filter_map(|f| f["max_ns"].as_u64()).max();
        assert!(longest > Some(100_000_000), "{report}");
    }
    let (finished, dir) = daemon.end().expect("ends");
    assert!(finished.stderr.contains("target hiccup: slow took 1"), "{}", finished.stderr);
    let all = reports(&read_to_string(dir.path().join("out.jsonl")).expect("there"));
    let all = all.expect("whole lines");
    check_reports(&all).expect("end to end");
    let sum: u64 = all.iter().map(|report| ctrace_tests::daemon::calls(report, "slow")).sum();
    assert!(sum >= 3, "{sum}");
}

/// A full disk is reported, its losses are counted, and it is over when there is room.
#[test]
fn a_full_disk_is_survived() {
    let env = or_skip!(gate::live(Link::Session));
    let hiccup = program("hiccup.c");
    let dir = folder(&env, &[("hiccup", &hiccup)]).expect("targets build");
    let disk = dir.path().join("disk");
    std::fs::create_dir(&disk).expect("made");
    let mounted = Mounted::new(&disk);
    let daemon = Daemon::start(
        &env,
        dir,
        &format!("{HICCUP}interval = \"100ms\"\noutput = \"DIR/disk/out.jsonl\"\n"),
    )
    .expect("starts");
    let filler = disk.join("filler");
    // Fills all but a little.
    std::fs::write(&filler, vec![0; 200 << 10]).expect("written");
    let _target = daemon.target("hiccup", &[]).expect("starts");
    let lost = || daemon.ask(&["status"]).expect("answers")["reports_lost"].as_u64().unwrap_or(0);
    wait_until("reports are lost", || lost() >= 3).expect("lost");
    std::fs::remove_file(&filler).expect("removed");
    let out = disk.join("out.jsonl");
    let before = std::fs::metadata(&out).expect("there").len();
    wait_until("reports go on", || std::fs::metadata(&out).is_ok_and(|m| m.len() > before + 4096))
        .expect("go on");
    let (finished, _dir) = daemon.end().expect("ends");
    let text = read_to_string(&out).expect("there");
    drop(mounted);
    let all = reports(&text).expect("whole lines");
    assert!(all.last().expect("reports")["daemon"]["reports_lost"].as_u64() >= Some(3));
    let told = |part: &str| finished.stderr.lines().filter(|line| line.contains(part)).count();
    let (failures, ends) = (told("cannot write reports to"), told("can be written to"));
    // Where a long report has no room, a shorter one may have.
    assert!((1..=2).contains(&failures) && ends == failures, "{}", finished.stderr);
}

/// A small file system, removed on drop.
struct Mounted(PathBuf);

impl Mounted {
    fn new(place: &std::path::Path) -> Self {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=256k", "ctrace-test"]).arg(place);
        assert_eq!(run(&mut command, LIMIT).expect("mount runs").shell_code(), 0);
        Self(place.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A failed test has reported itself already.
        let _ = run(Command::new("umount").arg("-l").arg(&self.0), LIMIT);
    }
}
