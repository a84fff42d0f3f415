//! Interprets the differences between a page of code and its file.
//!
//! A probe turns the first byte of its instruction into a breakpoint. On Linux 6.18 a 5-byte nop
//! under a probe becomes a call to a page of the kernel's. Other changes are the program's: it
//! changes its own code, or a loader relocates it. Such a page is left alone.

const BREAKPOINT: u8 = 0xcc;
const CALL: u8 = 0xe8;
const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

/// A probe's trace in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trace {
    Breakpoint,
    /// A call in place of a nop, and its target.
    Call(u64),
}

/// Returns the traces in a page with their offsets, `None` if somebody else changed the page.
pub(super) fn page(file: &[u8], memory: &[u8], address: u64) -> Option<Vec<(usize, Trace)>> {
    let mut traces = Vec::new();
    let mut at = 0;
    while at < file.len() {
        if file[at] == memory[at] {
            at += 1;
        } else if memory[at] == BREAKPOINT {
            traces.push((at, Trace::Breakpoint));
            at += 1;
        } else {
            let target = call(file.get(at..at + 5)?, memory.get(at..at + 5)?, address + at as u64)?;
            traces.push((at, Trace::Call(target)));
            at += 5;
        }
    }
    Some(traces)
}

/// Returns the target of a call where the file has a nop.
fn call(file: &[u8], memory: &[u8], address: u64) -> Option<u64> {
    let (opcode, distance) = memory.split_first()?;
    let distance = i32::from_le_bytes(distance.try_into().ok()?);
    (file == NOP5 && *opcode == CALL)
        .then(|| address.wrapping_add(5).wrapping_add_signed(distance.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: u64 = 0x40_0000;
    const FILE: [u8; 12] = [0x55, 0x48, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x53, 0x54, 0xc3, 0xcc, 0x90];

    fn changed(changes: &[(usize, u8)]) -> Option<Vec<(usize, Trace)>> {
        let mut memory = FILE;
        changes.iter().for_each(|(at, byte)| memory[*at] = *byte);
        page(&FILE, &memory, ADDRESS)
    }

    #[test]
    fn an_equal_page_has_none() {
        assert_eq!(changed(&[]), Some(vec![]));
    }

    #[test]
    fn breakpoints_are_single_bytes() {
        let found = changed(&[(0, 0xcc), (7, 0xcc), (8, 0xcc)]).unwrap();
        assert_eq!(found, [0, 7, 8].map(|at| (at, Trace::Breakpoint)));
    }

    #[test]
    fn a_call_over_a_nop_tells_where_it_leads() {
        let call = [(2, 0xe8), (3, 0xf9), (4, 0x0f), (5, 0), (6, 0), (9, 0xcc)];
        let found = changed(&call).unwrap();
        assert_eq!(found, [(2, Trace::Call(ADDRESS + 0x1000)), (9, Trace::Breakpoint)]);
    }

    #[test]
    fn what_somebody_else_wrote_is_left_alone() {
        assert_eq!(changed(&[(0, 0xcc), (9, 0x90)]), None);
        // A jump over a function's start, as hot patches write it.
        assert_eq!(changed(&[(0, 0xe9), (1, 1), (2, 2), (3, 3), (4, 4)]), None);
        // Half of the bytes that the kernel writes over a nop.
        assert_eq!(changed(&[(2, 0xcc), (3, 0xf9)]), None);
        // The breakpoint was the program's own and is gone.
        assert_eq!(changed(&[(10, 0x90)]), None);
        // One call is where the file has no nop, the other is cut off.
        assert_eq!(changed(&[(0, 0xe8)]), None);
        assert_eq!(changed(&[(9, 0xe8)]), None);
    }
}
