//! Finds functions that a process is in, by the return addresses on its stacks.
//!
//! A word counts if the instruction before the place that it points to is a call. It may be left over
//! from a call that has ended, as no word is known to be a frame's without unwinding. So this is for
//! functions that are not seen to be called.

use super::maps::{MappedObject, Region};
use super::{Process, proc_path};
use ctrace_core::units::Pid;
use std::{
    collections::BTreeSet,
    fs::{self, File},
    ops::Range,
    os::unix::fs::FileExt as _,
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

    /// Returns the numbers of the functions that threads of the process are in. This reads its memory,
    /// which it may keep from being read.
    pub(crate) fn find(mut self, pid: Pid) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        self.code.sort_by_key(|(code, _)| code.start);
        let regions = Process::open(pid.0).ok().and_then(|it| it.stack_regions().ok());
        let Ok(memory) = File::open(proc_path(pid.0, "mem")) else { return found };
        let mut left = MOST_BYTES;
        for thread in Process::threads_of(pid.0).into_iter().take(MOST_THREADS) {
            let place = Place::of(pid, thread.tid);
            if let Place::Waits { instruction, .. } = place {
                found.extend(self.at(instruction));
            }
            for part in place.parts(thread.tid == pid.0, regions.as_deref().unwrap_or_default()) {
                let length = (part.end - part.start).min(left);
                left -= length;
                let mut bytes = vec![0; length as usize];
                if memory.read_exact_at(&mut bytes, part.start).is_ok() {
                    let words = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok());
                    let words = words.map(u64::from_le_bytes);
                    found.extend(words.filter_map(|word| self.returned_to(word, &memory)));
                }
            }
        }
        found
    }

    /// Returns the function at an address.
    fn at(&self, address: u64) -> Option<usize> {
        let next = self.code.partition_point(|(code, _)| code.start <= address);
        let (code, number) = self.code.get(next.checked_sub(1)?)?;
        code.contains(&address).then_some(*number)
    }

    /// Returns the function that a call returns to at this address.
    fn returned_to(&self, address: u64, memory: &File) -> Option<usize> {
        let number = self.at(address.checked_sub(1)?)?;
        let mut before = [0; LONGEST_CALL as usize];
        memory.read_exact_at(&mut before, address.checked_sub(LONGEST_CALL)?).ok()?;
        ends_with_call(&before).then_some(number)
    }
}

/// Returns whether these bytes end with a call: `call rel32`, or `call r/m64` in one of its lengths.
fn ends_with_call(bytes: &[u8; LONGEST_CALL as usize]) -> bool {
    let from_end = |n: usize| bytes[bytes.len() - n];
    let is_indirect = |n| from_end(n) == 0xff && from_end(n - 1) >> 3 & 7 == 2;
    from_end(5) == 0xe8 || [2, 3, 4, 6, 7].into_iter().any(is_indirect)
}

/// What is known of where a thread is.
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
        let path = proc_path(pid.0, "task").join(tid.to_string()).join("syscall");
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut words = text
            .split_ascii_whitespace()
            .rev()
            .map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
        match (words.next().flatten(), words.next().flatten()) {
            (Some(instruction), Some(stack)) => Self::Waits { stack, instruction },
            _ => Self::Runs,
        }
    }

    /// Returns the parts of its stack to read. Empty ones need no read.
    fn parts(&self, is_main: bool, regions: &[Region]) -> [Range<u64>; 2] {
        let nothing = || 0..0;
        match self {
            Self::Waits { stack, .. } => {
                let stack = stack & !7;
                let region = regions.iter().find(|region| region.addresses.contains(&stack));
                let Some(end) = region.map(|region| region.addresses.end) else {
                    return [nothing(), nothing()];
                };
                if end - stack <= MOST_OF_STACK {
                    return [stack..end, nothing()];
                }
                let half = MOST_OF_STACK / 2;
                [stack..stack + half, end - half..end]
            }
            Self::Runs if is_main => {
                let main = regions.iter().find(|region| region.name == "[stack]");
                let outermost = main.map(|main| {
                    let Range { start, end } = main.addresses;
                    end.saturating_sub(OUTERMOST).max(start)..end
                });
                [outermost.unwrap_or_else(nothing), nothing()]
            }
            Self::Runs => [nothing(), nothing()],
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
