//! Runs the table of checks on this machine's kernel with session links. Those that depend on the
//! kind of link run with multi links and with perf links where ctrace uses them: in virtual machines,
//! under Linux 6.12 and 6.1. `cargo xtask test --all` runs all checks here with each kind.

use ctrace_tests::env::Link;
use ctrace_tests::{cases, gate, or_skip};
use std::sync::{PoisonError, RwLock};

/// Held alone by tests that measure time, so that no other test competes for the CPUs.
static QUIET: RwLock<()> = RwLock::new(());
const MEASURING: &[&str] = &["known_durations", "attach_for_a_while"];

fn check(name: &str) {
    // A failed test poisons the lock. That does not concern the next one.
    let _alone =
        MEASURING.contains(&name).then(|| QUIET.write().unwrap_or_else(PoisonError::into_inner));
    let _shared = _alone.is_none().then(|| QUIET.read().unwrap_or_else(PoisonError::into_inner));
    let case = cases::find(name).expect("a case of this name");
    let env = or_skip!(gate::live(Link::Session));
    if let Err(error) = (case.check)(&env) {
        panic!("{name}: {error:#}");
    }
}

/// A test for each case.
macro_rules! kernel_tests {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        #[test]
        fn every_case_of_the_table_is_here() {
            let here = [$(stringify!($name)),*];
            for case in cases::CASES {
                assert!(here.contains(&case.name), "{} is missing in kernel.rs", case.name);
            }
        }
    };
}

kernel_tests! {
    counts
    counts_by_ret_sites
    recursion_under_return_probes
    threads
    counted_as_seen
    counted_to_a_depth
    counted_by_value
    counted_on_other_stacks
    depth_in_the_kernel
    min_duration_in_the_kernel
    depth_on_stacks_beside_each_other
    return_probes_that_go_in_the_kernel
    longjmp
    exec_of_itself
    exec_of_another_program
    fork_and_vfork
    a_fork_over_long_nops
    other_stacks
    opened_library
    arguments_of_usdt_probes
    arguments_through_the_spool
    arguments_and_results
    arguments_by_name
    members_by_name
    places_of_rust
    results_at_ret_sites
    conditions_by_place
    conditions_by_name
    conditions_at_ret_sites
    calls_that_were_left
    usdt_probes
    an_instruction_the_kernel_refuses
    library_opened_after_attach
    a_library_that_forbids_return_probes
    a_program_that_forbids_return_probes
    a_library_that_switches_stacks_at_once
    exec_after_a_stop_for_slowness
    waits_with_their_reasons
    waits_with_who_ended_them
    sleepers_do_not_lead
    a_held_command_outlives_ctrace
    attach_for_a_while
    a_killed_ctrace_leaves_nothing
    markers_over_exec
    markers_over_fork
    markers_of_an_opened_library
    markers_attached_again
    markers_of_a_killed_ctrace
    markers_chosen
    markers_chosen_by_two
    a_thousand_functions
    known_durations
    time_behind_a_tail_call
    setjmp_kin
    nothing_of_the_launcher
    switches_and_tail_jumps
    exceptions
    exceptions_at_once
    panics
    cold_parts
    usdt_values
    pairs_of_usdt_probes
    texts_of_usdt_probes
    recorded_pairs
    pairs_as_points
    a_recording_is_a_trace
    exit_code_is_the_targets
    death_by_signal
    exec_with_full_rings
    attach_until_the_target_ends
    attach_until_the_target_is_killed
    markers_to_every_end
    markers_in_brief_threads
    markers_at_full_rate
    markers_as_threads_leave
    markers_over_exec_of_a_thread
    markers_in_all_flows
    markers_in_signal_handlers
    markers_under_exceptions
    markers_in_unusual_programs
    markers_of_rust
    markers_of_two_runtimes
    markers_scribbled_over
    markers_in_an_endless_list
    markers_in_one_tree
    markers_by_interval
    markers_in_a_burst
    markers_with_full_rings
    markers_attached_often
    messages_and_plots
    async_calls_across_threads
}
