//! Heals after a death: the guard after ctrace's, ctrace after its guard's.

use super::{HealError, Outcome, in_a_child, mend::mend, others};
use crate::bpf::Left;
use ctrace_core::units::Pid;
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// No process and no place is begun after this time.
const LIMIT: Duration = Duration::from_secs(60);

/// Removes what a dead ctrace left. This runs in the guard, which nothing interrupts.
pub(crate) fn of_ctrace(left: &Left) {
    remove(left, |pid, limit| Ok(mend(pid.0, limit)?.0));
}

/// Removes what a dead guard left. A child does it, because ctrace may be interrupted.
pub(crate) fn of_guard(left: &Left) {
    remove(left, |pid, limit| in_a_child::process(pid, limit, None));
}

/// Probes of the dead one may still be there in the first process and gone in the next, so nothing is remembered.
fn remove(left: &Left, remove: fn(Pid, Duration) -> Result<Outcome, HealError>) {
    let until = Instant::now() + LIMIT;
    for pid in concerned(left).into_iter().take_while(|_| Instant::now() < until) {
        match remove(pid, until.saturating_duration_since(Instant::now())) {
            Ok(outcome) => {
                if let Some(line) = outcome.removal() {
                    tracing::warn!("process {}: {line}", pid.0);
                }
            }
            // Most processes have ended meanwhile.
            Err(error) => tracing::debug!("{error}"),
        }
    }
}

/// Lists processes that links were bound to, and all that map a file of an unbound link.
fn concerned(left: &Left) -> BTreeSet<Pid> {
    let mapping = if left.inodes.is_empty() { Vec::new() } else { others::mapping(&left.inodes) };
    left.pids.iter().copied().chain(mapping.into_iter().map(Pid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::HashSet, os::unix::fs::MetadataExt as _};

    #[test]
    fn links_bound_to_no_process_concern_all_that_map_the_file() {
        let own = Pid(std::process::id());
        let inode = std::fs::metadata("/proc/self/exe").unwrap().ino();
        let of = |pids: &[u32], inodes: &[u64]| {
            let pids = pids.iter().copied().map(Pid).collect();
            concerned(&Left { pids, inodes: HashSet::from_iter(inodes.iter().copied()) })
        };
        assert_eq!(of(&[7], &[]), BTreeSet::from([Pid(7)]));
        let all = of(&[7], &[inode]);
        assert!(all.contains(&own) && all.contains(&Pid(7)));
        assert!(of(&[], &[]).is_empty());
    }
}
