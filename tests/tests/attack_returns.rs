//! Return probes replace return addresses on the target's stacks. However ctrace ends, they are
//! put back, and the target can unwind through its open calls.

use anyhow::{Context, Result, ensure};
use ctrace_tests::attack::{Random, rounds};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::probes::wait_until_armed;
use ctrace_tests::process::Running;
use ctrace_tests::targets::program;
use ctrace_tests::trampolines::{self, Calls};
use ctrace_tests::{gate, look, or_skip};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read as _, Write as _};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);
/// The frames that return probes hijack in each thread of the target.
const OPEN_EACH: usize = 3;

fn wait_for(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let until = Instant::now() + LIMIT;
    while !is_so()? {
        ensure!(Instant::now() < until, "{what}: not within {LIMIT:?}");
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The process whose calls stay open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The target itself, with so many threads.
    Target(usize),
    /// A child that the target forks within its calls, and that is not followed.
    Child,
}

/// The process that a signal ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Ctrace(Signal),
    /// It is killed.
    Guard,
}

impl Victim {
    fn end(self, ctrace: &Running) -> Result<()> {
        match self {
            Self::Ctrace(signal) => ctrace.signal(signal),
            Self::Guard => Ok(kill_process(guard_of(ctrace)?, Signal::KILL)?),
        }
    }
}

/// A process that is stopped, and killed at the end: a stopped guard would keep its probes.
struct Halted(Pid);

impl Halted {
    fn new(process: Pid) -> Result<Self> {
        kill_process(process, Signal::STOP)?;
        Ok(Self(process))
    }
}

impl Drop for Halted {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// Returns the only child of ctrace.
fn guard_of(ctrace: &Running) -> Result<Pid> {
    let [guard] = look::children(ctrace.pid())[..] else { anyhow::bail!("one child") };
    Pid::from_raw(guard).context("a guard")
}

/// Ends ctrace or its guard at a random moment while calls are open.
fn once(env: &Env, victim: Victim, whose: Whose, random: &mut Random) -> Result<()> {
    let threads = if let Whose::Target(threads) = whose { threads } else { 1 };
    let open = threads * OPEN_EACH;
    let path = env.targets.get(&program("open_calls.cpp"))?;
    let (target, mut input, mut output) = Running::start_piped(
        Command::new(&path)
            .arg((threads - 1).to_string())
            .args((whose == Whose::Child).then_some("fork")),
    )?;
    let mut pid = target.pid();
    let mut command = Command::new(&env.ctrace);
    command.args(["attach", &pid.to_string(), "-f", "outer", "-f", "middle", "-f", "innermost"]);
    let ctrace = Running::start(&mut command)?;
    wait_until_armed(pid, &path)?;
    input.write_all(b"go\n").context("the target reads")?;
    if whose == Whose::Child {
        pid = look::child_running(pid, &path)?;
    }
    wait_for("the calls are open", || Ok(trampolines::words(pid)? == open))?;
    random.sleep_up_to(Duration::from_millis(300));
    // The stacks of a thousand threads would take long. The innermost replaced address of a thread
    // hides the calls behind it.
    let looks = threads <= 2;
    let before = if looks { trampolines::calls(env, pid)? } else { Calls::default() };
    ensure!(!looks || before.replaced == threads, "{before:?} in {threads} threads");
    victim.end(&ctrace)?;
    let ended = ctrace.wait(LIMIT)?;
    wait_for("no return address is left", || Ok(trampolines::words(pid)? == 0)).with_context(
        || format!("{} left; {}", trampolines::words(pid).unwrap_or(0), ended.stderr),
    )?;
    if looks {
        let after = trampolines::calls(env, pid)?;
        ensure!(
            after.replaced == 0 && after.seen >= before.seen + open - threads,
            "{before:?}, then {after:?}"
        );
    }
    kill_process(Pid::from_raw(pid).context("a process")?, Signal::USR1)?;
    let mut told = String::new();
    output.read_to_string(&mut told)?;
    let code = target.wait(LIMIT)?.shell_code();
    ensure!(
        code == 0 && told.ends_with(&format!("caught {}\n", 7 * threads)),
        "exit {code}: {told}"
    );
    Ok(())
}

fn each(env: &Env, victim: Victim) {
    let mut random = Random::new();
    for round in 0..rounds(4) {
        let whose = if round % 2 == 0 { Whose::Target(2) } else { Whose::Child };
        once(env, victim, whose, &mut random)
            .unwrap_or_else(|error| panic!("round {round}: {error:#}"));
    }
}

#[test]
fn detaching_restores_open_calls() {
    let env = or_skip!(gate::live(Link::Session));
    each(&env, Victim::Ctrace(Signal::INT));
}

#[test]
fn a_killed_ctrace_leaves_open_calls_restored() {
    let env = or_skip!(gate::live(Link::Session));
    each(&env, Victim::Ctrace(Signal::KILL));
}

/// ctrace does what is left to do.
#[test]
fn a_killed_guard_leaves_open_calls_restored() {
    let env = or_skip!(gate::live(Link::Session));
    each(&env, Victim::Guard);
}

/// A thread stops its process where nobody answers it at once, and the guard dies before it has continued
/// the process. ctrace does so.
#[test]
fn a_killed_guard_leaves_nobody_stopped() {
    let env = or_skip!(gate::live(Link::Session));
    let round = || -> Result<()> {
        let path = env.targets.get(&program("signalled.c"))?;
        let (target, mut input, mut output) = Running::start_piped(&mut Command::new(&path))?;
        let mut command = Command::new(&env.ctrace);
        let ctrace =
            Running::start(command.args(["attach", &target.pid().to_string(), "-f", "outer"]))?;
        wait_until_armed(target.pid(), &path)?;
        // The breakpoint is there before the guard has told ctrace so, which then begins to trace.
        wait_for("ctrace traces", || Ok(ctrace.said().contains("tracing")))?;
        let guard = Halted::new(guard_of(&ctrace)?)?;
        input.write_all(b"go\n").context("the target reads")?;
        wait_for("the target is stopped", || Ok(look::is_stopped(target.pid())))?;
        drop(guard);
        let ended = ctrace.wait(LIMIT)?;
        ensure!(ended.shell_code() == 125, "{}", ended.stderr);
        let mut told = String::new();
        output.read_to_string(&mut told)?;
        let code = target.wait(LIMIT)?.shell_code();
        ensure!(code == 0 && told == "ready\nouter 110\n", "exit {code}: {told}");
        Ok(())
    };
    for _ in 0..rounds(3) {
        round().unwrap();
    }
}

/// More than the programs can list at once.
#[test]
fn open_calls_of_a_thousand_threads_are_restored() {
    let env = or_skip!(gate::live(Link::Session));
    once(&env, Victim::Ctrace(Signal::INT), Whose::Target(1000), &mut Random::new()).unwrap();
}
