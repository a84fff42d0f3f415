//! The online CPUs and the possible ones.

use crate::bpf::BpfError;
use std::fs;

pub(crate) struct Cpus {
    /// CPUs that run now.
    pub(crate) online: Vec<u32>,
    /// The highest possible CPU number plus 1.
    pub(crate) possible: u32,
}

impl Cpus {
    pub(crate) fn read() -> Result<Self, BpfError> {
        let read = |name: &str| {
            let path = format!("/sys/devices/system/cpu/{name}");
            let text = fs::read_to_string(&path)
                .map_err(|source| BpfError::Unreadable { path: path.clone().into(), source })?;
            parse(&text).ok_or(BpfError::Malformed { path: path.into() })
        };
        let possible = read("possible")?.into_iter().max().map_or(1, |last| last + 1);
        Ok(Self { online: read("online")?, possible })
    }
}

/// Returns the number of online CPUs: each has a ring.
pub(crate) fn online_cpus() -> Result<usize, BpfError> {
    Ok(Cpus::read()?.online.len())
}

/// Returns whether there are CPUs on which the kernel does without ticks while a single thread runs (the kernel's
/// parameter `nohz_full`).
pub(crate) fn some_run_without_ticks() -> bool {
    // Kernels that cannot do so have no such file. Others say `(null)` if there are none.
    let list = fs::read_to_string("/sys/devices/system/cpu/nohz_full");
    list.is_ok_and(|list| parse(&list).is_some())
}

/// Parses a list like `0-3,8`.
fn parse(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > 1 << 16 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(parse("0\n"), Some(vec![0]));
        assert_eq!(parse("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse(""), None);
        assert_eq!(parse("(null)\n"), None);
        assert_eq!(parse("3-1"), None);
        assert_eq!(parse("0-4294967295"), None);
    }
}
