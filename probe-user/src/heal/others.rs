//! The processes that map a file: breakpoints are a matter of the file, and concern all of them.

use crate::target::maps;
use std::{collections::HashSet, fs};

/// The ids of all processes.
fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Those that have one of these inodes mapped as code. Another file system's file may have the same
/// inode: whoever looks closer finds nothing there.
pub(super) fn mapping(inodes: &HashSet<u64>) -> Vec<u32> {
    all().filter(|pid| maps::maps_code_of(*pid, inodes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn this_process_maps_its_program() {
        let own = std::process::id();
        let inode = fs::metadata("/proc/self/exe").unwrap().ino();
        assert!(mapping(&HashSet::from([inode])).contains(&own));
        assert!(!mapping(&HashSet::new()).contains(&own));
    }
}
