//! The executable sections that can hold functions: not the linker's jump tables.

use crate::target::elf::ElfLayout;
use std::ops::Range;

/// These sections of an object.
pub(super) struct Code {
    /// Sorted by begin, disjoint.
    sections: Vec<Range<u64>>,
}

impl Code {
    pub(super) fn new(layout: &ElfLayout) -> Self {
        let is_stubs = |name: &str| name.starts_with(".plt") || name.starts_with(".iplt");
        let mut sections: Vec<Range<u64>> = layout
            .sections
            .iter()
            .filter(|section| section.executable && section.in_file && !is_stubs(&section.name))
            .map(|section| section.addresses.clone())
            .collect();
        sections.sort_unstable_by_key(|section| (section.start, section.end));
        let mut reached = 0;
        sections.retain_mut(|section| {
            section.start = section.start.max(reached);
            reached = reached.max(section.end);
            !section.is_empty()
        });
        Self { sections }
    }

    /// Returns the section around an address.
    pub(super) fn section_of(&self, address: u64) -> Option<&Range<u64>> {
        let after = self.sections.partition_point(|section| section.start <= address);
        self.sections.get(after.checked_sub(1)?).filter(|section| section.contains(&address))
    }
}
