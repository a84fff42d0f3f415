//! The numbers of a lock as a row of a report.

use super::names::LockNames;
use crate::goroutines::id_beside_name;
use crate::locks::CallerSums;
use crate::locks::event::Caller;
use crate::locks::ledger::{LockFacts, Times};
use crate::recording::Recording;
use crate::report::{LockCallerReport, LockReport};
use crate::stats::rank::nearest_rank;
use crate::units::{Nanos, Pid};
use std::sync::Arc;

/// Names a lock and its callers.
pub(super) fn of_facts(
    recording: &Recording,
    names: &LockNames<'_>,
    facts: LockFacts,
) -> LockReport {
    let LockFacts { id, kind, sums, waits, callers } = facts;
    let name_of_caller = |caller: Caller| -> Arc<str> {
        match caller {
            Caller::Function(function) => recording.functions()[function.index()].name.clone(),
            Caller::Address(address) => names.of_address(id.pid, address),
            Caller::Thread(thread) => match recording.thread(thread) {
                Some(thread) => match id_beside_name(thread.tid, &thread.name) {
                    Some(id) => format!("thread {id} {}", thread.name).trim_end().into(),
                    None => thread.name.clone(),
                },
                None => "other callers".into(),
            },
            Caller::Unknown => "other callers".into(),
        }
    };
    let of_caller = |(caller, sums): &(Caller, CallerSums)| LockCallerReport {
        name: name_of_caller(*caller),
        waits: sums.waits,
        wait_ns: Nanos(sums.wait_ns),
        blocked: sums.blocked,
        blocked_ns: Nanos(sums.blocked_ns),
    };
    let mean = |times: &Times| times.total.checked_div(times.count).map(Nanos);
    let max = |times: &Times| (times.count > 0).then_some(Nanos(times.max));
    let p99 = waits.at(nearest_rank(sums.waits.count, 990));
    let p99 = p99.map(|p99| Nanos(p99.min(sums.waits.max)));
    LockReport {
        name: names.of(id),
        address: format!("{:#x}", id.address),
        pid: (id.pid != Pid(0)).then_some(id.pid),
        kind,
        recursive: sums.recursive,
        acquisitions: sums.acquisitions,
        shared: sums.shared,
        nested: sums.nested,
        refused: sums.refused,
        timed_out: sums.timed_out,
        failed: sums.failed,
        unclear: sums.unclear,
        contended: sums.contended,
        wait_ns: Nanos(sums.waits.total),
        wait_mean_ns: mean(&sums.waits),
        wait_p99_ns: p99,
        wait_max_ns: max(&sums.waits),
        open_waits: sums.open_waits.count,
        open_wait_max_ns: max(&sums.open_waits).filter(|max| *max > Nanos::ZERO),
        uncontended_ns: Nanos(sums.uncontended.total),
        uncontended_max_ns: max(&sums.uncontended),
        conditions: sums.conditions.count,
        conditions_ns: Nanos(sums.conditions.total),
        holds: sums.holds.count,
        hold_ns: Nanos(sums.holds.total),
        hold_mean_ns: mean(&sums.holds),
        hold_max_ns: max(&sums.holds),
        unknown_holds: sums.unknown_holds,
        open_holds: sums.open_holds,
        blocked_ns: Nanos(sums.blocked_ns),
        partly_blamed: sums.partly_blamed,
        callers: callers.iter().map(of_caller).collect(),
    }
}
