//! The memory that ctrace may use: the machine's, or that of its control group.

use std::{fs, path::Path};

const CGROUPS: &str = "/sys/fs/cgroup";

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
    fn there_is_memory() {
        assert!(memory() > 1 << 20);
    }
}
