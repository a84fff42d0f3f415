//! The memory that ctrace may use: the machine's, or that of its control group. The rings take a
//! part of it.

use std::{fs, path::Path};

const CGROUPS: &str = "/sys/fs/cgroup";

/// The rings of all CPUs take at most the memory, divided by this. The kernel takes it at once.
const RINGS_SHARE: u64 = 1 << 8;
/// The least and the greatest size of a ring.
const RING_BYTES: (u64, u64) = (1 << 20, 16 << 20);

/// Returns the size of each ring if the user asks for none: a power of two.
pub(crate) fn ring_bytes(cpus: usize) -> u64 {
    ring_bytes_in(memory(), cpus)
}

fn ring_bytes_in(memory: u64, cpus: usize) -> u64 {
    let share = memory / RINGS_SHARE / cpus.max(1) as u64;
    1 << share.clamp(RING_BYTES.0, RING_BYTES.1).ilog2()
}

/// Returns the memory in bytes.
pub(super) fn memory() -> u64 {
    let machine = rustix::system::sysinfo();
    let machine = (machine.totalram as u64).saturating_mul(machine.mem_unit.into());
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = folders(&own).filter_map(|folder| {
        fs::read_to_string(Path::new(CGROUPS).join(folder).join("memory.max")).ok()
    });
    limits.filter_map(|limit| limit.trim().parse().ok()).fold(machine, u64::min)
}

/// Returns the control group of a process and all above it, as the unified hierarchy names them.
fn folders(groups: &str) -> impl Iterator<Item = &Path> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    own.into_iter().flat_map(|own| Path::new(own).ancestors())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_above_may_have_a_limit() {
        let found = |groups: &'static str| folders(groups).map(Path::to_owned).collect::<Vec<_>>();
        let unified = found("12:cpu:/x\n0::/system.slice/web.service\n");
        assert_eq!(unified, ["system.slice/web.service", "system.slice", ""].map(Path::new));
        assert_eq!(found("0::/\n"), [Path::new("")]);
        assert!(found("12:memory:/x\n").is_empty());
    }

    #[test]
    fn many_rings_are_smaller() {
        let sizes = [(2, 32), (2, 4), (128, 64), (128, 8), (1, 1)];
        let sizes = sizes.map(|(cpus, gib)| ring_bytes_in(gib << 30, cpus) >> 20);
        assert_eq!(sizes, [16, 8, 2, 1, 4]);
    }

    #[test]
    fn there_is_memory() {
        assert!(memory() > 1 << 20);
    }
}
