//! `cargo xtask vm-test`: runs the table of checks under kernels that have fewer kinds of links.
//! Debian's kernel packages are fetched and unpacked, never installed, and booted under an emulator
//! with everything in an initramfs.

mod boot;
mod cpio;
mod initramfs;
mod kernel;
pub(crate) mod service;

use crate::machine::which;
use crate::setup::{self, Need};
use crate::summary::{Counts, Outcome, Stage, Summary};
use crate::test::Extent;
use crate::{build, paths, progress};
use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Boot only this one
    #[arg(long, value_parser = ["6.1", "6.12"])]
    kernel: Option<String>,
    /// Print what would be installed instead of installing it
    #[arg(long)]
    no_install: bool,
    /// Only boot and run a target untraced: checks the virtual machine itself
    #[arg(long)]
    smoke: bool,
    /// Only boot systemd, and run ctrace as its service
    #[arg(long, conflicts_with_all = ["kernel", "smoke", "cases"])]
    service: bool,
    /// Run only these checks (`cases list` shows them)
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
}

/// A kernel to boot and the links to force there.
struct Machine {
    kernel: &'static str,
    link: &'static str,
    /// The least dependence on the kernel of the checks to run. All others have the same result on
    /// this machine's kernel, or on an older one.
    on: &'static str,
    /// The checks among them that the gate runs.
    gate: &'static [&'static str],
    /// The number of virtual machines that share the checks. Each uses one CPU.
    parts: usize,
}

const MACHINES: &[Machine] = &[
    Machine { kernel: "6.1", link: "perf", on: "kernel", gate: OF_AN_OLD_KERNEL, parts: 2 },
    // This machine's kernel runs all checks with multi links as well. These show what the verifier
    // and the probes of this kernel do.
    Machine { kernel: "6.12", link: "multi", on: "links", gate: OF_MULTI_LINKS, parts: 1 },
];

/// Each kind of program that this verifier sees, what perf links do, and each kind of report that this
/// kernel gives of processes.
const OF_AN_OLD_KERNEL: &[&str] = &[
    "counts",
    "counts_by_ret_sites",
    "recursion_under_return_probes",
    "counted_as_seen",
    "depth_in_the_kernel",
    "min_duration_in_the_kernel",
    "threads",
    "longjmp",
    "exec_of_itself",
    "exec_of_another_program",
    "fork_and_vfork",
    "a_fork_over_long_nops",
    "other_stacks",
    "opened_library",
    "library_opened_after_attach",
    "a_library_that_forbids_return_probes",
    "a_program_that_forbids_return_probes",
    "arguments_of_usdt_probes",
    "an_instruction_the_kernel_refuses",
    "death_by_signal",
    "a_held_command_outlives_ctrace",
    "attach_for_a_while",
    "exec_with_full_rings",
    "attach_until_the_target_is_killed",
    "a_killed_ctrace_leaves_nothing",
    "waits_with_their_reasons",
    "markers_to_every_end",
    "markers_over_exec_of_a_thread",
    "markers_over_fork",
    "messages_and_plots",
    "clock_steps",
];

const OF_MULTI_LINKS: &[&str] = &[
    "counts",
    "threads",
    "longjmp",
    "other_stacks",
    "fork_and_vfork",
    "exec_of_another_program",
    "opened_library",
    "attach_for_a_while",
    "a_killed_ctrace_leaves_nothing",
];

/// The approximate slowdown of the checks on the emulated CPU.
const SLOWER: &str = "50";
/// Time limit of a virtual machine, from power on to power off.
const LIMIT: Duration = Duration::from_secs(1800);

pub(crate) fn main(options: &Options) -> Result<()> {
    setup::ensure(&[Need::Bpf, Need::Compilers, Need::Peers, Need::Machines], options.no_install)?;
    build::for_tests()?;
    let mut summary = Summary::default();
    let mut stage = |name: String, run: &dyn Fn() -> Result<(Outcome, Counts)>| {
        let start = Instant::now();
        let (outcome, counts) = run()
            .unwrap_or_else(|error| (Outcome::Failed(format!("{error:#}")), Counts::default()));
        summary.add(Stage { name, outcome, seconds: start.elapsed().as_secs_f64(), counts });
    };
    let machines = MACHINES.iter().filter(|machine| {
        !options.service && options.kernel.as_ref().is_none_or(|kernel| kernel == machine.kernel)
    });
    for Machine { kernel, .. } in machines {
        stage(format!("vm-test on {kernel}"), &|| match options.smoke {
            true => smoke(kernel),
            false => run(kernel, &options.cases, Extent::All),
        });
    }
    if options.service || options.kernel.is_none() && !options.smoke && options.cases.is_empty() {
        stage("service under systemd".into(), &service::run);
    }
    println!("\n{}", summary.render().trim_end());
    if summary.failed() {
        bail!("not all passed");
    }
    Ok(())
}

/// Boots a kernel and runs the cases there. Without the tools for it, this is skipped.
pub(crate) fn run(kernel: &str, cases: &[String], extent: Extent) -> Result<(Outcome, Counts)> {
    let Some(machine) = MACHINES.iter().find(|machine| machine.kernel == kernel) else {
        bail!("no machine with kernel {kernel}");
    };
    if let Some(skipped) = lacking("g++") {
        return Ok(skipped);
    }
    let parts: Vec<_> = std::thread::scope(|scope| {
        // No machine is without a check.
        let parts = if cases.is_empty() { machine.parts } else { machine.parts.min(cases.len()) };
        let start = |part| scope.spawn(move || run_part(machine, (part, parts), cases, extent));
        let running: Vec<_> = (1..=parts).map(start).collect();
        let end = |part: std::thread::ScopedJoinHandle<'_, _>| {
            part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        running.into_iter().map(end).collect()
    });
    let (mut outcome, mut counts) = (Outcome::Passed, Counts::default());
    for part in parts {
        let (ended, more) = part?;
        counts += more;
        if let Outcome::Failed(_) = ended {
            outcome = ended;
        }
    }
    Ok((outcome, counts))
}

/// Runs one part of the checks in its own machine.
fn run_part(
    machine: &Machine,
    (part, parts): (usize, usize),
    cases: &[String],
    extent: Extent,
) -> Result<(Outcome, Counts)> {
    let Machine { kernel, link, on, gate, .. } = machine;
    let names: Vec<&str> = match extent {
        Extent::Gate if cases.is_empty() => gate.to_vec(),
        _ => cases.iter().map(String::as_str).collect(),
    };
    let which = if parts == 1 { String::new() } else { format!(", part {part}") };
    let mut script = format!(
        "/bin/cases run --ctrace /bin/ctrace --targets /targets --link {link} --slower {SLOWER} \
         --on {} --part {part}/{parts} {}",
        if extent == Extent::All { "nothing" } else { on },
        names.join(" ")
    );
    let mut ended = boot(kernel, &which, &script, Some(paths::tested()))?;
    if ended.locked_up() {
        // This is a rare fault of the machine, not of the checks. A second one would fail.
        eprintln!("{}", progress::tail(&ended.output));
        let last = last_case(&ended.output).map(str::to_owned);
        if let Some(last) = &last {
            script += &format!(" --after {last}");
        }
        let after = last.as_deref().unwrap_or("boot");
        eprintln!(
            "vm-test on {kernel}{which}: LOCKED UP after {after}, see {}; the rest runs in a new machine",
            ended.log.display()
        );
        let before = std::mem::take(&mut ended.output);
        ended = boot(kernel, &format!("{which}, again"), &script, Some(paths::tested()))?;
        ended.output.insert_str(0, &before);
    }
    let counts = Counts::of_cases(&ended.output);
    let failed: Vec<&str> =
        ended.output.lines().filter(|line| line.starts_with("failed ")).collect();
    for line in &failed {
        eprintln!("{line}");
    }
    let outcome = match ended.code {
        Some(0) if failed.is_empty() && counts.passed > 0 => Outcome::Passed,
        Some(0) if failed.is_empty() => Outcome::Failed("no check ran in the machine".into()),
        Some(_) => Outcome::Failed(format!("{link} links; see {}", ended.log.display())),
        None => {
            eprintln!("{}", progress::tail(&ended.output));
            Outcome::Failed(format!(
                "the machine did not get to its end; see {}",
                ended.log.display()
            ))
        }
    };
    Ok((outcome, counts))
}

/// Returns the last check with a result.
fn last_case(output: &str) -> Option<&str> {
    let told =
        |line: &'_ str| ["ok ", "failed ", "skipped "].iter().any(|word| line.starts_with(word));
    let name = output.lines().rev().find(|line| told(line))?.split_whitespace().nth(1)?;
    Some(name.trim_end_matches(':'))
}

fn smoke(kernel: &str) -> Result<(Outcome, Counts)> {
    let script = "/targets/counts-O2-cf-full-fp 1000 && /bin/cases list >/dev/null \
                  && test -s /sys/kernel/btf/vmlinux && echo ok smoke";
    let ended = boot(kernel, "", script, None)?;
    let counts = Counts::of_cases(&ended.output);
    if ended.code == Some(0) && counts.passed == 1 && ended.output.contains("calls descend 201") {
        return Ok((Outcome::Passed, counts));
    }
    eprintln!("{}", progress::tail(&ended.output));
    bail!("the machine ended with {:?}; see {}", ended.code, ended.log.display())
}

fn boot(kernel: &str, which: &str, script: &str, ctrace: Option<PathBuf>) -> Result<boot::Ended> {
    let (image, initramfs) = alone(|| {
        let name = format!("{kernel}{}", which.replace([',', ' '], ""));
        Ok((kernel::fetch(kernel)?, initramfs::make(&name, script, ctrace.as_deref())?))
    })?;
    boot::boot(&format!("virtual machine with {kernel}{which}"), &image, &initramfs, LIMIT)
}

/// Returns the outcome if a required tool is missing. `besides` is a tool that only some machines
/// need.
fn lacking(besides: &str) -> Option<(Outcome, Counts)> {
    let all = ["qemu-system-x86_64", "busybox", "apt-get", "dpkg-deb", "gcc", besides];
    let tool = all.into_iter().find(|tool| which(tool).is_none())?;
    Some((Outcome::Skipped(format!("{tool} is not installed")), Counts::default()))
}

/// Makes common parts of several machines once.
fn alone<T>(make: impl FnOnce() -> Result<T>) -> Result<T> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    make()
}

/// Returns the folder of kernels and file systems.
fn dir() -> PathBuf {
    paths::target().join("vm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_begins_after_the_last_result() {
        let output = "vm: begin 6.1\nok counts (1.0 s)\nskipped cookies: no session links\n\
                      [  513.1] watchdog: BUG: soft lockup\n";
        assert_eq!(last_case(output), Some("cookies"));
        assert_eq!(last_case("vm: begin 6.1\n"), None);
    }
}
