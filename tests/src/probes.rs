//! Sees breakpoints in a process from outside, by its own memory file.

use crate::maps;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

const PAGE: usize = 4096;

/// Returns the bytes of the executable mappings of `file` in process `pid` that differ from the
/// file: uprobes changed them. Empty when none is armed.
pub fn changed_bytes(pid: i32, file: &Path) -> Result<Vec<u64>> {
    let inode = std::fs::canonicalize(file)?;
    let disk = File::open(&inode)?;
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let mut changed = Vec::new();
    for mapping in maps::of(pid)? {
        if !mapping.is_code() || Path::new(&mapping.path) != inode {
            continue;
        }
        let length = usize::try_from(mapping.end - mapping.start)?;
        let (mut on_disk, mut in_memory) = (vec![0; length], vec![0; length]);
        let known = read_up_to(&disk, &mut on_disk, mapping.offset)?;
        memory
            .read_exact_at(&mut in_memory, mapping.start)
            .with_context(|| format!("memory of {pid} at {:x}", mapping.start))?;
        // Tests look often, while most of the code is as it was.
        let pages = on_disk[..known].chunks(PAGE).zip(in_memory.chunks(PAGE)).enumerate();
        for (page, (disk, memory)) in pages.filter(|(_, (disk, memory))| disk != memory) {
            let first = mapping.offset + (page * PAGE) as u64;
            let differing = (first..).zip(disk.iter().zip(memory)).filter(|(_, (a, b))| a != b);
            changed.extend(differing.map(|(at, _)| at));
        }
    }
    Ok(changed)
}

/// Waits until a file's code in a process has breakpoints, and no more come.
pub fn wait_until_armed(pid: i32, file: &Path) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(100);
    let (mut last, mut quiet) = (Vec::new(), 0);
    for _ in 0..1200 {
        let now = changed_bytes(pid, file)?;
        quiet = if now.is_empty() || now != last { 0 } else { quiet + 1 };
        if quiet == 3 {
            return Ok(());
        }
        last = now;
        std::thread::sleep(PAUSE);
    }
    bail!("no probe was armed within two minutes")
}

fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64)? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_untraced_process_has_its_file_in_memory() {
        let own = std::env::current_exe().expect("own path");
        // Process ids fit: the kernel's maximum is 2^22.
        let pid = std::process::id() as i32;
        assert_eq!(changed_bytes(pid, &own).expect("own memory"), Vec::<u64>::new());
    }
}
