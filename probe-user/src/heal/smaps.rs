//! Tells whether a program may have written its code itself, and where the kernel's probe code is.
//!
//! The kernel puts breakpoints into memory that the program cannot write. A program that changes
//! its code (hot patches, text relocations, its own breakpoints) makes it writable first. From then
//! on the mapping has a mark: `ac` in `VmFlags` of /proc/PID/smaps, the kernel's VM_ACCOUNT.

use std::{
    collections::HashSet,
    io::{self, BufRead},
    ops::Range,
};

const TRAMPOLINE: &[u8] = b"[uprobes-trampoline]";
const WRITABLE_NOW: &[u8] = b"wr";
const WRITABLE_ONCE: &[u8] = b"ac";
/// The longest line, in bytes.
const LONGEST_LINE: u64 = 64 << 10;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mappings {
    /// Starts of mappings that were never writable.
    pub(super) unwritten: HashSet<u64>,
    /// The targets of probes on nops.
    pub(super) trampolines: Vec<Range<u64>>,
}

/// Parses the text of /proc/PID/smaps.
pub(super) fn read(mut smaps: impl BufRead) -> io::Result<Mappings> {
    let mut mappings = Mappings::default();
    let (mut line, mut start) = (Vec::new(), None);
    loop {
        line.clear();
        if io::Read::take(&mut smaps, LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(mappings);
        }
        if let Some(addresses) = head(&line) {
            start = Some(addresses.start);
            if line.trim_ascii_end().ends_with(TRAMPOLINE) {
                mappings.trampolines.push(addresses);
            }
        } else if let Some(flags) = line.strip_prefix(b"VmFlags:") {
            let mut flags = flags.split(u8::is_ascii_whitespace);
            let start = start.take();
            if !flags.any(|flag| flag == WRITABLE_NOW || flag == WRITABLE_ONCE) {
                mappings.unwritten.extend(start);
            }
        }
    }
}

/// Returns the addresses in the first line of a mapping.
fn head(line: &[u8]) -> Option<Range<u64>> {
    let first = line.split(|byte| *byte == b' ').next()?;
    let (start, end) = str::from_utf8(first).ok()?.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read() {
        let text = "1000-2000 r-xp 00001000 fe:00 7      /a VmFlags: wr\nRss: 4 kB\n\
                    VmFlags: rd ex mr mw me \n\
                    3000-4000 r-xp 00001000 fe:00 7      /b\nVmFlags: rd ex mr mw me ac \n\
                    5000-6000 rwxp 00001000 fe:00 7      /c\nVmFlags: rd wr ex mr mw me ac \n\
                    7000-8000 r-xp 00000000 00:00 0      [uprobes-trampoline]\nVmFlags: rd ex\n";
        let mappings = read(text.as_bytes()).unwrap();
        assert_eq!(mappings.unwritten, HashSet::from([0x1000, 0x7000]));
        assert_eq!(mappings.trampolines.len(), 1);
        assert_eq!(mappings.trampolines[0], 0x7000..0x8000);
    }

    #[test]
    fn an_endless_line_takes_no_memory() {
        let text = [b'x'; 1 << 20];
        assert_eq!(read(&text[..]).unwrap(), Mappings::default());
    }

    /// The mark stays when the mapping becomes read-only again.
    #[test]
    fn the_kernel_marks_what_was_writable() {
        let text = std::fs::File::open("/proc/self/smaps").unwrap();
        let mappings = read(io::BufReader::new(text)).unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let of = |permissions: &str| -> Vec<u64> {
            let lines = maps.lines().filter(|line| line.contains(permissions));
            lines
                .filter(|line| line.contains('/'))
                .map(|line| head(line.as_bytes()).unwrap().start)
                .collect()
        };
        assert!(of(" r-xp ").iter().all(|start| mappings.unwritten.contains(start)));
        assert!(of(" rw-p ").iter().all(|start| !mappings.unwritten.contains(start)));
    }
}
