use super::*;

const SUB: &[u8] = &[0x48, 0x83, 0xec, 0x38]; // sub $0x38,%rsp
const RDI_TO_16: &[u8] = &[0x48, 0x89, 0x7c, 0x24, 0x10]; // mov %rdi,0x10(%rsp)
const ESI_TO_12: &[u8] = &[0x89, 0x74, 0x24, 0x0c]; // mov %esi,0xc(%rsp)

fn read(code: &[&[u8]]) -> Stored {
    Stored::read(code.concat())
}

/// Returns what a parameter so far from the stack pointer was first.
fn words(stored: &Stored, offset: i64, bytes: u64) -> Option<Vec<(u64, u64, Word)>> {
    let at = stored.place(Base::StackPointer, offset)?;
    match stored.within(at, bytes)? {
        Within::Words(words) => Some(words),
        Within::Stack(_) => None,
    }
}

fn register(number: u8, bytes: u64) -> Word {
    Word::whole(Passed::Register(number)).masked(low(bytes))
}

#[test]
fn the_first_stores_tell_registers() {
    let stored = read(&[SUB, RDI_TO_16, ESI_TO_12]);
    assert_eq!(words(&stored, 16, 8), Some(vec![(0, 8, register(0, 8))]));
    assert_eq!(words(&stored, 12, 4), Some(vec![(0, 4, register(1, 4))]));
    // Both are parts of what is around them, and the frame begins behind the pushes.
    assert_eq!(words(&stored, 12, 12).map(|words| words.len()), Some(2));
    let pushed = read(&[&[0x53], SUB, RDI_TO_16]);
    assert_eq!(words(&pushed, 16, 8), Some(vec![(0, 8, register(0, 8))]));
}

#[test]
fn copies_are_followed_and_changes_end_them() {
    let copy: &[u8] = &[0x48, 0x89, 0xf8]; // mov %rdi,%rax
    let add: &[u8] = &[0x48, 0x83, 0xc7, 0x01]; // add $1,%rdi
    let rax_to_16: &[u8] = &[0x48, 0x89, 0x44, 0x24, 0x10];
    let found = |code: &[&[u8]]| words(&read(code), 16, 8);
    let whole = Some(vec![(0, 8, register(0, 8))]);
    assert_eq!(found(&[SUB, copy, add, rax_to_16]), whole);
    assert_eq!(found(&[SUB, add, RDI_TO_16]), Some(Vec::new()));
    // It comes back from the frame, unless something else is there by then.
    let load: &[u8] = &[0x48, 0x8b, 0x44, 0x24, 0x10]; // mov 0x10(%rsp),%rax
    let rax_to_24: &[u8] = &[0x48, 0x89, 0x44, 0x24, 0x18];
    let later = |code: &[&[u8]]| words(&read(code), 24, 8);
    assert_eq!(later(&[SUB, RDI_TO_16, add, load, rax_to_24]), whole);
    assert_eq!(later(&[SUB, RDI_TO_16, add, RDI_TO_16, load, rax_to_24]), Some(Vec::new()));
    // A later store does not count.
    assert_eq!(found(&[SUB, RDI_TO_16, add, RDI_TO_16]), whole);
    let zero: &[u8] = &[0x48, 0xc7, 0x44, 0x24, 0x10, 0, 0, 0, 0]; // movq $0,0x10(%rsp)
    assert_eq!(found(&[SUB, zero, RDI_TO_16]), Some(Vec::new()));
    // Nor does one that is half of something else.
    assert_eq!(words(&read(&[SUB, RDI_TO_16]), 12, 8), None);
    // What a jump leads around is not looked at.
    let jump: &[u8] = &[0xeb, 0x00];
    assert_eq!(found(&[SUB, copy, jump, RDI_TO_16]), Some(Vec::new()));
    // Nor is it known where the frame is once the stack pointer has moved.
    assert_eq!(found(&[SUB, copy, SUB, RDI_TO_16]), None);
    assert_eq!(found(&[SUB, RDI_TO_16, SUB]), None);
}

#[test]
fn the_frame_is_known_only_where_it_is_made() {
    let known = |code: &[&[u8]]| read(code).place(Base::StackPointer, 8);
    let copy: &[u8] = &[0x48, 0x89, 0xf8]; // mov %rdi,%rax
    let jump: &[u8] = &[0x74, 0x00];
    let leave: &[u8] = &[0x48, 0x83, 0xc4, 0x38]; // add $0x38,%rsp
    let align: &[u8] = &[0x48, 0x83, 0xe4, 0xe0]; // and $-32,%rsp
    let red: &[u8] = &[0x48, 0x89, 0x7c, 0x24, 0xf8]; // mov %rdi,-8(%rsp)
    assert_eq!(known(&[SUB, copy, jump]), Some(-0x30));
    assert_eq!(known(&[SUB, copy, leave, &[0xc3]]), Some(-0x30));
    // The function may make it behind the jump.
    assert_eq!(known(&[copy, jump]), None);
    assert_eq!(known(&[copy, &[0xc3]]), Some(8));
    assert_eq!(known(&[red, jump]), Some(8));
    assert_eq!(known(&[copy, align, SUB]), None);
    // Nothing was read, or no more than the beginning.
    assert_eq!((known(&[]), known(&[SUB])), (None, None));
}

#[test]
fn copies_of_addresses_are_followed() {
    let copy: &[u8] = &[0x48, 0x89, 0xfe]; // mov %rdi,%rsi
    let stored = read(&[SUB, copy, RDI_TO_16]);
    let [rsi, rdi, rbx] = [4, 5, 3];
    assert_eq!((stored.address_in(rsi, 7), stored.address_in(rdi, 7)), (Some(0), Some(0)));
    assert_eq!((stored.address_in(rsi, 4), stored.address_in(rbx, 7)), (Some(1), None));
    // This is within an instruction.
    assert_eq!(stored.address_in(rsi, 6), None);
}

#[test]
fn what_the_caller_put_on_the_stack_is_told() {
    let stored = read(&[SUB, RDI_TO_16]);
    let at = stored.place(Base::StackPointer, 0x38 + 8 + 16).expect("a place");
    assert!(matches!(stored.within(at, 8), Some(Within::Stack(2))));
    // mov 0x48(%rsp),%rax; mov %rax,0x10(%rsp)
    let load: &[u8] = &[0x48, 0x8b, 0x44, 0x24, 0x48];
    let store: &[u8] = &[0x48, 0x89, 0x44, 0x24, 0x10];
    let word = Word::whole(Passed::Stack(1));
    assert_eq!(words(&read(&[SUB, load, store]), 16, 8), Some(vec![(0, 8, word)]));
}

#[test]
fn any_bytes_are_read_without_harm() {
    for seed in 0_u32..2000 {
        let byte =
            |n: u32| (seed.wrapping_mul(2_654_435_761).wrapping_add(n * n * 40_503) >> 7) as u8;
        let code: Vec<u8> = (0..64).map(byte).collect();
        let stored = Stored::read(code);
        for base in [Base::StackPointer, Base::FramePointer, Base::Caller] {
            for offset in [i64::MIN, -64, 0, 8, i64::MAX] {
                let at = stored.place(base, offset);
                for bytes in [8, 64, i64::MAX as u64, u64::MAX] {
                    at.map(|at| (stored.within(at, bytes).is_some(), stored.pointer(at)));
                }
            }
        }
    }
}

#[test]
fn memory_that_is_written_before_it_is_read_is_noticed() {
    let write: &[u8] = &[0x48, 0x89, 0x77, 0x08]; // mov %rsi,0x8(%rdi)
    let read_it: &[u8] = &[0x48, 0x8b, 0x47, 0x08]; // mov 0x8(%rdi),%rax
    let read_other: &[u8] = &[0x48, 0x8b, 0x07]; // mov (%rdi),%rax
    let copy: &[u8] = &[0x48, 0x89, 0xf8]; // mov %rdi,%rax
    let write_copy: &[u8] = &[0x48, 0x89, 0x70, 0x08]; // mov %rsi,0x8(%rax)
    let overwrites = |code: &[&[u8]]| [0, 1].map(|number| read(code).overwrites(number));
    assert_eq!(overwrites(&[write]), [true, false]);
    assert_eq!(overwrites(&[read_it, write]), [false, false]);
    assert_eq!(overwrites(&[read_other, write]), [true, false]);
    assert_eq!(overwrites(&[copy, write_copy]), [true, false]);
    assert_eq!(overwrites(&[SUB, RDI_TO_16, read_it]), [false, false]);
}
