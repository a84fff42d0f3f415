//! The place of a goroutine's id in its descriptor, which differs between versions of Go.
//!
//! A wrong place would give wrong ids, so two of three must agree on it, and none may disagree: debug
//! information, the version, and the code of a function of the runtime that prints the id.

use super::CodeMap;
use crate::target::elf::go_version;
use crate::target::object::Object;
use ctrace_common::GoidPlace;
use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind, Register};
use std::collections::BTreeSet;

/// The function that writes `goroutine 17 [running]:`. It reads a status of four bytes, and the id eight
/// bytes behind that, in every version.
const PRINTS: &str = "runtime.goroutineheader";
const FROM_STATUS: u64 = 8;
/// Bytes of the function that are looked at. It had 1,300 in Go 1.27.
const MOST_CODE: u64 = 8 << 10;

/// The first of some versions of Go 1, the last one, and the bytes before the id: as the debug information
/// of programs has it that these versions built.
const VERSIONS: [(u32, u32, u64); 4] = [(19, 19, 152), (21, 22, 152), (23, 24, 160), (25, 27, 152)];

/// Returns where descriptors of goroutines have their ids in programs with this object.
pub(crate) fn goid_place(object: &Object, map: &CodeMap<'_>) -> GoidPlace {
    let by_debug_info = object.with_lines(|lines| lines.goid());
    let by_version = go_version::minor(object.source(), object.layout()).and_then(of_version);
    let by_code = object.functions().iter().find(|it| it.raw() == PRINTS).and_then(|function| {
        let code = map.bytes(function.address)?;
        let size = function.size.min(MOST_CODE).min(code.len() as u64);
        of_code(&code[..size as usize], function.address)
    });
    agreed([by_debug_info, by_version, by_code]).and_then(GoidPlace::at).unwrap_or_default()
}

fn of_version(minor: u32) -> Option<u64> {
    let range = VERSIONS.iter().find(|(first, last, _)| (*first..=*last).contains(&minor))?;
    Some(range.2)
}

/// Returns what at least two say, if none says anything else.
fn agreed(places: [Option<u64>; 3]) -> Option<u64> {
    let mut said = places.into_iter().flatten();
    let (first, second) = (said.next()?, said.next()?);
    (first == second && said.all(|other| other == first)).then_some(first)
}

/// Returns the place that the code reads behind a status, if it is the only one.
fn of_code(code: &[u8], address: u64) -> Option<u64> {
    let (mut statuses, mut words) = (BTreeSet::new(), BTreeSet::new());
    for instruction in &mut Decoder::with_ip(64, code, address, DecoderOptions::NONE) {
        let reads = instruction.mnemonic() == Mnemonic::Mov
            && instruction.op0_kind() == OpKind::Register
            && instruction.op1_kind() == OpKind::Memory;
        let of = instruction.memory_base();
        // Not the stack, and no variable.
        let is_of_structure = of.is_gpr64() && !matches!(of, Register::RSP | Register::RBP);
        if reads && is_of_structure && instruction.memory_index() == Register::None {
            match instruction.op0_register().size() {
                4 => _ = statuses.insert(instruction.memory_displacement64()),
                8 => _ = words.insert(instruction.memory_displacement64()),
                _ => {}
            }
        }
    }
    let mut places = statuses.iter().filter_map(|status| status.checked_add(FROM_STATUS));
    let mut read = places.by_ref().filter(|place| words.contains(place));
    let found = read.next()?;
    read.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mov ecx, [rax+status]`, `mov rdx, [rax+id]`, `mov rax, [rsp+0xb0]`, `mov rbx, [rax+0x30]`.
    fn code(status: u8, id: u8) -> Vec<u8> {
        let of_structure = [0x8b, 0x88, status, 0, 0, 0, 0x48, 0x8b, 0x90, id, 0, 0, 0];
        let others = [0x48, 0x8b, 0x84, 0x24, 0xb0, 0, 0, 0, 0x48, 0x8b, 0x58, 0x30];
        [&of_structure[..], &others].concat()
    }

    #[test]
    fn the_id_is_read_behind_the_status() {
        assert_eq!(of_code(&code(0x90, 0x98), 0x1000), Some(152));
        assert_eq!(of_code(&code(0x98, 0xa0), 0x1000), Some(160));
        assert_eq!(of_code(&code(0x90, 0xa0), 0x1000), None);
        assert_eq!(of_code(&code(0xa8, 0x98), 0x1000), None, "the stack is no structure");
        let both = [code(0x90, 0x98), code(0x98, 0xa0)].concat();
        assert_eq!(of_code(&both, 0x1000), None, "either may be the id");
        for length in 0..12 {
            assert_eq!(of_code(&code(0x90, 0x98)[..length], 0x1000), None);
        }
    }

    #[test]
    fn two_must_agree_and_none_may_disagree() {
        let [a, b] = [Some(152), Some(160)];
        for agree in [[a, a, a], [None, a, a], [a, None, a], [a, a, None]] {
            assert_eq!(agreed(agree), a);
        }
        for differ in [[a, b, a], [b, a, a], [a, a, b], [a, b, None], [None, a, b]] {
            assert_eq!(agreed(differ), None);
        }
        for alone in [[a, None, None], [None, a, None], [None, None, a], [None; 3]] {
            assert_eq!(agreed(alone), None);
        }
    }

    #[test]
    fn versions_that_were_not_tried_have_no_place() {
        let of = [18, 19, 20, 21, 23, 24, 25, 27, 28].map(of_version);
        let (a, b) = (Some(152), Some(160));
        assert_eq!(of, [None, a, None, a, b, b, a, a, None]);
    }
}
