//! Orders the places to touch. A process can forge more breakpoints than there is time for, so
//! places where tracers put probes come first.

use crate::target::{
    object::Object,
    place::may_be_probed,
    read::budget::{Budget, ObjectLimits},
};
use std::{
    collections::HashSet,
    fs::File,
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
    path::Path,
    time::Duration,
};

/// Limits on a file's functions. Without them the order is worse.
const LIMITS: ObjectLimits = ObjectLimits { memory: 256 << 20, time: Duration::from_secs(1) };
/// Bytes of the longest instruction.
const INSTRUCTION: usize = 15;
/// Bytes of the file read at a time.
const CHUNK: usize = 64 << 10;

/// The likelihood of a probe at a place, the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Likely {
    /// A function starts there.
    Start,
    /// The bytes are an instruction, in code.
    Instruction,
    /// The kernel will refuse a probe there.
    Refused,
}

/// Sorts the places. Equally likely ones keep their order.
pub(super) fn likeliest_first(offsets: &[u64], path: &Path, file: &File) -> Vec<u64> {
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    let object = Object::open_within(path, Path::new(&open), Budget::new(LIMITS)).ok();
    let functions = object.as_ref().map_or(&[][..], Object::functions);
    let starts: HashSet<u64> = functions.iter().map(|function| function.file_offset).collect();
    let is_code = |offset| {
        object.as_ref().is_none_or(|object| object.layout().code_address(offset).is_some())
    };
    let mut code = Code { file, bytes: Vec::new(), from: 0 };
    let likely = offsets.iter().map(|offset| match () {
        () if starts.contains(offset) => (Likely::Start, *offset),
        () if is_code(*offset) && may_be_probed(code.at(*offset)) => (Likely::Instruction, *offset),
        () => (Likely::Refused, *offset),
    });
    let mut likely: Vec<(Likely, u64)> = likely.collect();
    likely.sort_by_key(|(likely, _)| *likely);
    likely.into_iter().map(|(_, offset)| offset).collect()
}

/// The bytes of a file, read by chunks.
struct Code<'a> {
    file: &'a File,
    bytes: Vec<u8>,
    from: u64,
}

impl Code<'_> {
    /// Returns an instruction's bytes; fewer at the end of the file.
    fn at(&mut self, offset: u64) -> &[u8] {
        let end = offset.saturating_add(INSTRUCTION as u64);
        if offset < self.from || end > self.from + self.bytes.len() as u64 {
            self.from = offset;
            self.bytes.resize(CHUNK, 0);
            let read = self.file.read_at(&mut self.bytes, offset).unwrap_or(0);
            self.bytes.truncate(read);
        }
        let start = (offset - self.from) as usize;
        &self.bytes[start..self.bytes.len().min(start + INSTRUCTION)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// The file is no program: only the bytes tell.
    #[test]
    fn instructions_come_first() {
        let mut file = tempfile::tempfile().unwrap();
        // Each byte of the first page is a push. The later bytes are no instructions.
        let bytes = [[0x55; 4096].as_slice(), &[0x06; CHUNK * 2]].concat();
        file.write_all(&bytes).unwrap();
        let end = bytes.len() as u64;
        let order = likeliest_first(&[7, 5000, 8, end - 1, end, 9], Path::new("x"), &file);
        assert_eq!(order, [7, 8, 9, 5000, end - 1, end]);
    }

    #[test]
    fn starts_of_functions_come_before_other_instructions() {
        let path = std::env::current_exe().unwrap();
        let object = Object::open(&path, &path).unwrap();
        let own = starts_of_functions_come_before_other_instructions as *const () as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let bias = maps.lines().next().unwrap().split('-').next().unwrap();
        let own = own - u64::from_str_radix(bias, 16).unwrap();
        let start = object.layout().file_offset(own).unwrap();
        let file = File::open(&path).unwrap();
        let order = likeliest_first(&[start + 1, start + 2, start], &path, &file);
        assert_eq!(order[0], start);
    }
}
