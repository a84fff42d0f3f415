//! The checks that hold for every kernel and every kind of link, as a table.
//!
//! On the host each is a `#[test]` per link; in the virtual machines the `cases` binary runs them.

use crate::env::{Env, Link};
use crate::probes::changed_bytes;
use crate::process::Running;
use crate::targets::{Build, program};
use crate::trace::{Trace, Traced};
use crate::truth::Truth;
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// One check.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    /// Returns an error that tells what is wrong.
    pub check: fn(&Env) -> Result<()>,
    /// Why it cannot be asked of a link, where it cannot.
    pub unsuited: fn(Link) -> Option<&'static str>,
}

fn any_link(_: Link) -> Option<&'static str> {
    None
}

/// A perf link takes 100 ms to close on some kernels.
fn not_perf(link: Link) -> Option<&'static str> {
    (link == Link::Perf).then_some("detaching many perf links takes minutes")
}

const fn case(name: &'static str, check: fn(&Env) -> Result<()>) -> Case {
    Case { name, check, unsuited: any_link }
}

/// Every check, by name.
pub const CASES: &[Case] = &[
    case("counts", counts),
    case("counts_by_ret_sites", counts_by_ret_sites),
    case("recursion_under_return_probes", recursion_under_return_probes),
    case("known_durations", known_durations),
    case("threads", threads),
    case("longjmp", longjmp),
    case("setjmp_kin", setjmp_kin),
    case("exec_of_itself", exec_of_itself),
    case("exec_of_another_program", exec_of_another_program),
    case("fork_and_vfork", fork_and_vfork),
    case("other_stacks", other_stacks),
    case("switches_and_tail_jumps", switches_and_tail_jumps),
    case("exceptions", exceptions),
    case("panics", panics),
    case("cold_parts", cold_parts),
    case("opened_library", opened_library),
    case("usdt_probes", usdt_probes),
    case("an_instruction_the_kernel_refuses", an_instruction_the_kernel_refuses),
    case("exit_code_is_the_targets", exit_code_is_the_targets),
    case("death_by_signal", death_by_signal),
    case("attach_for_a_while", attach_for_a_while),
    case("attach_until_the_target_ends", attach_until_the_target_ends),
    case("attach_until_the_target_is_killed", attach_until_the_target_is_killed),
    case("a_killed_ctrace_leaves_nothing", a_killed_ctrace_leaves_nothing),
    Case { name: "a_thousand_functions", check: a_thousand_functions, unsuited: not_perf },
];

/// The check of this name.
pub fn find(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}

/// The programs the table runs, for a machine that cannot build them.
pub fn builds() -> Vec<Build> {
    let mut all: Vec<Build> = [
        "counts.c",
        "sleeps.c",
        "threads.c",
        "longjmp.c",
        "setjmp.c",
        "execself.c",
        "forker.c",
        "altstack.c",
        "switch.c",
        "throw.cpp",
        "cold.cpp",
        "dl.c",
        "libplug.c",
        "usdt.c",
        "crash.c",
        "spin.c",
        "locked.c",
    ]
    .map(program)
    .into();
    all.push(panic_program());
    all
}

/// Functions that `a_thousand_functions` traces.
pub const MANY: usize = 1000;

fn panic_program() -> Build {
    program("panic.rs").flags(["-O"])
}

/// Runs `build` untraced, for its output and its exit code.
fn untraced(env: &Env, build: &Build, arguments: &[&str]) -> Result<crate::process::Finished> {
    let path = env.targets.get(build)?;
    crate::process::run(Command::new(path).args(arguments), Duration::from_secs(60))
}

/// Traces `globs` of a program; its exit code and its output must be those of the untraced run,
/// and the calls those it counted itself.
fn traced_as_untraced(
    env: &Env,
    build: &Build,
    arguments: &[&str],
    globs: &[&str],
    options: &[&str],
) -> Result<Traced> {
    let alone = untraced(env, build, arguments)?;
    let traced = Trace::run(env)?
        .functions(globs.iter().copied())
        .args(options.iter().copied())
        .program(&env.targets.get(build)?, arguments.iter().copied())
        .finish()?
        .expect_code(alone.shell_code())?;
    ensure!(
        traced.finished.stdout == alone.stdout,
        "output changed under trace\nuntraced: {}\ntraced: {}\nstderr: {}",
        alone.stdout,
        traced.finished.stdout,
        traced.finished.stderr
    );
    let report = traced.report()?;
    Truth::parse(&alone.stdout).check_calls(report)?;
    report.check_lossless()?;
    Ok(traced)
}

const COUNTS: &[&str] = &["leaf", "ping", "pong", "descend", "tail_*"];

fn counts(env: &Env) -> Result<()> {
    let calls = env.scaled(1_000_000);
    let traced = traced_as_untraced(env, &program("counts.c"), &[&calls], COUNTS, &[])?;
    let report = traced.report()?;
    for name in ["leaf", "ping", "pong", "tail_third"] {
        let (calls, timed, _, _) = report.expect(name)?.ends();
        ensure!(calls == timed, "{name}: {timed} of {calls} calls are timed");
    }
    Ok(())
}

fn counts_by_ret_sites(env: &Env) -> Result<()> {
    let calls = env.scaled(50_000);
    let options = ["--returns", "ret-sites"];
    let traced = traced_as_untraced(env, &program("counts.c"), &[&calls], COUNTS, &options)?;
    let report = traced.report()?;
    for name in ["leaf", "ping", "pong", "descend", "tail_first", "tail_second", "tail_third"] {
        let (calls, timed, _, _) = report.expect(name)?.ends();
        ensure!(calls == timed, "{name}: {timed} of {calls} calls are timed");
    }
    Ok(())
}

/// The kernel keeps 64 return addresses per thread.
fn recursion_under_return_probes(env: &Env) -> Result<()> {
    let traced = traced_as_untraced(
        env,
        &program("counts.c"),
        &["10"],
        &["descend", "leaf", "ping", "pong", "tail_*"],
        &["--returns", "uretprobe"],
    )?;
    let ends = traced.report()?.expect("descend")?.ends();
    ensure!(ends == (201, 64, 137, 0), "descend: calls, timed, untimed, open are {ends:?}");
    Ok(())
}

/// Durations as the target measured them around its own calls, within 1 ms a call.
fn known_durations(env: &Env) -> Result<()> {
    let traced = Trace::run(env)?
        .functions(["outer", "nap_*", "overlap"])
        .program(&env.targets.get(&program("sleeps.c"))?, [])
        .finish()?
        .expect_code(0)?;
    let report = traced.report()?;
    let truth = Truth::parse(&traced.finished.stdout);
    truth.check_calls(report)?;
    truth.check_times(report, 1_000_000)?;
    let overlap = report.expect("overlap")?;
    let (total, active) = (overlap.integer("total_ns")?, overlap.integer("active_ns")?);
    ensure!(active < total, "two threads at once: active {active}, total {total}");
    let outer = report.expect("outer")?;
    let least = outer.integer("min_ns")?;
    ensure!(least >= 60_000_000, "outer sleeps 60 ms, its fastest call took {least} ns");
    Ok(())
}

fn threads(env: &Env) -> Result<()> {
    let (calls, brief) = (env.scaled(20_000), env.scaled(2_000));
    let traced = traced_as_untraced(
        env,
        &program("threads.c"),
        &[&calls, &brief],
        &["work", "inner", "blink"],
        &[],
    )?;
    let report = traced.report()?;
    let threads = report.expect("work")?.integer("threads")?;
    ensure!(threads == 8, "work ran in {threads} threads, not 8");
    let threads = report.expect("blink")?.integer("threads")?;
    ensure!(threads.to_string() == brief, "blink ran in {threads} threads, not {brief}");
    Ok(())
}

fn longjmp(env: &Env) -> Result<()> {
    let globs = ["catcher", "dive", "leap", "after"];
    let traced = traced_as_untraced(env, &program("longjmp.c"), &["500"], &globs, &[])?;
    let report = traced.report()?;
    ensure!(
        report.expect("leap")?.ends() == (500, 0, 500, 0),
        "leap never returns, its calls, timed, untimed, open are {:?}",
        report.expect("leap")?.ends()
    );
    ensure!(
        report.expect("dive")?.ends() == (5000, 0, 5000, 0),
        "dive never returns: {:?}",
        report.expect("dive")?.ends()
    );
    let (_, timed, _, _) = report.expect("catcher")?.ends();
    ensure!(timed == 500, "catcher returns 500 times, {timed} are timed");
    Ok(())
}

fn setjmp_kin(env: &Env) -> Result<()> {
    traced_as_untraced(env, &program("setjmp.c"), &[], &["*"], &[]).map(drop)
}

fn exec_of_itself(env: &Env) -> Result<()> {
    traced_as_untraced(env, &program("execself.c"), &["self", "3"], &["work"], &[]).map(drop)
}

fn exec_of_another_program(env: &Env) -> Result<()> {
    let other = env.targets.get(&program("longjmp.c"))?;
    let other = other.to_str().context("path is text")?;
    // A glob that matches in both programs.
    let arguments = ["other", other, "5"];
    traced_as_untraced(env, &program("execself.c"), &arguments, &["*"], &[]).map(drop)
}

fn fork_and_vfork(env: &Env) -> Result<()> {
    let globs = ["work", "in_child"];
    let traced = traced_as_untraced(env, &program("forker.c"), &["5"], &globs, &[])?;
    let children = &traced.report()?.0["target"]["untraced_children"];
    ensure!(*children == 7, "untraced_children is {children}, not 7");
    Ok(())
}

fn other_stacks(env: &Env) -> Result<()> {
    let globs = ["interrupted", "on_alternate", "fiber_*", "schedule"];
    let traced = traced_as_untraced(env, &program("altstack.c"), &[], &globs, &[])?;
    let report = traced.report()?;
    for name in ["interrupted", "on_alternate", "fiber_step", "schedule"] {
        let (calls, timed, _, _) = report.expect(name)?.ends();
        ensure!(calls == timed, "{name}: {timed} of {calls} calls are timed");
    }
    Ok(())
}

fn switches_and_tail_jumps(env: &Env) -> Result<()> {
    for returns in ["uretprobe", "ret-sites"] {
        let options = ["--returns", returns];
        traced_as_untraced(env, &program("switch.c"), &[], &["*"], &options)
            .with_context(|| format!("--returns {returns}"))?;
    }
    Ok(())
}

fn exceptions(env: &Env) -> Result<()> {
    let traced = traced_as_untraced(env, &program("throw.cpp"), &[], &["*"], &[])?;
    let (_, timed, _, _) = traced.report()?.expect("plain")?.ends();
    ensure!(timed == 300, "plain returns 300 times, {timed} are timed");
    Ok(())
}

fn panics(env: &Env) -> Result<()> {
    let globs = ["thrower", "passer", "catcher", "plain"];
    let traced = traced_as_untraced(env, &panic_program(), &[], &globs, &[])?;
    let (_, timed, _, _) = traced.report()?.expect("plain")?.ends();
    ensure!(timed == 300, "plain returns 300 times, {timed} are timed");
    Ok(())
}

fn cold_parts(env: &Env) -> Result<()> {
    traced_as_untraced(env, &program("cold.cpp"), &[], &["h_*"], &[]).map(drop)
}

/// A library that is open before attaching is found by its name.
fn opened_library(env: &Env) -> Result<()> {
    let library = env.targets.get(&program("libplug.c"))?;
    let mut command = Command::new(env.targets.get(&program("dl.c"))?);
    let target = Running::start_ready(command.arg(&library).args(["50", "wait"]))?;
    let started = Trace::attach(env, target.pid())?.function("plug_*@libplug*").start()?;
    wait_until_armed(target.pid(), &library)?;
    target.signal(Signal::USR1)?;
    let finished = target.wait(Duration::from_secs(30))?;
    ensure!(finished.shell_code() == 0, "the target was disturbed: {}", finished.stderr);
    let traced = started.wait()?.expect_code(0)?;
    let report = traced.report()?;
    for name in ["plug_work", "plug_inner"] {
        let calls = report.expect(name)?.calls();
        ensure!(calls == 50, "{name}: {calls} calls reported, 50 made");
    }
    ensure!(report.function("host_work").is_none(), "host_work was not selected");
    report.check_sums()
}

fn usdt_probes(env: &Env) -> Result<()> {
    let traced = Trace::run(env)?
        .args(["-u", "ctdemo:*"])
        .program(&env.targets.get(&program("usdt.c"))?, ["500"])
        .finish()?
        .expect_code(0)?;
    let report = traced.report()?;
    let truth = Truth::parse(&traced.finished.stdout);
    ensure!(truth.usdt.len() == 2, "the target printed {}", traced.finished.stdout);
    for (name, calls) in &truth.usdt {
        let (_, short) = name.split_once(':').context("PROVIDER:NAME")?;
        let seen: u64 = report
            .functions()
            .filter(|function| function.0["kind"] == "usdt" && function.name().ends_with(short))
            .map(|function| function.calls())
            .sum();
        ensure!(seen == *calls, "{name}: {seen} hits reported, {calls} made");
    }
    ensure!(
        traced.finished.stdout.contains("guarded 500"),
        "the semaphore was not up all the time: {}",
        traced.finished.stdout
    );
    Ok(())
}

/// A probe on an instruction with a `lock` prefix attaches and never fires. Either the function is
/// counted all the same, or it is refused with words; silence would be a wrong number.
fn an_instruction_the_kernel_refuses(env: &Env) -> Result<()> {
    let traced = Trace::run(env)?
        .function("locked_entry")
        .program(&env.targets.get(&program("locked.c"))?, [])
        .finish()?;
    if traced.code() == 125 {
        let message = &traced.finished.stderr;
        ensure!(message.starts_with("ctrace:") && message.contains("locked_entry"), "{message}");
        return Ok(());
    }
    Truth::parse(&traced.finished.stdout).check_calls(traced.report()?)
}

const CRASH: &[&str] = &["work", "in_flight"];

fn exit_code_is_the_targets(env: &Env) -> Result<()> {
    let traced = traced_as_untraced(env, &program("crash.c"), &["exit", "77"], CRASH, &[])?;
    ensure!(traced.code() == 77, "exit code {}", traced.code());
    let ends = traced.report()?.expect("in_flight")?.ends();
    ensure!(ends == (1, 0, 1, 0), "in_flight was left by exit, without returning: {ends:?}");
    Ok(())
}

fn death_by_signal(env: &Env) -> Result<()> {
    for (how, code) in [("segv", 139), ("abort", 134), ("kill", 137), ("term", 143)] {
        let traced = traced_as_untraced(env, &program("crash.c"), &[how], CRASH, &[])
            .with_context(|| how.to_owned())?;
        ensure!(traced.code() == code, "{how}: exit code {}, not {code}", traced.code());
        let exit = &traced.report()?.0["target"]["exit"];
        ensure!(exit["signal"] == code - 128, "{how}: target.exit is {exit}");
    }
    Ok(())
}

fn spinning(env: &Env, arguments: &[&str]) -> Result<Running> {
    Running::start_ready(Command::new(spin(env)?).args(arguments))
}

/// A spinning target must end well after SIGTERM.
fn ends_well(target: Running) -> Result<()> {
    target.signal(Signal::TERM)?;
    let finished = target.wait(Duration::from_secs(60))?;
    ensure!(
        finished.shell_code() == 0 && finished.stdout.starts_with("ok "),
        "the target was disturbed: exit {}, output {}",
        finished.shell_code(),
        finished.stdout
    );
    Ok(())
}

fn attach_for_a_while(env: &Env) -> Result<()> {
    let target = spinning(env, &["0", "2000"])?;
    let traced = Trace::attach(env, target.pid())?
        .functions(["step", "mix"])
        .args(["-d", "1"])
        .finish()?
        .expect_code(0)?;
    let report = traced.report()?;
    report.check_sums()?;
    report.check_lossless()?;
    let calls = report.expect("step")?.calls();
    ensure!((200..6000).contains(&calls), "step: {calls} calls in a second at 2,000 a second");
    ensure!(changed_bytes(target.pid(), &spin(env)?)?.is_empty());
    ends_well(target)
}

fn attach_until_the_target_ends(env: &Env) -> Result<()> {
    let target = spinning(env, &["2", "1000"])?;
    let traced =
        Trace::attach(env, target.pid())?.functions(["step", "mix"]).finish()?.expect_code(0)?;
    let report = traced.report()?;
    report.check_sums()?;
    ensure!(report.expect("step")?.calls() > 0, "no call was seen");
    let finished = target.wait(Duration::from_secs(30))?;
    ensure!(finished.stdout.starts_with("ok "), "the target was disturbed: {}", finished.stdout);
    Ok(())
}

fn attach_until_the_target_is_killed(env: &Env) -> Result<()> {
    for signal in [Signal::KILL, Signal::SEGV] {
        let target = spinning(env, &["0", "5000"])?;
        let started = Trace::attach(env, target.pid())?.functions(["step", "mix"]).start()?;
        wait_until_armed(target.pid(), &spin(env)?)?;
        std::thread::sleep(Duration::from_millis(300));
        target.signal(signal)?;
        target.wait(Duration::from_secs(10))?;
        let traced = started.wait()?.expect_code(0)?;
        let report = traced.report()?;
        report.check_sums()?;
        ensure!(report.expect("step")?.calls() > 0, "no call was seen");
    }
    Ok(())
}

fn a_killed_ctrace_leaves_nothing(env: &Env) -> Result<()> {
    let program = spin(env)?;
    let target = spinning(env, &["0", "5000", "2"])?;
    let started = Trace::attach(env, target.pid())?.functions(["step", "mix"]).start()?;
    wait_until_armed(target.pid(), &spin(env)?)?;
    started.running.signal(Signal::KILL)?;
    let _ = started.wait()?;
    // The kernel takes the breakpoints out when the last link closes, perhaps a little later.
    let mut left = Vec::new();
    for _ in 0..100 {
        left = changed_bytes(target.pid(), &program)?;
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    ensure!(left.is_empty(), "still changed at file offsets {left:x?}");
    ends_well(target)
}

fn spin(env: &Env) -> Result<PathBuf> {
    env.targets.get(&program("spin.c"))
}

/// Until breakpoints show in a file's code in a process, and no more come.
pub fn wait_until_armed(pid: i32, file: &Path) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(100);
    let (mut last, mut quiet) = (Vec::new(), 0);
    for _ in 0..300 {
        let now = changed_bytes(pid, file)?;
        quiet = if now.is_empty() || now != last { 0 } else { quiet + 1 };
        if quiet == 3 {
            return Ok(());
        }
        last = now;
        std::thread::sleep(PAUSE);
    }
    anyhow::bail!("no probe was armed within 30 s")
}

fn a_thousand_functions(env: &Env) -> Result<()> {
    let path = env.targets.many_functions(MANY)?;
    let traced = Trace::run(env)?.function("f*").program(&path, []).finish()?.expect_code(0)?;
    let report = traced.report()?;
    let right = report
        .functions()
        .filter(|f| f.name().strip_prefix('f').is_some_and(|n| n.parse::<usize>().is_ok()))
        .filter(|f| f.calls() == 1)
        .count();
    ensure!(right == MANY, "{right} of {MANY} functions have their one call");
    report.check_lossless()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::Targets;

    #[test]
    fn names_are_unique() {
        for (index, case) in CASES.iter().enumerate() {
            assert!(CASES[..index].iter().all(|other| other.name != case.name), "{}", case.name);
            assert!(find(case.name).is_some());
        }
    }

    /// The targets tell the truth: what they print is what their sources say.
    #[test]
    fn targets_print_the_known_counts() {
        let env = Env {
            ctrace: "/nonexistent".into(),
            targets: Targets::on_host(),
            link: Link::Session,
            slower: 1,
        };
        let printed = |source: &str, arguments: &[&str]| {
            Truth::parse(&untraced(&env, &program(source), arguments).expect(source).stdout).calls
        };
        let expected = |pairs: &[(&str, u64)]| -> Vec<(String, u64)> {
            pairs.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect()
        };
        assert_eq!(
            printed("counts.c", &["1000"]),
            expected(&[
                ("leaf", 1000),
                ("ping", 110),
                ("pong", 100),
                ("descend", 201),
                ("tail_first", 1000),
                ("tail_second", 1000),
                ("tail_third", 1000)
            ])
        );
        assert_eq!(
            printed("threads.c", &["100", "50"]),
            expected(&[("work", 800), ("inner", 1600), ("blink", 50)])
        );
        assert_eq!(
            printed("longjmp.c", &["10"]),
            expected(&[("catcher", 10), ("dive", 100), ("leap", 10), ("after", 10)])
        );
        assert_eq!(printed("execself.c", &["self", "3"]), expected(&[("work", 400)]));
        assert_eq!(printed("forker.c", &["5"]), expected(&[("work", 55), ("in_child", 0)]));
        assert_eq!(
            printed("altstack.c", &[]),
            expected(&[
                ("interrupted", 200),
                ("on_alternate", 200),
                ("fiber_step", 300),
                ("fiber_main", 3),
                ("schedule", 101)
            ])
        );
        assert_eq!(
            printed("throw.cpp", &[]),
            expected(&[("thrower", 300), ("passer", 1800), ("catcher", 300), ("plain", 300)])
        );
    }

    #[test]
    fn a_spinning_target_checks_itself() {
        let env = Env {
            ctrace: "/nonexistent".into(),
            targets: Targets::on_host(),
            link: Link::Session,
            slower: 1,
        };
        let target = spinning(&env, &["0", "0", "2"]).expect("spin");
        let path = spin(&env).expect("built");
        assert_eq!(changed_bytes(target.pid(), &path).expect("memory"), Vec::<u64>::new());
        ends_well(target).expect("undisturbed");
    }
}
