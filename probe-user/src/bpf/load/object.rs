//! The eBPF object inside this binary. It is packed, which takes a fifth of the room.

use crate::bpf::BpfError;
use flate2::bufread::DeflateDecoder;
use std::{io::Read as _, sync::OnceLock};

/// A mark, the object's length, and the object packed. Empty if the build found no toolchain.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ctrace.bpf.packed"));
const MARK_LEN: usize = 8;
/// The alignment that readers of ELF files need.
const ALIGNMENT: usize = 8;

/// Returns the toolchain of the eBPF programs in this binary, or why there are none.
pub(crate) fn toolchain() -> &'static str {
    env!("CTRACE_BPF_TOOLCHAIN")
}

pub(crate) fn is_there() -> bool {
    !PACKED.is_empty()
}

/// Checks that tracing is possible at all, and begins what takes long. It fails in a binary without
/// the programs, and where process ids are not the kernel's.
pub(crate) fn require() -> Result<(), BpfError> {
    bytes()?;
    crate::bpf::machine::pid_namespace::require_initial()?;
    super::maps::begin();
    Ok(())
}

pub(crate) fn bytes() -> Result<&'static [u8], BpfError> {
    if_built(object())
}

/// Returns the object, unpacked when it is first needed.
fn object() -> &'static [u8] {
    static UNPACKED: OnceLock<Unpacked> = OnceLock::new();
    UNPACKED.get_or_init(|| Unpacked::of(PACKED).expect("the build has packed it")).bytes()
}

/// Bytes that begin at an aligned address.
#[derive(Default)]
struct Unpacked {
    room: Vec<u8>,
    start: usize,
    length: usize,
}

impl Unpacked {
    /// Returns `None` if it is damaged.
    fn of(packed: &[u8]) -> Option<Self> {
        if packed.is_empty() {
            return Some(Self::default());
        }
        let (length, frame) = packed.get(MARK_LEN..)?.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let mut room = vec![0; length + ALIGNMENT];
        let start = room.as_ptr().align_offset(ALIGNMENT);
        let into = &mut room[start..start + length];
        DeflateDecoder::new(frame).read_exact(into).ok()?;
        Some(Self { room, start, length })
    }

    fn bytes(&self) -> &[u8] {
        &self.room[self.start..self.start + self.length]
    }
}

fn if_built(object: &[u8]) -> Result<&[u8], BpfError> {
    if object.is_empty() { Err(BpfError::NoProgram { reason: toolchain() }) } else { Ok(object) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole binary may have 20 MB. Debug information, which the kernel does not need, would be
    /// two of them.
    #[test]
    fn the_object_has_no_debug_information() {
        assert!(object().len() < 1280 << 10, "{}", object().len());
    }

    #[test]
    fn the_object_is_packed_and_begins_where_readers_can_read_it() {
        let object = object();
        assert_eq!(object.as_ptr().align_offset(ALIGNMENT), 0);
        assert!(object.is_empty() || object.starts_with(b"\x7fELF"));
        assert!(PACKED.len() <= object.len() / 3, "{} of {}", PACKED.len(), object.len());
        assert!(Unpacked::of(&PACKED[..PACKED.len() / 2]).is_none() || PACKED.is_empty());
    }

    #[test]
    fn a_binary_without_programs_says_what_to_do() {
        assert_eq!(if_built(&[7]).unwrap(), [7]);
        let error = if_built(&[]).unwrap_err().to_string();
        assert!(error.contains("cargo xtask setup"), "{error}");
    }
}
