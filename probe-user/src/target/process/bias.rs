//! The load bias of an object: the distance between the addresses in its headers and in a process.

use super::maps::MappedObject;
use crate::target::elf::{ElfLayout, Segment};

/// The executable segments of an object, by which its mappings are recognised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CodeSegments(Vec<Segment>);

/// Limit for one object in one process, which may map it any number of times.
const MOST_BIASES: usize = 1_024;

/// The kernel maps whole pages.
const PAGE: u64 = 4096;

impl CodeSegments {
    pub(crate) fn of(layout: &ElfLayout) -> Self {
        Self(layout.segments.iter().filter(|segment| segment.executable).cloned().collect())
    }

    /// Returns the address of a byte of the file, if it is code.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        self.0.iter().find_map(|segment| {
            let within = offset.checked_sub(segment.offset)?;
            (within < segment.file_size).then(|| segment.addresses.start.wrapping_add(within))
        })
    }

    /// Returns the load biases of an object. A header address plus the bias is the process's
    /// address, modulo 2^64. Usually there is one. There are several where the file is loaded
    /// several times (dlmopen), and none where it does not run yet.
    pub(crate) fn biases(&self, object: &MappedObject) -> Vec<u64> {
        let mut biases = Vec::new();
        for mapping in &object.code {
            let size = mapping.addresses.end.saturating_sub(mapping.addresses.start);
            let end = mapping.offset.saturating_add(size);
            let page = |segment: &&Segment| segment.offset & !(PAGE - 1);
            let begins = self.0.iter().find(|segment| page(segment) == mapping.offset);
            // A mapping may be part of a segment, or be merged with the one before it.
            let overlaps = |segment: &&Segment| {
                let segment_end = segment.offset.saturating_add(segment.file_size);
                page(segment) < end && mapping.offset < segment_end
            };
            let Some(segment) = begins.or_else(|| self.0.iter().find(overlaps)) else { continue };
            let bias = mapping
                .addresses
                .start
                .wrapping_sub(mapping.offset)
                .wrapping_add(segment.offset)
                .wrapping_sub(segment.addresses.start);
            if !biases.contains(&bias) {
                biases.push(bias);
            }
            if biases.len() >= MOST_BIASES {
                break;
            }
        }
        biases
    }
}

#[cfg(test)]
mod tests {
    use super::super::maps::{CodeMapping, objects};
    use super::*;
    use crate::target::object::Object;

    extern "C" fn landmark() {}

    /// Finds this test's own function at its address.
    #[test]
    fn finds_this_very_program() {
        let mapped = objects(std::process::id()).unwrap();
        let main = mapped.iter().find(|object| object.is_main).unwrap();
        let object = Object::open_mapped(main).unwrap();
        let biases = CodeSegments::of(object.layout()).biases(main);
        let [bias] = biases[..] else { panic!("{biases:x?}") };
        let address = (landmark as *const () as u64).wrapping_sub(bias);
        let function = object.function_at(address).expect("a function is there");
        assert!(function.name().ends_with("landmark"), "{}", function.name());
    }

    #[test]
    fn knows_split_and_repeated_mappings() {
        let segment = Segment {
            addresses: 0x2_1234..0x2_9000,
            offset: 0x1_1234,
            file_size: 0x7dcc,
            executable: true,
            writable: false,
        };
        let code = CodeSegments(vec![segment]);
        let check = |mappings: &[(u64, u64)], expected: &[u64]| {
            let mut object = MappedObject::from_file("/proc/self/exe".as_ref(), true).unwrap();
            object.code = mappings
                .iter()
                .map(|(start, offset)| CodeMapping {
                    addresses: *start..start + 0x1000,
                    offset: *offset,
                })
                .collect();
            assert_eq!(code.biases(&object), expected);
        };
        check(&[(0x7002_1000, 0x1_1000)], &[0x7000_0000]);
        check(&[(0x7002_1000, 0x1_1000), (0x7002_3000, 0x1_3000)], &[0x7000_0000]);
        check(&[(0x7002_1000, 0x1_1000), (0x8002_1000, 0x1_1000)], &[0x7000_0000, 0x8000_0000]);
        check(&[(0x2_1000, 0x1_1000)], &[0]);
        check(&[(0x7000_0000, 0x9_0000)], &[]);
        check(&[], &[]);
    }
}
