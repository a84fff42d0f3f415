//! Checks names made to harm a terminal, a spreadsheet, a browser, or any reader of ctrace's
//! output.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::look::wait_until;
use ctrace_tests::process::{Finished, run};
use ctrace_tests::targets::program;
use ctrace_tests::{daemon, gate, or_skip};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);
/// Length of a placeholder in the program.
const LENGTH: usize = "name_0_______________________________________".len();
/// The names of the functions.
const NAMES: [&[u8]; 8] = [
    b"=cmd|'/C calc'!A0",
    b"\x1b]0;pwned\x07\x1b[2J",
    b"</text><script>alert(1)</script>",
    b"x;+1;-2; @SUM(A1)",
    "\u{202e}rtl\u{2028}\u{feff}".as_bytes(),
    b"bad\xff\xfe\x80utf8",
    "\u{fffe}\u{ffff}\u{9b}31m".as_bytes(),
    b"a,\"b\"\r\n\t=c",
];

/// Builds the program with these names, and a name of its own that is no better.
fn build(env: &Env, folder: &Path) -> PathBuf {
    let built = env.targets.get(&program("hostile.c")).expect("targets build");
    let mut bytes = std::fs::read(built).expect("a file");
    for (number, name) in NAMES.iter().enumerate() {
        let mut placeholder = format!("name_{number}").into_bytes();
        placeholder.resize(LENGTH, b'_');
        let mut name = name.to_vec();
        name.resize(LENGTH, 0);
        let found: Vec<usize> =
            (0..bytes.len() - LENGTH).filter(|at| bytes[*at..].starts_with(&placeholder)).collect();
        assert!(!found.is_empty(), "the program has no {number}");
        found.iter().for_each(|at| bytes[*at..at + LENGTH].copy_from_slice(&name));
    }
    let path = folder.join(std::ffi::OsStr::from_bytes(b"=ho\x1b[5mstile"));
    let written = folder.join("written");
    std::fs::write(&written, bytes).expect("written");
    // A concurrently forked child could hold the file open for writing: then it cannot be run.
    let copied = run(Command::new("cp").args([&written, &path]), LIMIT).expect("cp runs");
    assert_eq!(copied.shell_code(), 0, "{}", copied.stderr);
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("ours");
    path
}

fn ctrace(env: &Env, folder: &Path, arguments: &[&str], program: Option<&Path>) -> Finished {
    let mut command = Command::new(&env.ctrace);
    command.args(arguments).args(program).current_dir(folder).env("RUST_BACKTRACE", "0");
    run(&mut command, LIMIT).expect("runs")
}

/// The program, with a recording of it.
struct Recorded {
    folder: TempDir,
    program: PathBuf,
    /// The output on stderr.
    said: String,
}

fn record(env: &Env) -> Recorded {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(env, folder.path());
    let arguments = ["record", "-o", "t.ctrace", "-f", "*", "--"];
    let finished = ctrace(env, folder.path(), &arguments, Some(&program));
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    Recorded { folder, program, said: finished.stderr }
}

/// Returns whether a terminal or a reader would misread the character.
fn is_harmful(c: char) -> bool {
    c.is_control() && c != '\n'
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{feff}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

fn check_harmless(text: &str, of: &str) {
    let found = text.char_indices().find(|(_, c)| is_harmful(*c));
    assert!(found.is_none(), "{of}: {found:?} in {text:?}");
}

#[test]
fn no_name_reaches_the_terminal_as_it_is() {
    let env = or_skip!(gate::live(Link::Session));
    let Recorded { folder, program, said } = record(&env);
    for (arguments, on_program) in [
        (&["list"][..], true),
        (&["list", "--json"], true),
        (&["list", "-f", "\x1b[31mnosuch"], true),
        (&["run", "-f", "*", "--"], true),
        (&["run", "-f", "*", "--view", "tree", "--"], true),
        (&["run", "-f", "*", "--format", "json", "--"], true),
        (&["run", "-f", "\x1b[31mnosuch", "--"], true),
        (&["run", "-f", "*", "-v", "--"], true),
        (&["report", "t.ctrace"], false),
        (&["report", "t.ctrace", "--view", "threads"], false),
        (&["report", "t.ctrace", "--view", "timeline"], false),
        (&["report", "t.ctrace", "--view", "calls"], false),
        (&["report", "t.ctrace", "--format", "csv"], false),
        (&["report", "t.ctrace", "-f", "\x1b[31mnosuch"], false),
        (&["report", "\x1b[31mnosuch"], false),
        (&["\x1b[31mnosuch"], false),
        (&["diff", "t.ctrace", "t.ctrace"], false),
    ] {
        let finished = ctrace(&env, folder.path(), arguments, on_program.then_some(&program));
        check_harmless(&finished.stdout, &format!("{arguments:?}"));
        check_harmless(&finished.stderr, &format!("{arguments:?}"));
        assert!(!finished.stderr.contains("a mistake in ctrace"), "{}", finished.stderr);
    }
    check_harmless(&said, "record");
}

#[test]
fn no_export_takes_a_name_for_anything_else() {
    let env = or_skip!(gate::live(Link::Session));
    let Recorded { folder, .. } = record(&env);
    let export = |format: &str| {
        let finished =
            ctrace(&env, folder.path(), &["export", "t.ctrace", "--format", format], None);
        assert_eq!(finished.shell_code(), 0, "{format}: {}", finished.stderr);
        finished.stdout
    };
    for format in ["chrome", "firefox", "speedscope", "frame"] {
        let text = export(format);
        serde_json::from_str::<serde_json::Value>(&text)
            .unwrap_or_else(|e| panic!("{format}: {e}"));
        check_harmless(&text, format);
    }
    for line in export("jsonl").lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("JSON");
        check_harmless(line, "jsonl");
    }
    check_harmless(&export("folded"), "folded");
    let drawn = export("flamegraph");
    // The viewer's own script has tabs in it.
    check_harmless(&drawn.replace('\t', " "), "flamegraph");
    assert!(!drawn.contains("<script>alert") && drawn.contains("&lt;script&gt;alert"));
    let report = ctrace(&env, folder.path(), &["report", "t.ctrace", "--format", "csv"], None);
    for (text, of) in [(export("csv"), "csv"), (report.stdout, "report")] {
        check_harmless(&text, of);
        let mut seen = 0;
        // No name contains a line feed, nor a quote before a comma.
        for cell in text.lines().flat_map(|line| line.split([',', ';'])) {
            let cell = cell.trim_start_matches('"').trim_start();
            assert!(!cell.starts_with(['=', '+', '-', '@']), "{of}: {cell:?}");
            seen += usize::from(cell.starts_with("'="));
        }
        assert!(seen > 0, "{of}: {text}");
    }
}

#[test]
fn no_name_reaches_the_log_of_the_daemon_as_it_is() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = tempfile::tempdir().expect("a folder");
    let built = build(&env, folder.path());
    let place = daemon::folder(&env, &[("spin", &program("spin.c"))]).expect("targets build");
    // The name is a glob, since a configuration has no such characters.
    let copy = place.path().join(built.file_name().expect("a name"));
    std::fs::copy(place.path().join("spin"), &copy).expect("copied");
    let target = "[[target]]\nid = \"spin\"\nexe = \"DIR/=ho*\"\nfunctions = \"step\"\ninterval = \
                  \"1s\"\n[[target]]\nid = \"none\"\nexe = \"DIR/spin\"\nfunctions = \"\\u001b[31m\"\n";
    let daemon = daemon::Daemon::start(&env, place, target).expect("the daemon starts");
    let mut command = Command::new(&copy);
    let spin =
        ctrace_tests::process::Running::start_ready(command.args(["0", "500"])).expect("runs");
    let _none = daemon.target("spin", &["0", "500"]).expect("runs");
    daemon.wait_until_traced(spin.pid()).expect("traced");
    for arguments in [&["targets"][..], &["report"], &["--json", "targets"], &["detach", "\x1b[5m"]]
    {
        let finished = daemon.ctl(arguments).expect("runs");
        check_harmless(&finished.stdout, &format!("{arguments:?}"));
        check_harmless(&finished.stderr, &format!("{arguments:?}"));
    }
    let told = || daemon.ask(&["targets"]).expect("answers").to_string();
    wait_until("it is told", || told().contains("no function")).expect("told");
    let (finished, _dir) = daemon.end().expect("ends");
    check_harmless(&finished.stdout, "reports");
    check_harmless(&finished.stderr, "log");
}
