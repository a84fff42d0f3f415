//! Tests the surroundings of ctrace and its target: signal state, namespaces.

use ctrace_tests::env::Link;
use ctrace_tests::look;
use ctrace_tests::process::{Running, run};
use ctrace_tests::targets::program;
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// Parses the printed masks, without the two signals that glibc reserves and changes when threads
/// are made.
fn masks(printed: &str) -> Vec<u64> {
    const GLIBC: u64 = 1 << 31 | 1 << 32;
    let masks = printed.lines().filter_map(|line| line.split_whitespace().last());
    masks.map(|hex| u64::from_str_radix(hex, 16).expect("a mask") & !GLIBC).collect()
}

/// The command's signal mask and ignored signals are the same as without ctrace.
#[test]
fn signal_state_is_handed_on() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("signals.c")).expect("builds");
    let given: [&[&str]; 4] = [
        &["--default-signal"],
        &["--ignore-signal=PIPE", "--block-signal=USR1"],
        &["--default-signal=PIPE", "--block-signal=PIPE", "--block-signal=TERM"],
        &["--ignore-signal=INT", "--ignore-signal=CHLD"],
    ];
    for options in given {
        let with = |command: &[&Path]| {
            let mut env = Command::new("env");
            let finished = run(env.args(options).args(command), LIMIT).expect("env");
            assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
            masks(&finished.stdout)
        };
        let alone = with(&[&path]);
        assert_eq!(alone.len(), 2);
        let words = ["run", "-f", "show", "-o", "/dev/null", "--"].map(Path::new);
        let traced: Vec<&Path> =
            std::iter::once(&*env.ctrace).chain(words).chain([&*path]).collect();
        assert_eq!(with(&traced), alone, "{options:?}");
    }
}

/// Runs `unshare` with the namespaces of a container. Its only child runs the script.
fn contained(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args([
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--mount",
        "sh",
        "-c",
        script,
    ]);
    command
}

/// The target is found by its id here, and its file through its process.
#[test]
fn a_target_in_a_container_is_traced() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("spin.c")).expect("builds");
    let folder = tempfile::tempdir().expect("a folder");
    // A file that exists in the container only.
    let script = format!(
        "mount -t tmpfs none {0} && cp {1} {0}/contained && exec {0}/contained 0 1000",
        folder.path().display(),
        path.display()
    );
    let container = Running::start_ready(&mut contained(&script)).expect("a container");
    let [target] = look::children(container.pid())[..] else { panic!("one child") };
    assert!(!folder.path().join("contained").exists(), "the mount is to be the container's own");
    let started = Trace::attach(&env, target)
        .and_then(|trace| trace.functions(["step", "mix"]).args(["-d", "1"]).finish());
    let traced = started.and_then(|traced| traced.expect_code(0)).expect("traces");
    let report = traced.report().expect("a report");
    report.check_sums().expect("the sums are right");
    let step = report.expect("step").expect("step");
    assert!(step.calls() > 100, "{} calls in a second at 1,000 a second", step.calls());
    assert!(step.integer("timed").expect("timed") > 100);
    assert_eq!(report.0["target"]["pid"], target);
}

/// Inside a pid namespace, process ids differ from the kernel's.
#[test]
fn inside_a_pid_namespace_it_refuses() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("counts.c")).expect("builds");
    for command in [
        format!("{} run -f leaf -- {} 10", env.ctrace.display(), path.display()),
        format!("{} attach 1 -f main", env.ctrace.display()),
    ] {
        let finished = run(&mut contained(&command), LIMIT).expect("unshare");
        assert_eq!(finished.shell_code(), 125, "{command}: {}", finished.stderr);
        assert_eq!(finished.stdout, "", "the target ran");
        let message = finished.stderr;
        assert_eq!(message.lines().count(), 1, "{message}");
        for word in ["ctrace: ", "pid namespace", "on the host", "--pid=host"] {
            assert!(message.contains(word), "{word} is not in: {message}");
        }
    }
    let doctor = format!("{} doctor", env.ctrace.display());
    let finished = run(&mut contained(&doctor), LIMIT).expect("unshare");
    assert_eq!(finished.shell_code(), 1, "{}", finished.stdout);
    assert!(finished.stdout.contains("pid namespace"), "{}", finished.stdout);
}
