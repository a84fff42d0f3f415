//! The options that `--aggregate` goes with: it counts calls of functions, and keeps none.

use crate::cli::TraceArgs;
use anyhow::bail;
use ctrace_common::MOST_OPEN;
use ctrace_core::report::By;

/// Refuses options that need single calls, or events other than those of functions.
pub(super) fn check(args: &TraceArgs) -> anyhow::Result<()> {
    if !args.aggregate {
        return Ok(());
    }
    let TraceArgs { select, program, values, output, filter, probes, .. } = args;
    let takes_apart = matches!(output.by, Some(By::Value { .. }));
    let wrong = [
        (
            values.locks,
            "--locks needs every call, and --aggregate keeps none: leave out one of them",
        ),
        (select.functions.is_empty(), "--aggregate counts calls of functions: choose them with -f"),
        (
            !select.markers.is_empty(),
            "--aggregate counts calls of functions only: leave out -m, or --aggregate",
        ),
        (
            !select.usdt.is_empty() || !program.pairs.is_empty(),
            "--aggregate counts calls of functions only: leave out -u and --pair, or --aggregate",
        ),
        (
            !values.results.is_empty() || !values.conditions.is_empty(),
            "--aggregate reads values at entries only, and counts all calls: leave out --ret and --where, or \
             --aggregate",
        ),
        (
            !values.arguments.is_empty() && !takes_apart,
            "--aggregate keeps no values of calls: count calls apart by one with --by 'FUNCTION: ARG', or leave \
             out --arg",
        ),
        (
            output.by.is_some() && !takes_apart,
            "--by needs every call, and --aggregate keeps none: leave out one of them, or take calls apart by an \
             argument",
        ),
        (
            output.frame.is_some(),
            "--frame needs every call, and --aggregate keeps none: leave out one of them",
        ),
        (
            probes.cpu || probes.wakers,
            "--cpu needs the times of single calls, and --aggregate keeps none: leave out one of them",
        ),
        (
            probes.budget.is_some(),
            "--budget cannot estimate what --aggregate counts: use --max-slowdown, or leave out one \
             of them",
        ),
        (
            !filter.threads.is_empty(),
            "--aggregate counts the calls of all threads: leave out --thread, or --aggregate",
        ),
        (
            filter.depth.is_some_and(|depth| depth as usize >= MOST_OPEN),
            "--aggregate knows 128 open calls of a thread: --depth can be 127 at most",
        ),
    ];
    match wrong.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, why)) => bail!(why),
        None => Ok(()),
    }
}
