//! A function of our own to measure the cost of probes on. Its code is known byte by byte, so it is found
//! in a program that has no symbols.

use super::features::own_offset;
use std::{arch::naked_asm, fs::File, os::unix::fs::FileExt as _};

/// The function's code: `push rbp` at its entry, which the kernel emulates, and at its end `ret`, which the
/// kernel single-steps.
const CODE: [u8; 12] = [0x55, 0x89, 0xfd, 0xc1, 0xc7, 0x03, 0x89, 0xf8, 0x31, 0xe8, 0x5d, 0xc3];
/// The distance of the `ret` from the entry.
const RET_AT: usize = CODE.len() - 1;

/// The places of the function's probes, as offsets in `/proc/self/exe`.
pub(crate) struct SpunPlace {
    pub(crate) entry: u64,
    pub(crate) ret: u64,
}

/// Finds the function.
pub(crate) fn find() -> Result<SpunPlace, String> {
    let entry = own_offset(spun as *const () as u64)?;
    let mut code = [0; CODE.len()];
    let read = File::open("/proc/self/exe").and_then(|exe| exe.read_exact_at(&mut code, entry));
    read.map_err(|error| format!("cannot read the own program: {error}"))?;
    match code == CODE {
        true => Ok(SpunPlace { entry, ret: entry + RET_AT as u64 }),
        false => Err("the own program has other code than was compiled".to_owned()),
    }
}

/// Calls the function.
pub(crate) fn call(value: u32) -> u32 {
    spun(value)
}

// SAFETY: it keeps to the calling convention: it restores `rbp`, sets the result and returns.
#[unsafe(naked)]
extern "C" fn spun(value: u32) -> u32 {
    naked_asm!(
        "push rbp",
        "mov ebp, edi",
        "rol edi, 3",
        "mov eax, edi",
        "xor eax, ebp",
        "pop rbp",
        "ret"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_code_is_what_is_known_of_it() {
        let place = find().expect("it is in the own program");
        assert_eq!(place.ret - place.entry, RET_AT as u64);
        assert_eq!(call(5), 5u32.rotate_left(3) ^ 5);
    }
}
