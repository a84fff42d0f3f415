//! Finds the pages of a mapping that are the process's own copies: only there can its code differ
//! from the file. /proc/PID/pagemap tells without touching a page.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt as _};

/// Entries read at a time.
const CHUNK: u64 = 8192;
const ENTRY_BYTES: u64 = 8;
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// The bit of a page that is the file's own.
const OF_THE_FILE: u64 = 1 << 61;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Copies {
    /// Addresses of the copies in memory.
    pub(super) pages: Vec<u64>,
    /// The number of copies that are swapped out: reading them would bring them back.
    pub(super) swapped: u64,
}

/// Finds the copies in a range of addresses.
pub(super) fn find(pagemap: &File, addresses: &Range<u64>, page_bytes: u64) -> io::Result<Copies> {
    let mut copies = Copies::default();
    let pages = addresses.start / page_bytes..addresses.end / page_bytes;
    let mut bytes =
        vec![0; (pages.end.saturating_sub(pages.start).min(CHUNK) * ENTRY_BYTES) as usize];
    let mut next = pages.start;
    while next < pages.end {
        let count = (pages.end - next).min(CHUNK);
        let chunk = &mut bytes[..(count * ENTRY_BYTES) as usize];
        pagemap.read_exact_at(chunk, next * ENTRY_BYTES)?;
        copies.add(next, chunk, page_bytes);
        next += count;
    }
    Ok(copies)
}

impl Copies {
    /// Adds the entries of pages from `first` on.
    fn add(&mut self, first: u64, entries: &[u8], page_bytes: u64) {
        for (page, entry) in (first..).zip(entries.as_chunks::<8>().0) {
            let entry = u64::from_ne_bytes(*entry);
            if entry & PRESENT != 0 && entry & OF_THE_FILE == 0 {
                self.pages.push(page * page_bytes);
            } else if entry & SWAPPED != 0 {
                self.swapped += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_copies_count() {
        let absent = 0_u64;
        let of_the_file = PRESENT | OF_THE_FILE | 7;
        let copy = PRESENT | 7;
        let entries = [of_the_file, copy, absent, SWAPPED | 5, copy, SWAPPED | 6];
        let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect();
        let mut copies = Copies::default();
        copies.add(16, &bytes, 4096);
        assert_eq!(copies, Copies { pages: vec![17 * 4096, 20 * 4096], swapped: 2 });
    }

    #[test]
    fn more_entries_than_are_read_at_once() {
        let mut entries = vec![PRESENT | OF_THE_FILE; CHUNK as usize * 2 + 3];
        let copies = [0, CHUNK as usize, CHUNK as usize * 2 + 1];
        copies.iter().for_each(|page| entries[*page] = PRESENT);
        let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect();
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), bytes).unwrap();
        let file = File::open(path.path()).unwrap();
        let found = find(&file, &(0..entries.len() as u64 * 4096), 4096).unwrap();
        assert_eq!(found.pages, copies.map(|page| page as u64 * 4096));
    }

    #[test]
    fn the_kernel_tells_it_so() {
        let file = File::open("/proc/self/pagemap").unwrap();
        let page_bytes = rustix::param::page_size() as u64;
        // This memory of ours was written to; the program's code is the file's.
        let own = vec![1_u8; 3 * page_bytes as usize];
        let start = (own.as_ptr() as u64).next_multiple_of(page_bytes);
        let copies = find(&file, &(start..start + page_bytes), page_bytes).unwrap();
        assert_eq!(copies.pages, [start]);
        let code = the_kernel_tells_it_so as *const () as u64 / page_bytes * page_bytes;
        let copies = find(&file, &(code..code + page_bytes), page_bytes).unwrap();
        assert_eq!(copies, Copies::default());
    }
}
