//! Reads /proc/PID/maps.

use anyhow::Result;
use std::fs;

/// A mapping of a process.
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// As the kernel writes them: `r-xp`.
    pub(crate) rights: String,
    pub(crate) offset: u64,
    /// Empty if it has none.
    pub(crate) path: String,
    /// True if the file has another name by now, or none.
    pub(crate) is_gone: bool,
}

impl Mapping {
    pub(crate) fn is_code(&self) -> bool {
        self.rights.contains('x')
    }
}

/// Returns the mappings of a process.
pub(crate) fn of(pid: i32) -> Result<Vec<Mapping>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    Ok(maps.lines().filter_map(parse).collect())
}

fn parse(line: &str) -> Option<Mapping> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
    let rights = words.next()?.to_owned();
    let offset = hexadecimal(words.next()?)?;
    let path = words.nth(2).unwrap_or_default().to_owned();
    Some(Mapping { start, end, rights, offset, path, is_gone: words.next().is_some() })
}
