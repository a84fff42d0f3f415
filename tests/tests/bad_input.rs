//! Bad input gives one line on stderr that starts `ctrace:`, and the right exit code. Nothing is
//! attached.

use ctrace_tests::env::Link;
use ctrace_tests::install::install;
use ctrace_tests::process::{Finished, run};
use ctrace_tests::targets::{Targets, program};
use ctrace_tests::{gate, or_skip};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn ctrace(binary: &Path, arguments: &[&str]) -> Finished {
    run(Command::new(binary).args(arguments), Duration::from_secs(60)).expect("ctrace ends")
}

/// Fails unless ctrace printed one line with all these words and exited with this code.
#[track_caller]
fn refused(binary: &Path, arguments: &[&str], code: i32, words: &[&str]) {
    let finished = ctrace(binary, arguments);
    let shown = format!(
        "ctrace {}\nexit {}\nstdout: {}\nstderr: {}",
        arguments.join(" "),
        finished.shell_code(),
        finished.stdout,
        finished.stderr
    );
    assert_eq!(finished.shell_code(), code, "{shown}");
    let lines: Vec<&str> = finished.stderr.lines().collect();
    assert!(lines.iter().all(|line| !line.contains("a mistake in ctrace")), "{shown}");
    assert!(lines.first().is_some_and(|line| line.starts_with("ctrace:")), "{shown}");
    assert_eq!(lines.len(), 1, "more than one line\n{shown}");
    let message = finished.stderr.to_lowercase();
    for word in words {
        assert!(message.contains(&word.to_lowercase()), "`{word}` is not in it\n{shown}");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("path is text")
}

#[test]
fn a_command_that_is_not_there() {
    let binary = or_skip!(gate::live(Link::Perf)).ctrace;
    refused(
        &binary,
        &["run", "-f", "main", "--", "no-such-command-here"],
        127,
        &["no-such-command"],
    );
    refused(&binary, &["run", "-f", "main", "--", "/nonexistent/x"], 127, &["/nonexistent/x"]);
}

#[test]
fn a_command_that_cannot_be_executed() {
    let binary = or_skip!(gate::live(Link::Perf)).ctrace;
    let dir = tempfile::tempdir().expect("temporary directory");
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "no program").expect("write");
    refused(&binary, &["run", "-f", "main", "--", text(&plain)], 126, &["plain"]);
    refused(&binary, &["run", "-f", "main", "--", text(dir.path())], 126, &[]);
}

#[test]
fn processes_that_cannot_be_traced() {
    let binary = or_skip!(gate::live(Link::Perf)).ctrace;
    refused(&binary, &["attach", "4194303", "-f", "main"], 125, &["4194303", "no such process"]);
    refused(&binary, &["attach", "2", "-f", "main"], 125, &["kernel thread"]);
}

#[test]
fn functions_that_are_not_there() {
    let env = or_skip!(gate::live(Link::Perf));
    let path = env.targets.get(&program("counts.c")).expect("builds");
    let command = |glob| ["run", "-f", glob, "--", text(&path), "10"];
    // The line names the searched object and the closest name.
    refused(&env.ctrace, &command("pingg"), 125, &["pingg", "counts", "ping"]);
    let words = ["`/wor[k/` is no regular expression", "at character 4: `[`"];
    refused(&env.ctrace, &command("/wor[k/"), 125, &words);
    refused(&env.ctrace, &["run", "--", text(&path), "10"], 125, &["-f"]);
    refused(&env.ctrace, &["run", "-u", "no:such", "--", text(&path), "10"], 125, &["no:such"]);
}

#[test]
fn conditions_that_cannot_be_asked() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("call_values.c")).expect("builds");
    for (options, words) in [
        (&["--where", "a > 5"][..], &["applies to no function", "--where 'FUNCTION: a > 5'"][..]),
        (&["--where", "deep: depth > 500"], &["500 is no value of `depth`, which is u8"]),
        (&["--where", "deep: dept > 5"], &["no parameter `dept`; there are depth"]),
        (&["--where", "deep: depth == \"x\""], &["`depth` is u8, and is not compared with a text"]),
        (&["-f", "deep", "--where", "dep: depth > 5"], &["dep", "deep"]),
        (
            &["--where", "deep: depth > 5", "--where", "dee*: depth < 3"],
            &["`depth > 5` cannot be asked: deep: it has another one, `depth < 3`"],
        ),
        (&["--where", "deep: depth > 5", "--budget", "1%"], &["--where", "--budget"]),
        (&["--where", "deep: depth = 5"], &["one `=`; write =="]),
    ] {
        let arguments = [&["run"], options, &["--", text(&path), "1"]].concat();
        refused(&env.ctrace, &arguments, 125, words);
    }
}

#[test]
fn a_stripped_program() {
    let env = or_skip!(gate::live(Link::Perf));
    let path = env.targets.get(&program("counts.c").stripped()).expect("builds");
    let arguments = ["run", "-f", "leaf", "--", text(&path), "10"];
    refused(&env.ctrace, &arguments, 125, &["stripped"]);
}

#[test]
fn more_functions_than_the_limit() {
    let env = or_skip!(gate::live(Link::Perf));
    let path = env.targets.many_functions(100_000).expect("builds");
    refused(
        &env.ctrace,
        &["run", "-f", "f*", "--", text(&path), "0"],
        125,
        &["limit of 10000", "--max-functions"],
    );
}

#[test]
fn a_32_bit_program() {
    let binary = or_skip!(gate::live(Link::Perf)).ctrace;
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("thirty-two");
    // An ELF header for i386 with nothing behind it.
    let mut header = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0\x01\0\0\0".to_vec();
    header.resize(52, 0);
    std::fs::write(&path, header).expect("write");
    refused(&binary, &["list", text(&path)], 125, &["32-bit"]);
}

#[test]
fn files_that_are_no_or_broken_elf() {
    let binary = or_skip!(gate::binary());
    let dir = tempfile::tempdir().expect("temporary directory");
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "no program").expect("write");
    refused(&binary, &["list", text(&plain)], 125, &["plain", "ELF"]);
    refused(&binary, &["list", "/nonexistent/file"], 125, &["/nonexistent/file"]);
    let broken = dir.path().join("broken");
    let whole = std::fs::read(Targets::on_host().get(&program("counts.c")).expect("builds"));
    std::fs::write(&broken, &whole.expect("read")[..700]).expect("write");
    refused(&binary, &["list", text(&broken)], 125, &["broken"]);
}

#[test]
fn a_full_disk_under_the_report() {
    let env = or_skip!(gate::live(Link::Perf));
    let path = env.targets.get(&program("counts.c")).expect("builds");
    let arguments = ["run", "-f", "leaf", "-o", "/dev/full", "--", text(&path), "10"];
    refused(&env.ctrace, &arguments, 125, &["/dev/full", "space"]);
}

#[test]
fn command_lines_that_make_no_sense() {
    let binary = or_skip!(gate::binary());
    for arguments in [
        &["attach"][..],
        &["attach", "notanumber", "-f", "x"],
        &["run", "-f", "x"],
        &["run", "--format", "yaml", "-f", "x", "--", "true"],
        &["--no-such-option"],
        &["nosuchcommand"],
    ] {
        let finished = ctrace(&binary, arguments);
        assert_eq!(finished.shell_code(), 125, "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.starts_with("ctrace:"), "{arguments:?}: {}", finished.stderr);
    }
}

/// What only a trace can tell is no option of a report, and the line says of what it is one.
#[test]
fn waits_are_for_recordings() {
    let binary = or_skip!(gate::binary());
    for option in ["--cpu", "--wakers"] {
        refused(
            &binary,
            &["report", option, "nowhere.ctrace"],
            125,
            &["`ctrace record`", "--view wakers"],
        );
    }
}

#[test]
fn numbers_that_make_no_sense() {
    let binary = or_skip!(gate::binary());
    for (option, value, word) in [
        ("--ring-size", "5", "from 4KiB to 1GiB"),
        ("--ring-size", "2GiB", "from 4KiB to 1GiB"),
        ("--budget", "500%", "up to 100%"),
        ("--max-slowdown", "inf", "20%"),
        ("--top", "0", "1 or more"),
        ("--depth", "0", "1 or more"),
        ("--max-functions", "0", "1 or more"),
        ("--center", "60", "below 50"),
        ("--interval", "0", "at least 1ms"),
        ("--duration", "0", "at least 1ms"),
    ] {
        let arguments = ["attach", "4194303", "-f", "main", option, value];
        refused(&binary, &arguments, 125, &[option, value, word]);
    }
    for (options, word) in [
        (&["--rotate", "0"][..], "at least 1MiB"),
        (&["--max-size", "1"], "at least 1MiB"),
        (&["--rotate", "1MiB", "--keep", "0"], "1 or more"),
    ] {
        refused(&binary, &[&["record", "-p", "4194303"], options].concat(), 125, &[word]);
    }
}

#[test]
fn a_name_that_no_process_has() {
    let binary = or_skip!(gate::live(Link::Perf)).ctrace;
    for command in [
        &["attach"][..],
        &["attach", "-p"],
        &["list", "-p"],
        &["record", "-p"],
        &["ctl", "attach"],
        &["doctor", "--heal"],
    ] {
        let arguments = [command, &["ctrace-test-of-no-process"]].concat();
        let words = ["no process is named `ctrace-test-of-no-process`", "give its pid"];
        refused(&binary, &arguments, 125, &words);
    }
    let none = ["attach", "-f", "x", "ctrace-test.service"];
    refused(&binary, &none, 125, &["no process is in the unit", "systemctl status"]);
    refused(&binary, &["attach", "--exe", "/no/program"], 125, &["running /no/program"]);
    refused(&binary, &["attach", "0"], 125, &["no process has such an id"]);
    refused(&binary, &["attach"], 125, &["PROCESS"]);
}

#[test]
fn a_recording_of_nothing() {
    let binary = or_skip!(gate::binary());
    for options in [&["-f", "x"][..], &["--budget", "1%"], &["-o", "/nonexistent/file", "--"]] {
        let arguments = [&["record"], options].concat();
        refused(&binary, &arguments, 125, &["`-p PROCESS`", "`-- COMMAND`"]);
    }
}

/// Without rights, the line names the missing capability.
#[test]
fn without_rights() {
    let env = or_skip!(gate::live(Link::Perf));
    let path = env.targets.get(&program("counts.c")).expect("builds");
    // Nobody must be able to reach the files.
    let dir = tempfile::tempdir().expect("temporary directory");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let copies = [(&env.ctrace, dir.path().join("ctrace")), (&path, dir.path().join("counts"))];
    for (from, to) in &copies {
        install(&std::fs::read(from).expect("read"), to);
    }
    // What probes on a whole library would cost does not matter then.
    for functions in ["leaf", "*@libc.so.6"] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command.arg(&copies[0].1).args(["run", "-f", functions, "--max-functions", "10000", "--"]);
        command.arg(&copies[1].1).arg("10");
        let finished = run(&mut command, Duration::from_secs(30)).expect("setpriv");
        assert_eq!(finished.shell_code(), 125, "{}", finished.stderr);
        assert!(finished.stderr.starts_with("ctrace: no permission"), "{}", finished.stderr);
        assert!(finished.stderr.contains("CAP_"), "{}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
        assert_eq!(finished.stdout, "", "the target ran");
    }
}

#[test]
fn values_that_cannot_be_read() {
    let env = or_skip!(gate::live(Link::Session));
    let (binary, target) =
        (&env.ctrace, env.targets.get(&program("call_values.c")).expect("builds"));
    let run = |option: &str, asked: &str, words: &[&str]| {
        refused(binary, &["run", option, asked, "--", text(&target)], 125, words);
    };
    run("--arg", "narrow: 0:int", &["`int` is no type", "u32"]);
    run("--arg", "narrow: 0:u8, 0:i8", &["`arg0` is asked for twice"]);
    run("--arg", "narrow: 6:u8", &["s0", "on the stack"]);
    run("--arg", "mixed: 0:f64", &["vector register"]);
    run("--ret", "mixed: f64", &["xmm0"]);
    run("--arg", "narrow", &["FUNCTION: POS:TYPE"]);
    run("--arg", "no_such_function: 0:u8", &["no_such_function"]);
    let slots: Vec<String> = (0..13).map(|slot| format!("s{slot}:u8")).collect();
    run("--arg", &format!("narrow: {}", slots.join(", ")), &["at most 12 values"]);
    // Two patterns that match the same function.
    let both = ["run", "--arg", "n*: 0:u8", "--arg", "narrow: 0:i8", "--", text(&target)];
    refused(binary, &both, 125, &["`narrow`", "`arg0` is asked for twice"]);
}
