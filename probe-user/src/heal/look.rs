//! Examines the code of a process for breakpoints that its files do not have. It changes nothing
//! and brings no page into memory.

use super::{
    HealError,
    compare::{self, Trace},
    copied, smaps,
};
use crate::{
    bpf::{Piece, SITES_LIMIT, read_pieces},
    target::{
        process::{Process, maps::MappedObject, patience},
        read::regular::open_regular,
    },
};
use ctrace_core::units::Pid;
use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, BufReader},
    os::unix::fs::FileExt as _,
    path::PathBuf,
    time::Duration,
};

/// The number of copied pages read at a time.
const BATCH: usize = 128;
/// Limit of examined code of a process, in bytes; the largest programs have a tenth of it.
const MOST_CODE: u64 = 4 << 30;
/// Limit of compared copies of a process, in pages: 1 GiB.
const MOST_COPIES: usize = 1 << 18;
/// Limit of places: the kernel's for one link. A program can fill its code with breakpoints.
const MOST_PLACES: usize = SITES_LIMIT;

/// The findings of a look.
#[derive(Default)]
pub(super) struct Inspection {
    /// Files with breakpoints in them.
    pub(super) files: Vec<MarkedFile>,
    /// The number of pages that the program changed otherwise.
    pub(super) changed: u64,
    /// The number of pages that were not examined.
    pub(super) unread: u64,
}

/// A file and the places where the process has breakpoints in it.
pub(super) struct MarkedFile {
    /// The process's name for it.
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Its device and inode.
    pub(super) identity: (u64, u64),
    /// File offsets of breakpoints that only the kernel can have put there.
    pub(super) places: BTreeSet<u64>,
    /// File offsets of breakpoints that the program may have put there itself.
    pub(super) own: BTreeSet<u64>,
    /// File offsets of nops that the kernel has left half written.
    pub(super) half_written: BTreeSet<u64>,
}

impl MarkedFile {
    fn is_marked(&self) -> bool {
        [&self.places, &self.own, &self.half_written].iter().any(|places| !places.is_empty())
    }
}

/// Looks within a time limit: a process can stall reads of its memory and of its files. A look that
/// takes longer is abandoned with its thread. It changes nothing.
pub(super) fn within(limit: Duration, pid: u32) -> Result<Inspection, HealError> {
    let looked = patience::within_limit(limit, Pid(pid), move || look(pid));
    looked.unwrap_or(Err(HealError::TooSlow { pid, limit }))
}

fn look(pid: u32) -> Result<Inspection, HealError> {
    let objects = Process::open(pid)?.objects()?;
    let failed = |error| HealError::Pages { pid, error };
    let pagemap = File::open(format!("/proc/{pid}/pagemap")).map_err(failed)?;
    let mut looking = Search {
        pid: Pid(pid),
        page_bytes: rustix::param::page_size() as u64,
        pagemap,
        code_left: MOST_CODE,
        copies_left: MOST_COPIES,
        look: Inspection::default(),
        found: Vec::new(),
    };
    for object in &objects {
        looking.object(object).map_err(failed)?;
    }
    looking.finish().map_err(failed)
}

/// A difference that a probe makes.
struct Difference {
    /// The start of its mapping.
    mapping: u64,
    /// The index of its file.
    file: usize,
    offset: u64,
    trace: Trace,
}

struct Search {
    pid: Pid,
    page_bytes: u64,
    pagemap: File,
    code_left: u64,
    copies_left: usize,
    look: Inspection,
    found: Vec<Difference>,
}

impl Search {
    fn object(&mut self, object: &MappedObject) -> io::Result<()> {
        // (start of the mapping, address of the page, file offset)
        let mut pages: Vec<(u64, u64, u64)> = Vec::new();
        for code in &object.code {
            let mut addresses = code.addresses.clone();
            let looked_at = (addresses.end - addresses.start).min(self.code_left);
            self.code_left -= looked_at;
            self.look.unread += (addresses.end - addresses.start - looked_at) / self.page_bytes;
            addresses.end = addresses.start + looked_at;
            let copies = copied::find(&self.pagemap, &addresses, self.page_bytes)?;
            self.look.unread += copies.swapped;
            let start = addresses.start;
            pages.extend(copies.pages.iter().map(|at| (start, *at, code.offset + (at - start))));
        }
        let compared = pages.len().min(self.copies_left);
        self.look.unread += (pages.len() - compared) as u64;
        self.copies_left -= compared;
        pages.truncate(compared);
        if pages.is_empty() {
            return Ok(());
        }
        let Ok(Some(file)) = open_regular(&object.open_path) else {
            self.look.unread += pages.len() as u64;
            return Ok(());
        };
        for batch in pages.chunks(BATCH) {
            self.compare(&file, batch)?;
        }
        self.look.files.push(MarkedFile {
            path: object.path.clone(),
            file,
            identity: (object.dev, object.inode),
            places: BTreeSet::new(),
            own: BTreeSet::new(),
            half_written: BTreeSet::new(),
        });
        Ok(())
    }

    /// Compares pages of the file that gets the next index.
    fn compare(&mut self, file: &File, pages: &[(u64, u64, u64)]) -> io::Result<()> {
        let page_bytes = self.page_bytes as usize;
        let mut memory = vec![0; page_bytes * pages.len()];
        let places = pages.iter().zip(memory.chunks_mut(page_bytes));
        let mut pieces: Vec<_> =
            places.map(|((_, address, _), bytes)| Piece::new(*address, bytes)).collect();
        read_pieces(self.pid, &mut pieces)?;
        let mut on_disk = vec![0; page_bytes];
        for ((mapping, address, offset), piece) in pages.iter().zip(&pieces) {
            if self.found.len() >= MOST_PLACES
                || !piece.is_read
                || read_page(file, &mut on_disk, *offset).is_err()
            {
                self.look.unread += 1;
                continue;
            }
            let Some(traces) = compare::page(&on_disk, piece.bytes, *address) else {
                self.look.changed += 1;
                continue;
            };
            self.found.extend(traces.into_iter().map(|(at, trace)| Difference {
                mapping: *mapping,
                file: self.look.files.len(),
                offset: offset + at as u64,
                trace,
            }));
        }
        Ok(())
    }

    /// Separates the kernel's changes from possible ones of the program.
    fn finish(mut self) -> io::Result<Inspection> {
        if !self.found.is_empty() {
            let smaps = File::open(format!("/proc/{}/smaps", self.pid.0))?;
            let mappings = smaps::read(BufReader::new(smaps))?;
            let is_trampoline =
                |address| mappings.trampolines.iter().any(|range| range.contains(&address));
            for Difference { mapping, file, offset, trace } in self.found {
                let is_the_kernels = mappings.unwritten.contains(&mapping)
                    && match trace {
                        Trace::Breakpoint => true,
                        Trace::Call(target) | Trace::HalfCall(target) => is_trampoline(target),
                    };
                let marked = &mut self.look.files[file];
                let places = match (is_the_kernels, trace) {
                    (false, _) => &mut marked.own,
                    (true, Trace::HalfCall(_)) => &mut marked.half_written,
                    (true, _) => &mut marked.places,
                };
                places.insert(offset);
            }
        }
        self.look.files.retain(MarkedFile::is_marked);
        Ok(self.look)
    }
}

/// Reads a page as a mapping has it: zeros after the file's end.
fn read_page(file: &File, page: &mut [u8], offset: u64) -> io::Result<()> {
    page.fill(0);
    let mut done = 0;
    while done < page.len() {
        match file.read_at(&mut page[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
