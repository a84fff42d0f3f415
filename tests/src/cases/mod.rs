//! The checks that hold for every kernel and every kind of link, as a table.
//!
//! On the host, each is a `#[test]` per link. In the virtual machines, the `cases` binary runs
//! them.

mod aggregate;
mod attach;
mod call_values;
mod calls;
mod clock;
mod conditions;
mod held;
mod markers;
mod objects;
mod pairs;
mod payloads;
mod processes;
mod recordings;
mod sleepers;
mod thrift;
mod unwinding;
mod waits;

use crate::env::{Env, Link};
use crate::targets::{Build, program};
use crate::trace::{Trace, Traced};
use crate::truth::Truth;
use anyhow::{Result, ensure};
use std::process::Command;
use std::time::Duration;

/// One check.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    /// Returns an error that tells what is wrong.
    pub check: fn(&Env) -> Result<()>,
    /// The reason why it does not apply to a link.
    pub unsuited: fn(Link) -> Option<&'static str>,
    pub depends: On,
}

/// The part of a machine on which a check depends. The check is repeated where that part differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    /// None: the check is about ctrace's handling of events.
    Nothing,
    /// The kernel's release: its reports about processes, and its refusals.
    Kernel,
    /// The kind of link as well: how probes are placed, switched and removed. Only return probes
    /// differ between session and multi links. All others have multi links wherever the kernel knows
    /// them, so a machine with session links and one with perf links tell everything about them.
    Links,
}

impl On {
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "nothing" => Some(Self::Nothing),
            "kernel" => Some(Self::Kernel),
            "links" => Some(Self::Links),
            _ => None,
        }
    }
}

fn needs_guards(link: Link) -> Option<&'static str> {
    (link != Link::Session).then_some("return probes are guarded with session links only")
}

fn needs_waiting(link: Link) -> Option<&'static str> {
    (link != Link::Session).then_some("threads wait where there are session links only")
}

fn needs_values(link: Link) -> Option<&'static str> {
    (link != Link::Session)
        .then_some("arguments and results are read where there are session links")
}

fn any_link(_: Link) -> Option<&'static str> {
    None
}

fn not_multi(link: Link) -> Option<&'static str> {
    (link == Link::Multi).then_some("other links show what there is to see of return probes")
}

/// A perf link takes 100 ms to close on some kernels.
fn not_perf(link: Link) -> Option<&'static str> {
    (link == Link::Perf).then_some("detaching many perf links takes minutes")
}

const fn case(name: &'static str, depends: On, check: fn(&Env) -> Result<()>) -> Case {
    Case { name, check, unsuited: any_link, depends }
}

/// All checks that disturb nobody, by name.
pub const CASES: &[Case] = &[
    case("counts", On::Links, calls::counts),
    case("counts_by_ret_sites", On::Kernel, calls::counts_by_ret_sites),
    case("recursion_under_return_probes", On::Links, calls::recursion_under_return_probes),
    case("known_durations", On::Kernel, calls::known_durations),
    Case {
        name: "time_behind_a_tail_call",
        check: calls::time_behind_a_tail_call,
        unsuited: needs_guards,
        depends: On::Nothing,
    },
    case("threads", On::Links, calls::threads),
    case("counted_as_seen", On::Links, aggregate::counted_as_seen),
    case("counted_to_a_depth", On::Links, aggregate::counted_to_a_depth),
    Case {
        name: "counted_by_value",
        check: aggregate::counted_by_value,
        unsuited: needs_values,
        depends: On::Nothing,
    },
    case("counted_on_other_stacks", On::Nothing, aggregate::counted_on_other_stacks),
    case("depth_in_the_kernel", On::Links, thrift::depth_in_the_kernel),
    case("min_duration_in_the_kernel", On::Links, thrift::min_duration_in_the_kernel),
    case("depth_on_stacks_beside_each_other", On::Links, thrift::depth_on_stacks_beside_each_other),
    case(
        "return_probes_that_go_in_the_kernel",
        On::Links,
        thrift::return_probes_that_go_in_the_kernel,
    ),
    case("longjmp", On::Links, unwinding::longjmp),
    case("setjmp_kin", On::Kernel, unwinding::setjmp_kin),
    case("exec_of_itself", On::Links, processes::exec_of_itself),
    case("nothing_of_the_launcher", On::Nothing, processes::nothing_of_the_launcher),
    case("exec_of_another_program", On::Links, processes::exec_of_another_program),
    case("fork_and_vfork", On::Links, processes::fork_and_vfork),
    case("a_fork_over_long_nops", On::Links, processes::a_fork_over_long_nops),
    case("other_stacks", On::Links, unwinding::other_stacks),
    case("switches_and_tail_jumps", On::Nothing, calls::switches_and_tail_jumps),
    case("exceptions", On::Kernel, unwinding::exceptions),
    case("exceptions_at_once", On::Nothing, unwinding::exceptions_at_once),
    case("panics", On::Kernel, unwinding::panics),
    case("cold_parts", On::Nothing, objects::cold_parts),
    case("opened_library", On::Links, objects::opened_library),
    case("usdt_probes", On::Kernel, objects::usdt_probes),
    case("arguments_of_usdt_probes", On::Kernel, payloads::arguments_of_usdt_probes),
    case("arguments_through_the_spool", On::Nothing, payloads::arguments_through_the_spool),
    Case {
        name: "arguments_and_results",
        check: call_values::arguments_and_results,
        unsuited: needs_values,
        depends: On::Links,
    },
    Case {
        name: "arguments_by_name",
        check: call_values::arguments_by_name,
        unsuited: needs_values,
        depends: On::Nothing,
    },
    Case {
        name: "members_by_name",
        check: call_values::members_by_name,
        unsuited: needs_values,
        depends: On::Nothing,
    },
    Case {
        name: "places_of_rust",
        check: call_values::places_of_rust,
        unsuited: needs_values,
        depends: On::Nothing,
    },
    Case {
        name: "results_at_ret_sites",
        check: call_values::results_at_ret_sites,
        unsuited: needs_values,
        depends: On::Kernel,
    },
    Case {
        name: "conditions_by_place",
        check: conditions::conditions_by_place,
        unsuited: needs_values,
        depends: On::Links,
    },
    Case {
        name: "conditions_by_name",
        check: conditions::conditions_by_name,
        unsuited: needs_values,
        depends: On::Nothing,
    },
    Case {
        name: "conditions_at_ret_sites",
        check: conditions::conditions_at_ret_sites,
        unsuited: needs_values,
        depends: On::Kernel,
    },
    Case {
        name: "calls_that_were_left",
        check: conditions::calls_that_were_left,
        unsuited: needs_values,
        depends: On::Links,
    },
    Case {
        name: "texts_of_usdt_probes",
        check: payloads::texts_of_usdt_probes,
        unsuited: needs_values,
        depends: On::Kernel,
    },
    case("usdt_values", On::Nothing, objects::usdt_values),
    case("pairs_of_usdt_probes", On::Kernel, pairs::pairs_of_usdt_probes),
    case("recorded_pairs", On::Nothing, pairs::recorded_pairs),
    case("pairs_as_points", On::Nothing, pairs::pairs_as_points),
    case("a_recording_is_a_trace", On::Nothing, recordings::a_recording_is_a_trace),
    case(
        "an_instruction_the_kernel_refuses",
        On::Links,
        objects::an_instruction_the_kernel_refuses,
    ),
    case("exit_code_is_the_targets", On::Kernel, processes::exit_code_is_the_targets),
    case("death_by_signal", On::Kernel, processes::death_by_signal),
    case("library_opened_after_attach", On::Links, objects::library_opened_after_attach),
    case(
        "a_library_that_forbids_return_probes",
        On::Links,
        objects::a_library_that_forbids_return_probes,
    ),
    case(
        "a_program_that_forbids_return_probes",
        On::Links,
        objects::a_program_that_forbids_return_probes,
    ),
    Case {
        name: "a_library_that_switches_stacks_at_once",
        check: objects::a_library_that_switches_stacks_at_once,
        unsuited: needs_guards,
        depends: On::Nothing,
    },
    case("exec_after_a_stop_for_slowness", On::Nothing, held::exec_after_a_stop_for_slowness),
    case("a_held_command_outlives_ctrace", On::Links, held::a_held_command_outlives_ctrace),
    case("exec_with_full_rings", On::Kernel, held::exec_with_full_rings),
    case("attach_for_a_while", On::Links, attach::attach_for_a_while),
    case("attach_until_the_target_ends", On::Kernel, attach::attach_until_the_target_ends),
    case(
        "attach_until_the_target_is_killed",
        On::Kernel,
        attach::attach_until_the_target_is_killed,
    ),
    case("a_killed_ctrace_leaves_nothing", On::Links, attach::a_killed_ctrace_leaves_nothing),
    Case {
        name: "waits_with_their_reasons",
        check: waits::waits_with_their_reasons,
        unsuited: not_multi,
        depends: On::Kernel,
    },
    case("waits_with_who_ended_them", On::Kernel, waits::waits_with_who_ended_them),
    case("sleepers_do_not_lead", On::Kernel, sleepers::sleepers_do_not_lead),
    case("markers_to_every_end", On::Kernel, markers::markers_to_every_end),
    case("markers_in_brief_threads", On::Nothing, markers::markers_in_brief_threads),
    case("markers_at_full_rate", On::Nothing, markers::markers_at_full_rate),
    case("markers_as_threads_leave", On::Kernel, markers::markers_as_threads_leave),
    case("markers_over_exec", On::Kernel, markers::markers_over_exec),
    case("markers_over_exec_of_a_thread", On::Kernel, markers::markers_over_exec_of_a_thread),
    case("markers_over_fork", On::Kernel, markers::markers_over_fork),
    case("markers_in_all_flows", On::Nothing, markers::markers_in_all_flows),
    case("markers_in_signal_handlers", On::Nothing, markers::markers_in_signal_handlers),
    case("markers_under_exceptions", On::Nothing, markers::markers_under_exceptions),
    case("markers_in_unusual_programs", On::Nothing, markers::markers_in_unusual_programs),
    case("markers_of_rust", On::Nothing, markers::markers_of_rust),
    case("markers_of_two_runtimes", On::Nothing, markers::markers_of_two_runtimes),
    case("markers_of_an_opened_library", On::Kernel, markers::markers_of_an_opened_library),
    case("markers_scribbled_over", On::Nothing, markers::markers_scribbled_over),
    case("markers_in_an_endless_list", On::Nothing, markers::markers_in_an_endless_list),
    case("markers_in_one_tree", On::Nothing, markers::markers_in_one_tree),
    case("markers_by_interval", On::Nothing, markers::markers_by_interval),
    Case {
        name: "markers_in_a_burst",
        check: markers::markers_in_a_burst,
        unsuited: needs_waiting,
        depends: On::Nothing,
    },
    case("markers_with_full_rings", On::Nothing, markers::markers_with_full_rings),
    case("markers_attached_again", On::Nothing, markers::markers_attached_again),
    case("markers_attached_often", On::Nothing, markers::markers_attached_often),
    case("markers_of_a_killed_ctrace", On::Kernel, markers::markers_of_a_killed_ctrace),
    case("markers_chosen", On::Nothing, markers::markers_chosen),
    case("markers_chosen_by_two", On::Kernel, markers::markers_chosen_by_two),
    case("async_calls_across_threads", On::Nothing, markers::async_calls_across_threads),
    case("messages_and_plots", On::Kernel, markers::messages_and_plots),
    Case {
        name: "a_thousand_functions",
        check: calls::a_thousand_functions,
        unsuited: not_perf,
        depends: On::Links,
    },
];

/// Checks that change state shared by all processes of a machine.
const MACHINE_CASES: &[Case] = &[case("clock_steps", On::Kernel, clock::clock_steps)];

/// Returns the checks for a machine without other users.
pub fn all() -> impl Iterator<Item = &'static Case> {
    CASES.iter().chain(MACHINE_CASES)
}

/// Returns the check with this name.
pub fn find(name: &str) -> Option<&'static Case> {
    all().find(|case| case.name == name)
}

/// Returns the programs of the table, for a machine that cannot build them.
pub fn builds() -> Vec<Build> {
    let mut all: Vec<Build> = [
        "counts.c",
        "rounds.c",
        "sleeps.c",
        "threads.c",
        "longjmp.c",
        "setjmp.c",
        "execself.c",
        "idle.c",
        "becomes.c",
        "forker.c",
        "nop5.c",
        "altstack.c",
        "beside.c",
        "ownstack.c",
        "switch.c",
        "throw.cpp",
        "catches.cpp",
        "throws_late.cpp",
        "throw_at_once.cpp",
        "cold.cpp",
        "dl.c",
        "opens_late.c",
        "libplug.c",
        "libswitch.c",
        "libfiber.c",
        "opened_fiber.c",
        "ownids.c",
        "usdt.c",
        "usdt_texts.c",
        "usdt_methods.c",
        "usdt_values.c",
        "usdt_pairs.c",
        "call_values.c",
        "crash.c",
        "spin.c",
        "locked.c",
        "waits.c",
        "wakers.c",
        "sleepers.c",
    ]
    .map(program)
    .into();
    all.push(panic_program());
    all.extend(call_values::named());
    all.extend(call_values::passed());
    all.extend(markers::builds());
    all
}

/// The number of functions that `a_thousand_functions` traces.
pub const MANY: usize = 1000;

fn panic_program() -> Build {
    program("panic.rs").flags(["-O"])
}

/// Runs `build` untraced, for its output and its exit code.
fn untraced(env: &Env, build: &Build, arguments: &[&str]) -> Result<crate::process::Finished> {
    let path = env.targets.get(build)?;
    crate::process::run(Command::new(path).args(arguments), Duration::from_secs(60))
}

/// Traces `globs` of a program. Its exit code and output must equal those of the untraced run, and
/// the calls must equal its own counts.
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

#[cfg(test)]
mod tests;
