//! Who holds a lock is known only from all calls of the functions that take and release it.

use crate::{
    session::{
        plan::{Plan, marked_locks::MarkedLocks},
        spec::TraceSpec,
    },
    target::{select::pattern::Pattern, values::locks},
};
use anyhow::bail;
use ctrace_core::units::Nanos;

/// Refuses what would leave out single calls of lock functions.
pub(super) fn check(spec: &TraceSpec) -> anyhow::Result<()> {
    let asked = spec.select.asked_of_functions()?;
    let mut conditions = asked.iter().filter(|asked| asked.condition.is_some());
    let wrong = [
        (
            conditions.any(|asked| meets_lock_functions(&asked.functions)),
            "--where for lock functions",
        ),
        (spec.select.exclude.iter().any(|it| meets_lock_functions(it)), "-x for lock functions"),
    ];
    let option = wrong.into_iter().find(|(is_so, _)| *is_so).map(|(_, option)| option);
    if let Some(option) = leaves_calls_out(spec).or(option) {
        bail!("--locks needs every lock and unlock: leave out {option}");
    }
    Ok(())
}

/// Returns an option by which not all calls count, whatever they are of.
fn leaves_calls_out(spec: &TraceSpec) -> Option<&'static str> {
    let options = [
        (spec.probes.budget.is_some(), "--budget"),
        (spec.filter.min_duration > Nanos::ZERO, "--min-duration"),
        (spec.filter.max_depth.is_some(), "--depth"),
    ];
    options.into_iter().find(|(is_so, _)| *is_so).map(|(_, option)| option)
}

/// Returns how locks are treated of which markers tell.
pub(super) fn of_markers(spec: &TraceSpec) -> MarkedLocks {
    leaves_calls_out(spec).map_or(MarkedLocks::Followed, MarkedLocks::Against)
}

/// Returns whether a pattern matches a lock function of libc. A wrong pattern is told elsewhere.
fn meets_lock_functions(pattern: &str) -> bool {
    Pattern::parse(pattern).is_ok_and(|pattern| {
        locks::LIBRARIES.iter().any(|name| pattern.matches_object_name(name, name))
            && locks::names().any(|name| pattern.matches_name(name))
    })
}

/// Returns notes on lock functions that cannot be traced.
pub(crate) fn notes(plan: &Plan) -> impl Iterator<Item = String> {
    let refused = plan.refused.iter().filter(|of| locks::names().any(|name| name == &*of.name));
    refused.map(|of| {
        format!(
            "--locks: {} of {} cannot be traced ({}): who holds a lock is not known where it is called",
            of.name, of.object, of.why
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_lock_functions_are_known() {
        for pattern in
            ["*trylock", "pthread_mutex_unlock", "/wait/", "*", "*lock@libc", "*@libc.so.6"]
        {
            assert!(meets_lock_functions(pattern), "{pattern}");
        }
        for pattern in ["handle_*", "pthread_create", "*lock@libfoo.so", "*spin*", "/["] {
            assert!(!meets_lock_functions(pattern), "{pattern}");
        }
    }
}
