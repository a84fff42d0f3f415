//! Interprets the differences between a page of code and its file.
//!
//! A probe turns the first byte of its instruction into a breakpoint. On Linux 6.18 a 5-byte nop
//! under a probe becomes a call to a page of the kernel's. The kernel writes a breakpoint over its
//! first byte meanwhile, and a tracer that is killed then leaves that before the rest of the call.
//! Other changes are the program's: it changes its own code, or a loader relocates it. Such a page
//! is left alone.

const BREAKPOINT: u8 = 0xcc;
const CALL: u8 = 0xe8;
const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

/// A probe's trace in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trace {
    Breakpoint,
    /// A call in place of a nop, and its target.
    Call(u64),
    /// A breakpoint before the rest of such a call.
    HalfCall(u64),
}

/// Returns the traces in a page with their offsets, `None` if somebody else changed the page.
pub(super) fn page(file: &[u8], memory: &[u8], address: u64) -> Option<Vec<(usize, Trace)>> {
    let mut traces = Vec::new();
    let mut at = 0;
    while at < file.len() {
        if file[at] == memory[at] {
            at += 1;
            continue;
        }
        let trace = match (file[at..].first_chunk(), memory[at..].first_chunk()) {
            (Some(&NOP5), Some(now)) => over_nop(*now, address + at as u64)?,
            _ if memory[at] == BREAKPOINT => Trace::Breakpoint,
            _ => return None,
        };
        traces.push((at, trace));
        at += if trace == Trace::Breakpoint { 1 } else { NOP5.len() };
    }
    Some(traces)
}

/// Returns the trace that these bytes are at the place of a nop.
fn over_nop(now: [u8; 5], address: u64) -> Option<Trace> {
    let [first, distance @ ..] = now;
    let behind = address.wrapping_add(NOP5.len() as u64);
    let target = behind.wrapping_add_signed(i32::from_le_bytes(distance).into());
    match first {
        BREAKPOINT if distance == NOP5[1..] => Some(Trace::Breakpoint),
        BREAKPOINT => Some(Trace::HalfCall(target)),
        CALL => Some(Trace::Call(target)),
        _ => None,
    }
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
    fn a_nop_that_was_left_half_written_is_told_apart() {
        let half = [(2, 0xcc), (3, 0xf9), (4, 0x0f), (5, 0), (6, 0), (9, 0xcc)];
        let found = changed(&half).unwrap();
        assert_eq!(found, [(2, Trace::HalfCall(ADDRESS + 0x1000)), (9, Trace::Breakpoint)]);
        assert_eq!(changed(&[(2, 0xcc)]), Some(vec![(2, Trace::Breakpoint)]));
    }

    #[test]
    fn what_somebody_else_wrote_is_left_alone() {
        assert_eq!(changed(&[(0, 0xcc), (9, 0x90)]), None);
        // A jump over a function's start, as hot patches write it.
        assert_eq!(changed(&[(0, 0xe9), (1, 1), (2, 2), (3, 3), (4, 4)]), None);
        // The breakpoint was the program's own and is gone.
        assert_eq!(changed(&[(10, 0x90)]), None);
        // One call is where the file has no nop, the other is cut off.
        assert_eq!(changed(&[(0, 0xe8)]), None);
        assert_eq!(changed(&[(9, 0xe8)]), None);
    }
}
