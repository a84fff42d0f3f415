//! Ends ctrace in every way at any moment: nothing of it stays in its targets, and none is stopped.
//!
//! `CTRACE_ATTACK_ROUNDS` sets the number of rounds of each attack. The moments come from a printed
//! seed; `CTRACE_ATTACK_SEED` repeats them.

use anyhow::{Context, Result, ensure};
use ctrace_tests::attack::{Random, Victim, rounds};
use ctrace_tests::daemon::Daemon;
use ctrace_tests::env::{Env, Link};
use ctrace_tests::look;
use ctrace_tests::process::{Finished, Running};
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);

/// The probed functions of the target, and the method.
#[derive(Clone, Copy, Debug)]
struct What {
    link: &'static str,
    glob: &'static str,
    /// The number of places that change.
    places: usize,
    /// True for links that are bound to no process.
    follow: bool,
}

const ALL: What = What { link: "session", glob: "f[01]*", places: 20_000, follow: false };
const MULTI: What = What { link: "multi", glob: "f1*", places: 10_000, follow: false };
const FEW: What = What { link: "session", glob: "f100??", places: 100, follow: false };
const FOLLOW: What = What { follow: true, ..ALL };
/// 60 links. The kernel takes a tenth of a second to remove each.
const PERF: What = What { link: "perf", glob: "f100[0-2]?", places: 30, follow: false };

/// The moment of the attack.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Arming,
    Armed,
    Disarming,
}

/// The signals of the attack.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// Two signals that ask for the end, and perhaps a third.
    Twice,
    Kill,
}

const MOMENTS: [Moment; 3] = [Moment::Arming, Moment::Armed, Moment::Disarming];
/// The time between two signals.
const GAP: Duration = Duration::from_millis(250);
/// The approximate time to arm 20,000 places.
const ARMING: Duration = Duration::from_millis(60);

/// Starts the target of a round: its folder, process, counter, and untraced speed.
fn start(env: &Env) -> Result<(TempDir, Running, Victim, f64)> {
    let folder = tempfile::tempdir()?;
    let path = Victim::copy(env, folder.path())?;
    let (target, mut victim) = Victim::start(&mut Command::new(&path), &path, false)?;
    let speed = victim.speed()?;
    Ok((folder, target, victim, speed))
}

fn options(what: What) -> impl Iterator<Item = &'static str> {
    let follow = what.follow.then_some("--follow");
    ["--link", what.link, "--max-functions", "20000", "-f", what.glob].into_iter().chain(follow)
}

/// Waits for the moment.
fn come_upon(
    moment: Moment,
    victim: &Victim,
    ctrace: &mut Running,
    what: What,
    random: &mut Random,
) -> Result<()> {
    match moment {
        Moment::Arming => {
            victim.wait_until_arming(|| ctrace.is_running())?;
            random.sleep_up_to(ARMING);
        }
        Moment::Armed | Moment::Disarming => {
            victim.wait_for_probes(what.places, || ctrace.is_running())?;
            random.sleep_up_to(GAP);
        }
    }
    Ok(())
}

/// Waits for the moment. Where it does not come, ctrace says why.
fn lie_in_wait(
    moment: Moment,
    victim: &Victim,
    mut ctrace: Running,
    what: What,
    random: &mut Random,
) -> Result<Running> {
    let Err(error) = come_upon(moment, victim, &mut ctrace, what, random) else {
        return Ok(ctrace);
    };
    let was_running = ctrace.is_running();
    ctrace.signal(Signal::INT).ok();
    let finished = ctrace.wait(LIMIT)?;
    let (code, said) = (finished.shell_code(), finished.stderr);
    Err(error.context(format!("was running: {was_running}, ended with {code}, said: {said}")))
}

/// Attacks ctrace and waits for its end.
fn strike(
    ctrace: Running,
    attack: Attack,
    moment: Moment,
    random: &mut Random,
) -> Result<Finished> {
    let mut asks = [Signal::INT, Signal::TERM];
    if random.below(2) == 0 {
        asks.swap(0, 1);
    }
    // It may be gone before the second one.
    let send = |signal| ctrace.signal(signal).is_ok();
    match attack {
        Attack::Twice => {
            send(asks[0]);
            random.sleep_up_to(GAP);
            send(asks[1]);
            if random.below(2) == 0 {
                random.sleep_up_to(GAP);
                send(asks[0]);
            }
        }
        Attack::Kill => {
            if matches!(moment, Moment::Disarming) {
                send(asks[0]);
                random.sleep_up_to(GAP);
            }
            send(Signal::KILL);
        }
    }
    ctrace.wait(LIMIT)
}

/// Runs a round against `attach`, or `record` in its manner.
fn attack_attached(
    env: &Env,
    subcommand: &str,
    what: What,
    attack: Attack,
    moment: Moment,
    random: &mut Random,
) -> Result<()> {
    let (folder, _target, mut victim, speed) = start(env)?;
    let pid = victim.pid.to_string();
    let mut command = Command::new(&env.ctrace);
    command.arg(subcommand).args(options(what)).arg("-o").arg(folder.path().join("out"));
    match subcommand {
        "record" => command.args(["--pid", &pid]),
        _ => command.arg(&pid),
    };
    let ctrace = Running::start(&mut command)?;
    let ctrace = lie_in_wait(moment, &victim, ctrace, what, random)?;
    let finished = strike(ctrace, attack, moment, random)?;
    match attack {
        // It ends after the last probe.
        Attack::Twice => victim.expect_unharmed(speed),
        Attack::Kill => victim.expect_recovery(speed),
    }
    .with_context(|| finished.stderr)
}

fn attack_rounds(
    usual: u32,
    kinds: &[(&str, What)],
    attack: Attack,
    round: impl Fn(&Env, &str, What, Moment, &mut Random) -> Result<()>,
) {
    let env = or_skip!(gate::live(Link::Session));
    let mut random = Random::new();
    // Where there are fewer rounds than kinds, each run leaves out others.
    let (kind, moment) = (random.below(kinds.len() as u64) as usize, random.below(3) as usize);
    for number in 0..rounds(usual) {
        let turn = kind + number as usize;
        let (subcommand, what) = kinds[turn % kinds.len()];
        // Each kind takes all moments in turn, at different moments from other kinds.
        let moment = MOMENTS[(moment + turn / kinds.len() + turn % kinds.len()) % 3];
        let result = round(&env, subcommand, what, moment, &mut random);
        if let Err(error) = result {
            panic!("round {number}: {attack:?} {subcommand} {what:?} {moment:?}: {error:#}");
        }
    }
}

const ATTACHED: [(&str, What); 7] = [
    ("attach", ALL),
    ("record", ALL),
    ("attach", MULTI),
    ("attach", FOLLOW),
    ("attach", FEW),
    ("record", FEW),
    ("record", MULTI),
];

#[test]
fn a_second_signal_leaves_no_breakpoints() {
    attack_rounds(3, &ATTACHED, Attack::Twice, |env, subcommand, what, moment, random| {
        attack_attached(env, subcommand, what, Attack::Twice, moment, random)
    });
}

#[test]
fn sigkill_leaves_no_breakpoints() {
    attack_rounds(3, &ATTACHED, Attack::Kill, |env, subcommand, what, moment, random| {
        attack_attached(env, subcommand, what, Attack::Kill, moment, random)
    });
}

/// Perf links close one by one.
#[test]
fn perf_links_are_closed_in_peace() {
    for attack in [Attack::Twice, Attack::Kill] {
        attack_rounds(1, &[("attach", PERF)], attack, |env, subcommand, what, moment, random| {
            attack_attached(env, subcommand, what, attack, moment, random)
        });
    }
}

/// If the open files do not suffice for all links, one line says so, and the guard removes the
/// other links.
#[test]
fn too_few_files_for_perf_links_end_in_a_line() {
    attack_rounds(1, &[("attach", PERF)], Attack::Twice, |env, subcommand, what, _, _| {
        let (_folder, _target, mut victim, speed) = start(env)?;
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 84; exec \"$0\" \"$@\""]).arg(&env.ctrace);
        command.arg(subcommand).args(options(what)).arg(victim.pid.to_string());
        let finished = Running::start(&mut command)?.wait(LIMIT)?;
        let told = &finished.stderr;
        // What the probes would cost is told before they are placed.
        let is_error = |line: &&str| !line.contains("single-steps an instruction");
        let errors: Vec<&str> = told.lines().filter(is_error).collect();
        ensure!(finished.shell_code() == 125 && errors.len() == 1, "{told}");
        ensure!(errors[0].contains("ulimit -n") && !told.contains("guard"), "{told}");
        victim.expect_unharmed(speed)
    });
}

/// Signals go to the command, which ignores them here. Then ctrace is killed, and the command goes
/// on.
#[test]
fn a_launched_command_is_not_harmed() {
    let kinds = [("run", FEW), ("run", ALL), ("run", MULTI), ("run", FOLLOW)];
    attack_rounds(3, &kinds, Attack::Kill, |env, subcommand, what, moment, random| {
        let folder = tempfile::tempdir()?;
        let path = Victim::copy(env, folder.path())?;
        let (_target, mut untraced) = Victim::start(&mut Command::new(&path), &path, false)?;
        let speed = untraced.speed()?;
        let mut command = Command::new(&env.ctrace);
        command.arg(subcommand).args(options(what)).arg("--").arg(&path);
        let (mut ctrace, mut victim) = Victim::start(&mut command, &path, true)?;
        come_upon(moment, &victim, &mut ctrace, what, random)?;
        for signal in [Signal::TERM, Signal::INT] {
            ctrace.signal(signal)?;
            random.sleep_up_to(GAP);
        }
        ctrace.signal(Signal::KILL)?;
        let unharmed = victim.expect_recovery(speed);
        // It has ctrace's stderr, whose end is waited for.
        victim.end();
        unharmed.and(ctrace.wait(LIMIT).map(drop))
    });
}

/// A thread of the killed ctrace hangs in the kernel, so all its files stay open. The guard does
/// not wait for that.
#[test]
fn a_killed_ctrace_that_cannot_end_leaves_no_breakpoints() {
    let kinds = [("attach", ALL), ("attach", FEW)];
    attack_rounds(2, &kinds, Attack::Kill, |env, subcommand, what, _, random| {
        let (_folder, _target, mut victim, speed) = start(env)?;
        let mut command = Command::new(&env.ctrace);
        command.arg(subcommand).args(options(what)).arg(victim.pid.to_string());
        let mut ctrace = Running::start(&mut command)?;
        victim.wait_until_armed(what.places)?;
        // The first thread, or another one.
        let threads = look::threads(ctrace.pid());
        let thread = if random.below(2) == 0 { threads.first() } else { threads.last() };
        let stuck = env.targets.get(&program("stuck.c"))?;
        let mut stuck = Command::new(stuck);
        stuck.arg(thread.context("a thread")?.to_string());
        let (stuck, input, output) = Running::start_piped(&mut stuck)?;
        ensure!(BufReader::new(output).lines().next().is_some(), "no thread is stuck");
        ctrace.signal(Signal::KILL)?;
        let unharmed = victim.expect_recovery(speed);
        ensure!(ctrace.is_running(), "it has ended");
        drop(input);
        unharmed.and(stuck.wait(LIMIT).and(ctrace.wait(LIMIT)).map(drop))
    });
}

/// Returns the target of the daemon's configuration.
fn target_of(What { glob, .. }: What) -> String {
    format!(
        "[[target]]\nid = \"many\"\nexe = \"DIR/many\"\nfunctions = [\"{glob}\"]\nmax_functions = 20000\n"
    )
}

/// Attacks a daemon that traces the target: ends it twice, or kills it while it ends.
fn attack_daemon(env: &Env, what: What, attack: Attack, random: &mut Random) -> Result<()> {
    let (folder, _target, mut victim, speed) = start(env)?;
    let daemon = Daemon::start(env, folder, &target_of(what))?;
    victim.wait_until_armed(what.places)?;
    daemon.signal(Signal::TERM)?;
    random.sleep_up_to(GAP);
    match attack {
        Attack::Twice => {
            // It may be gone.
            let _ = daemon.signal(Signal::TERM);
            let (finished, _folder) = daemon.wait()?;
            victim.expect_unharmed(speed).with_context(|| finished.stderr)
        }
        Attack::Kill => {
            let (finished, _folder) = daemon.kill()?;
            victim.expect_recovery(speed).with_context(|| finished.stderr)
        }
    }
}

#[test]
fn a_daemon_leaves_no_breakpoints() {
    for attack in [Attack::Twice, Attack::Kill] {
        attack_rounds(2, &[("daemon", ALL), ("daemon", FEW)], attack, |env, _, what, _, random| {
            attack_daemon(env, what, attack, random)
        });
    }
}

/// Kills the only child of ctrace.
fn kill_the_guard(ctrace: i32) -> Result<()> {
    let [guard] = look::children(ctrace)[..] else { anyhow::bail!("one child") };
    Ok(kill_process(Pid::from_raw(guard).context("a guard")?, Signal::KILL)?)
}

/// Sends all signals but SIGKILL and SIGSTOP, including those of the C library.
#[test]
fn no_other_signal_ends_the_guard() {
    let env = or_skip!(gate::live(Link::Session));
    let round = || -> Result<()> {
        let (_folder, _target, mut victim, speed) = start(&env)?;
        let mut command = Command::new(&env.ctrace);
        command.arg("attach").args(options(ALL)).arg(victim.pid.to_string());
        let ctrace = Running::start(&mut command)?;
        victim.wait_until_armed(ALL.places)?;
        let [guard] = look::children(ctrace.pid())[..] else { anyhow::bail!("one child") };
        let (kill, stop) = (Signal::KILL.as_raw(), Signal::STOP.as_raw());
        let send = format!(
            "import os, time\nfor signal in range(1, 65):\n  if signal not in ({kill}, {stop}):\n    \
             os.kill({guard}, signal); time.sleep(0.01)"
        );
        let sent = Command::new("python3").args(["-c", &send]).status()?;
        ensure!(sent.success(), "a signal could not be sent");
        // It still has all links, and closes them in order.
        ensure!(look::children(ctrace.pid()) == [guard], "another guard");
        victim.wait_until_armed(ALL.places)?;
        ctrace.signal(Signal::INT)?;
        let finished = ctrace.wait(LIMIT)?;
        ensure!(finished.shell_code() == 0, "exit code {}", finished.shell_code());
        ensure!(!finished.stderr.contains("guard"), "{}", finished.stderr);
        victim.expect_unharmed(speed).with_context(|| finished.stderr)
    };
    round().unwrap();
}

/// The guard alone is killed, also while it makes or closes links. The kernel removes its probes.
/// ctrace removes leftover breakpoints, and says why it ends.
#[test]
fn the_guard_alone_is_killed() {
    let kinds = [("attach", ALL), ("attach", FEW), ("attach", MULTI), ("attach", FOLLOW)];
    attack_rounds(3, &kinds, Attack::Kill, |env, subcommand, what, moment, random| {
        let (_folder, _target, mut victim, speed) = start(env)?;
        let mut command = Command::new(&env.ctrace);
        command.arg(subcommand).args(options(what)).arg(victim.pid.to_string());
        let mut ctrace = Running::start(&mut command)?;
        come_upon(moment, &victim, &mut ctrace, what, random)?;
        match moment {
            Moment::Arming => {}
            // All places have probes before the last link is made and there is anything to report.
            Moment::Armed => {
                look::wait_until("ctrace waits for the target's end", || {
                    look::has_thread(ctrace.pid(), "target")
                })?;
            }
            Moment::Disarming => {
                ctrace.signal(Signal::INT)?;
                random.sleep_up_to(Duration::from_millis(20));
            }
        }
        kill_the_guard(ctrace.pid())?;
        let finished = ctrace.wait(LIMIT)?;
        victim.expect_unharmed(speed).with_context(|| finished.stderr.clone())?;
        if matches!(moment, Moment::Disarming) {
            // The guard may have had nothing left to do.
            ensure!([0, 125].contains(&finished.shell_code()), "{}", finished.stderr);
            return Ok(());
        }
        ensure!(finished.shell_code() == 125, "exit code {}", finished.shell_code());
        let about: Vec<_> = finished.stderr.lines().filter(|line| line.contains("guard")).collect();
        ensure!(about.len() == 1 && about[0].contains("was killed"), "{}", finished.stderr);
        if matches!(moment, Moment::Armed) {
            ensure!(finished.stdout.contains("guard process was killed"), "no note in the report");
        }
        Ok(())
    });
}

/// The daemon starts another guard and goes on.
#[test]
fn the_guard_of_a_daemon_is_killed() {
    attack_rounds(1, &[("daemon", FEW)], Attack::Kill, |env, _, what, _, random| {
        let (folder, _target, mut victim, speed) = start(env)?;
        let daemon = Daemon::start(env, folder, &target_of(what))?;
        victim.wait_until_armed(what.places)?;
        random.sleep_up_to(GAP);
        let guards = look::children(daemon.pid());
        kill_the_guard(daemon.pid())?;
        look::wait_until("there is another guard", || {
            let now = look::children(daemon.pid());
            now.len() == 1 && now != guards
        })?;
        victim.wait_until_armed(what.places)?;
        let (finished, _folder) = daemon.end()?;
        victim.expect_unharmed(speed).with_context(|| finished.stderr)
    });
}
