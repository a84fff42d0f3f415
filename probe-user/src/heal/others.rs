//! Lists the processes that map a file: a breakpoint belongs to the file and concerns all of them.

use crate::target::process::{facts::all, maps};
use std::collections::HashSet;

/// Lists processes with one of these inodes mapped as code. Another file system may have the same
/// inode: a closer look finds nothing there.
pub(super) fn mapping(inodes: &HashSet<u64>) -> Vec<u32> {
    all().map(|pid| pid.0).filter(|pid| maps::maps_code_of(*pid, inodes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::MetadataExt as _};

    #[test]
    fn this_process_maps_its_program() {
        let own = std::process::id();
        let inode = fs::metadata("/proc/self/exe").unwrap().ino();
        assert!(mapping(&HashSet::from([inode])).contains(&own));
        assert!(!mapping(&HashSet::new()).contains(&own));
    }
}
