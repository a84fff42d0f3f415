//! A test that slows the probes of the whole machine down, and so runs beside no other.

use ctrace_tests::attack::Victim;
use ctrace_tests::env::Link;
use ctrace_tests::process::{Running, run};
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use std::process::Command;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);

/// Another process maps the program so often that each probe takes a tenth of a second. Tracing is
/// given up soon, and leaves nothing.
#[test]
fn a_program_that_is_mapped_very_often_is_given_up() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = tempfile::tempdir().expect("a folder");
    let copy = Victim::copy(&env, folder.path()).expect("a copy");
    let (_target, mut victim) =
        Victim::start(&mut Command::new(&copy), &copy, false).expect("starts");
    let speed = victim.speed().expect("it runs");
    let mapper = env.targets.get(&program("mapped_often.c")).expect("builds");
    let mapper = Running::start_ready(Command::new(mapper).arg(&copy).arg("2")).expect("starts");
    let mut command = Command::new(&env.ctrace);
    command.args(["attach", "--max-functions", "20000", "-f", "f[01]*"]);
    let begun = Instant::now();
    let finished = run(command.arg(victim.pid.to_string()), LIMIT);
    let (finished, took) = (finished.expect("it ends"), begun.elapsed());
    assert_eq!(finished.shell_code(), 125, "{}", finished.stderr);
    assert!(finished.stderr.contains("map this file very often"), "{}", finished.stderr);
    // All of them would take half an hour.
    assert!(took < Duration::from_secs(60), "{took:?}");
    drop(mapper);
    victim.expect_recovery(speed).expect("nothing is left");
}
