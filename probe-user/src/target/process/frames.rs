//! Finds functions that a process is in, by the return addresses on its stacks.
//!
//! A word counts if the instruction before the place that it points to is a call. It may be left over
//! from a call that has ended, as no word is known to be a frame's without unwinding. So this is for
//! functions that are not seen to be called.

use super::maps::{MappedObject, Region, stack_regions};
use super::{Process, proc_path, read_stat};
use ctrace_core::units::Pid;
use std::{
    collections::{BTreeSet, HashSet},
    fs::{self, File},
    ops::Range,
    os::unix::fs::FileExt as _,
    path::Path,
};

/// Threads that are looked at, and the bytes of all of their stacks.
const MOST_THREADS: usize = 64;
const MOST_BYTES: u64 = 4 << 20;
/// The bytes of one stack that are read: of a deep one, those of the innermost and the outermost calls.
const MOST_OF_STACK: u64 = 128 << 10;
/// The part of the main stack where the first calls are. A thread that runs does not tell its own
/// end of the stack.
const OUTERMOST: u64 = 16 << 10;
/// The longest call instruction that has its kind in its last bytes.
const LONGEST_CALL: u64 = 7;
/// Words that are taken for return addresses and are none. A stack may be full of them.
const MOST_REFUSED: usize = 16_384;

/// Functions by their addresses in a process.
#[derive(Default)]
pub(crate) struct Frames {
    code: Vec<(Range<u64>, usize)>,
}

impl Frames {
    /// Adds a function with a number. `code` are offsets in the object's file.
    pub(crate) fn add(&mut self, object: &MappedObject, code: &Range<u64>, number: usize) {
        for mapping in &object.code {
            let length = mapping.addresses.end - mapping.addresses.start;
            let Some(within) = code.start.checked_sub(mapping.offset).filter(|it| *it < length)
            else {
                continue;
            };
            let start = mapping.addresses.start + within;
            let end = start.saturating_add(code.end - code.start).min(mapping.addresses.end);
            self.code.push((start..end, number));
        }
    }

    /// Returns the numbers of the functions that threads of the process seem to be in. This reads its
    /// memory, which it may keep from being read.
    pub(crate) fn find(mut self, pid: Pid) -> BTreeSet<usize> {
        self.code.sort_by_key(|(code, _)| code.start);
        let regions = stack_regions(pid.0).unwrap_or_default();
        let Ok(memory) = File::open(proc_path(pid.0, "mem")) else { return BTreeSet::new() };
        let stack_top = read_stat(pid.0).map_or(0, |stat| stat.start_stack);
        let mut search = Search::new(&self, memory);
        let mut left = MOST_BYTES;
        for thread in Process::threads_of(pid.0).into_iter().take(MOST_THREADS) {
            let place = Place::of(pid, thread.tid);
            if let Place::Waits { instruction, .. } = place {
                search.found.extend(self.at(instruction));
            }
            let main = (thread.tid == pid.0).then_some(stack_top);
            for part in place.parts(main, &regions) {
                let length = (part.end - part.start).min(left);
                left -= length;
                search.look(part.start..part.start + length);
                if search.is_over() {
                    return search.found;
                }
            }
        }
        search.found
    }

    /// Returns the function at an address.
    fn at(&self, address: u64) -> Option<usize> {
        let next = self.code.partition_point(|(code, _)| code.start <= address);
        let (code, number) = self.code.get(next.checked_sub(1)?)?;
        code.contains(&address).then_some(*number)
    }
}

/// A search of stacks for words that a call may have left there.
struct Search<'a> {
    frames: &'a Frames,
    memory: File,
    /// The number of functions that can be found.
    wanted: usize,
    found: BTreeSet<usize>,
    /// Addresses that no call returns to.
    refused: HashSet<u64>,
}

impl<'a> Search<'a> {
    fn new(frames: &'a Frames, memory: File) -> Self {
        let wanted = frames.code.iter().map(|(_, number)| *number).collect::<BTreeSet<_>>().len();
        Self { frames, memory, wanted, found: BTreeSet::new(), refused: HashSet::new() }
    }

    /// Returns whether more stacks would tell nothing more, or take too long.
    fn is_over(&self) -> bool {
        self.found.len() == self.wanted || self.refused.len() >= MOST_REFUSED
    }

    /// Looks at a part of a stack.
    fn look(&mut self, part: Range<u64>) {
        let mut bytes = vec![0; (part.end - part.start) as usize];
        if self.memory.read_exact_at(&mut bytes, part.start).is_err() {
            return;
        }
        let words = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok());
        for word in words.map(u64::from_le_bytes) {
            if self.is_over() {
                return;
            }
            self.take(word);
        }
    }

    /// Adds the function that a call returns to at this address. Each address is read once.
    fn take(&mut self, address: u64) {
        let Some(number) = address.checked_sub(1).and_then(|last| self.frames.at(last)) else {
            return;
        };
        if self.found.contains(&number) || self.refused.contains(&address) {
            return;
        }
        match self.is_behind_a_call(address) {
            true => self.found.insert(number),
            false => self.refused.insert(address),
        };
    }

    fn is_behind_a_call(&self, address: u64) -> bool {
        let mut before = [0; LONGEST_CALL as usize];
        let Some(start) = address.checked_sub(LONGEST_CALL) else { return false };
        self.memory.read_exact_at(&mut before, start).is_ok() && ends_with_call(&before)
    }
}

/// Returns whether these bytes end with a call: `call rel32`, or `call r/m64` in one of its lengths.
fn ends_with_call(bytes: &[u8; LONGEST_CALL as usize]) -> bool {
    let from_end = |n: usize| bytes[bytes.len() - n];
    let is_indirect = |n| from_end(n) == 0xff && from_end(n - 1) >> 3 & 7 == 2;
    from_end(5) == 0xe8 || [2, 3, 4, 6, 7].into_iter().any(is_indirect)
}

/// Returns the stack and the instruction pointer with which a thread entered the kernel, if it waits
/// there. `folder`: the thread's in /proc.
pub(super) fn outside_pointers(folder: &Path) -> Option<(u64, u64)> {
    let text = fs::read_to_string(folder.join("syscall")).ok()?;
    let pointer = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let mut words = text.split_ascii_whitespace().rev().map(pointer);
    let instruction = words.next()??;
    Some((words.next()??, instruction))
}

/// The state of a thread, as far as the kernel tells it.
enum Place {
    /// It waits in the kernel, and this is its state outside.
    Waits {
        stack: u64,
        instruction: u64,
    },
    Runs,
}

impl Place {
    fn of(pid: Pid, tid: u32) -> Self {
        match outside_pointers(&proc_path(pid.0, "task").join(tid.to_string())) {
            Some((stack, instruction)) => Self::Waits { stack, instruction },
            None => Self::Runs,
        }
    }

    /// Returns the parts of its stack to read, which may be empty. `main`: the address where the stack
    /// of the process's first thread began. Its arguments and environment lie above, and may take
    /// megabytes.
    fn parts(&self, main: Option<u64>, regions: &[Region]) -> [Range<u64>; 2] {
        let region_of = |address: u64| {
            let region = regions.iter().find(|region| region.addresses.contains(&address));
            region.map(|region| region.addresses.clone())
        };
        let main = main.map(|top| top & !7);
        match self {
            Self::Waits { stack, .. } => {
                let stack = stack & !7;
                let Some(region) = region_of(stack) else { return [0..0, 0..0] };
                let top = main.filter(|top| (stack..region.end).contains(top));
                let end = top.unwrap_or(region.end);
                if end - stack <= MOST_OF_STACK {
                    return [stack..end, 0..0];
                }
                let half = MOST_OF_STACK / 2;
                [stack..stack + half, end - half..end]
            }
            Self::Runs => {
                let part = main.and_then(|top| {
                    let region = region_of(top)?;
                    Some(top.saturating_sub(OUTERMOST).max(region.start)..top)
                });
                [part.unwrap_or(0..0), 0..0]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_known_by_their_last_bytes() {
        for (bytes, is_call) in [
            ([0, 0, 0xe8, 1, 2, 3, 4], true),
            ([0, 0, 0, 0, 0, 0xff, 0xd0], true),
            ([0, 0xff, 0x15, 1, 2, 3, 4], true),
            ([0xff, 0x94, 0x24, 1, 2, 3, 4], true),
            ([0, 0, 0, 0, 0, 0xff, 0xe0], false),
            ([0, 0, 0xe9, 1, 2, 3, 4], false),
        ] {
            assert_eq!(ends_with_call(&bytes), is_call, "{bytes:x?}");
        }
    }

    /// Megabytes of arguments and environment may lie above.
    #[test]
    fn the_first_calls_of_a_process_are_below_its_arguments() {
        let region = |addresses, name: &str| Region { addresses, name: name.to_owned() };
        let regions = [region(0x10_000..0x90_000, "[stack]"), region(0xa0_000..0xb0_000, "")];
        let parts = |place: Place, main| place.parts(main, &regions);
        assert_eq!(parts(Place::Runs, Some(0x60_008)), [0x5c_008..0x60_008, 0..0]);
        assert_eq!(parts(Place::Runs, Some(0x12_000)), [0x10_000..0x12_000, 0..0]);
        assert_eq!(parts(Place::Runs, None), [0..0, 0..0]);
        assert_eq!(parts(Place::Runs, Some(0x99_000)), [0..0, 0..0], "no such region");
        let waits = |stack| Place::Waits { stack, instruction: 0 };
        assert_eq!(parts(waits(0x5f_00c), Some(0x60_008)), [0x5f_008..0x60_008, 0..0]);
        let deep = [0x20_000..0x30_000, 0x50_008..0x60_008];
        assert_eq!(parts(waits(0x20_000), Some(0x60_008)), deep);
        assert_eq!(
            parts(waits(0xaf_000), Some(0x60_008)),
            [0xaf_000..0xb0_000, 0..0],
            "another stack"
        );
    }

    #[test]
    fn an_address_belongs_to_the_function_around_it() {
        let frames = Frames { code: vec![(10..20, 7), (20..24, 8), (40..50, 9)] };
        let of = |address| frames.at(address);
        assert_eq!(
            [10, 19, 20, 24, 45, 9].map(of),
            [Some(7), Some(7), Some(8), None, Some(9), None]
        );
    }
}
