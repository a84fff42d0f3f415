//! USDT probes: the notes that `sys/sdt.h` and compatible headers leave in a file.
//!
//! A probe that the compiler inlined into ten places has ten notes of one name. Each has its own
//! address and maybe its own semaphore. All of them must fire, so they are kept together.

pub mod arguments;
pub(crate) mod methods;
pub(crate) mod pairs;
pub(crate) mod provider;
pub(super) mod variables;

use super::elf::ElfLayout;
use super::read::budget::TooLarge;
use super::read::source::Source;
use pairs::PairPart;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All sites of one `provider:name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsdtProbe {
    pub provider: Arc<str>,
    pub name: Arc<str>,
    pub sites: Vec<UsdtSite>,
    /// Its part in a call, if it is one of the two ends of a pair.
    pub part: Option<PairPart>,
}

/// One site of a USDT probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsdtSite {
    pub address: u64,
    pub file_offset: u64,
    /// File offset of the counter that switches the site on: the kernel's `ref_ctr_offset`.
    pub semaphore: Option<u64>,
    /// The note's text for the arguments: `-4@%edi 8@-24(%rbp)`.
    pub arguments: Box<str>,
}

/// The contents of a file's notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UsdtNotes {
    /// Sorted by provider and name.
    pub(super) probes: Vec<UsdtProbe>,
    pub(super) broken: usize,
    /// Set if there are more than the object's budget allows. Then there are none.
    pub(super) too_large: Option<TooLarge>,
}

impl UsdtProbe {
    /// Returns `provider:name`.
    pub(crate) fn full_name(&self) -> String {
        format!("{}:{}", self.provider, self.name)
    }
}

const NOTE_TYPE: u32 = 3;

/// Bytes that a note takes beside its texts.
const NOTE: u64 = 256;

pub(super) fn read(source: &Source, layout: &ElfLayout) -> UsdtNotes {
    try_read(source, layout)
        .unwrap_or_else(|why| UsdtNotes { too_large: Some(why), ..UsdtNotes::default() })
}

fn try_read(source: &Source, layout: &ElfLayout) -> Result<UsdtNotes, TooLarge> {
    let budget = source.budget();
    let mut ticker = budget.ticker();
    let mut notes = UsdtNotes::default();
    let mut probes: BTreeMap<(String, String), Vec<UsdtSite>> = BTreeMap::new();
    let sections = layout.sections.iter().filter(|section| section.name == ".note.stapsdt");
    let places: BTreeSet<(u64, u64)> = sections.map(|it| (it.offset, it.size())).collect();
    for (offset, size) in places {
        let (part, refused) = budget.watch(|| source.part(offset, size));
        let Some(mut rest) = part else {
            if let Some(why) = refused {
                return Err(why);
            }
            notes.broken += 1;
            continue;
        };
        while !rest.is_empty() {
            ticker.tick()?;
            // After a broken length the next note cannot be found.
            let Some((note, tail)) = split_note(rest) else {
                notes.broken += 1;
                break;
            };
            rest = tail;
            let Some(body) = note else { continue };
            budget.charge(NOTE + body.len() as u64)?;
            match site(body, layout) {
                Some((provider, name, site)) => {
                    probes.entry((provider, name)).or_default().push(site);
                }
                None => notes.broken += 1,
            }
        }
    }
    notes.probes = probes
        .into_iter()
        .map(|((provider, name), mut sites)| {
            // A duplicate site would be armed twice.
            sites.sort_by_key(|site| site.file_offset);
            sites.dedup_by_key(|site| site.file_offset);
            sites.sort_by_key(|site| site.address);
            UsdtProbe { provider: provider.into(), name: name.into(), sites, part: None }
        })
        .collect();
    pairs::mark(&mut notes.probes);
    Ok(notes)
}

/// Returns the body of the first note, if it is one of ours, and the remaining bytes.
fn split_note(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let word = |at: usize| {
        let word = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(word.try_into().ok()?))
    };
    let name_size = word(0)? as usize;
    let body_size = word(4)? as usize;
    let kind = word(8)?;
    let name_end = 12usize.checked_add(name_size)?;
    let name = bytes.get(12..name_end)?;
    let body_start = name_end.checked_next_multiple_of(4)?;
    let body_end = body_start.checked_add(body_size)?;
    let body = bytes.get(body_start..body_end)?;
    let next = body_end.checked_next_multiple_of(4)?;
    let ours = kind == NOTE_TYPE && name == b"stapsdt\0";
    Some((ours.then_some(body), bytes.get(next..).unwrap_or_default()))
}

/// Parses a note's body: three addresses, then the provider, name and arguments.
fn site(body: &[u8], layout: &ElfLayout) -> Option<(String, String, UsdtSite)> {
    let address = |at: usize| {
        let word = body.get(at..at + 8)?;
        Some(u64::from_le_bytes(word.try_into().ok()?))
    };
    let (pc, base, semaphore) = (address(0)?, address(8)?, address(16)?);
    let mut strings = body.get(24..)?.split(|byte| *byte == 0);
    let mut string = || strings.next().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let (provider, name) = (string()?, string()?);
    let arguments = string().unwrap_or_default();
    if provider.is_empty() || name.is_empty() {
        return None;
    }
    // Prelink moves the code and does not know the notes: the base section tells the shift.
    let moved = match layout.section(".stapsdt.base") {
        Some(section) if base != 0 => section.addresses.start.wrapping_sub(base),
        _ => 0,
    };
    let address = pc.wrapping_add(moved);
    let file_offset = layout.file_offset(address)?;
    if !layout.segments.iter().any(|s| s.executable && s.addresses.contains(&address)) {
        return None;
    }
    let semaphore = match semaphore {
        0 => None,
        semaphore => {
            let at = semaphore.wrapping_add(moved);
            // The kernel increments the counter, so an unwritable place cannot be a semaphore.
            let writable = layout.segments.iter().any(|s| s.writable && s.addresses.contains(&at));
            Some(writable.then(|| layout.file_offset(at))??)
        }
    };
    let arguments = arguments.into();
    Some((provider, name, UsdtSite { address, file_offset, semaphore, arguments }))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{compile, has_sdt_header};
    use super::super::read::budget::ObjectLimits;
    use super::*;

    const SOURCE: &str = r#"
        #include <sys/sdt.h>
        __attribute__((section(".probes"))) unsigned short counter, other_counter;
        /* A site with a semaphore, as sys/sdt.h writes it, without its macros. */
        #define SITE(name, semaphore) __asm__ volatile( \
            "990: nop\n.pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n.4byte 992f-991f, 994f-993f, 3\n" \
            "991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b, _.stapsdt.base, " #semaphore "\n" \
            ".asciz \"own\"\n.asciz \"" #name "\"\n.asciz \"\"\n994: .balign 4\n.popsection")
        static inline __attribute__((always_inline)) void step(int x) { DTRACE_PROBE1(app, step, x); }
        int main(int c, char **v) {
            step(c); step(c + 1); step(c + 2);
            DTRACE_PROBE(app, done);
            SITE(copy, counter);
            SITE(copy, other_counter);
            return 0;
        }
    "#;

    #[test]
    fn groups_the_sites_of_a_probe() {
        if !has_sdt_header() {
            return;
        }
        for flags in ["gcc -O1 -fno-pie -no-pie", "gcc -O1 -pie -fPIE"] {
            let built = compile(flags, "c", SOURCE);
            let object = built.object();
            let probes: Vec<(String, usize)> =
                object.usdt_probes().iter().map(|p| (p.full_name(), p.sites.len())).collect();
            let expected = [("app:done", 1), ("app:step", 3), ("own:copy", 2)];
            assert_eq!(probes, expected.map(|(name, sites)| (name.to_owned(), sites)));
            assert_eq!(object.broken_usdt_notes(), 0);
            const NOP: u8 = 0x90;
            for site in object.usdt_probes().iter().flat_map(|probe| &probe.sites) {
                assert_eq!(object.bytes()[site.file_offset as usize], NOP);
            }
            let step = &object.usdt_probes()[1];
            assert!(step.sites.iter().all(|site| site.semaphore.is_none()));
            assert!(step.sites.iter().all(|site| site.arguments.starts_with("-4@")));
            let copy = &object.usdt_probes()[2].sites;
            let semaphores: Vec<u64> = copy.iter().filter_map(|site| site.semaphore).collect();
            assert_eq!(semaphores.len(), 2);
            assert_eq!(semaphores[0].abs_diff(semaphores[1]), 2);
        }
    }

    fn layout(size: usize) -> ElfLayout {
        let text = super::super::elf::Segment {
            addresses: 0..0x1000,
            offset: 0,
            file_size: 0x1000,
            executable: true,
            writable: false,
        };
        let section = super::super::elf::Section {
            name: ".note.stapsdt".to_owned(),
            addresses: 0..size as u64,
            offset: 0,
            in_file: true,
            executable: false,
            writable: false,
        };
        ElfLayout { segments: vec![text], sections: vec![section], ..ElfLayout::default() }
    }

    fn note(pc: u64, semaphore: u64, strings: &[u8]) -> Vec<u8> {
        let body_size = 24 + strings.len() as u32;
        let mut bytes = [8, body_size, NOTE_TYPE].map(u32::to_le_bytes).concat();
        bytes.extend(b"stapsdt\0");
        bytes.extend([pc, 0, semaphore].map(u64::to_le_bytes).concat());
        bytes.extend(strings);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn source(bytes: &[u8]) -> Source {
        Source::of_bytes(bytes, ObjectLimits::DEFAULT)
    }

    #[track_caller]
    fn check(notes: &[Vec<u8>], probes: usize, broken: usize) {
        let bytes = notes.concat();
        let layout = layout(bytes.len());
        let read = read(&source(&bytes), &layout);
        assert_eq!((read.probes.len(), read.broken), (probes, broken));
    }

    #[test]
    fn counts_broken_notes() {
        let good = note(0x10, 0, b"a\0b\0\0");
        check(std::slice::from_ref(&good), 1, 0);
        check(&[good.clone(), good.clone()], 1, 0);
        check(&[note(0x10, 0, b""), good.clone()], 1, 1);
        check(&[note(0x10, 0, b"a\0"), good.clone()], 1, 1);
        check(&[note(0x9999, 0, b"a\0b\0\0"), good.clone()], 1, 1);
        // This semaphore is not writable.
        check(&[note(0x10, 0x20, b"a\0b\0\0"), good.clone()], 1, 1);
        check(&[good.clone(), vec![0xff; 40]], 1, 1);
        check(&[good, vec![1, 2, 3]], 1, 1);
    }

    proptest::proptest! {
        #[test]
        fn never_panics(mut bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), at in 0usize..200) {
            read(&source(&bytes), &layout(bytes.len()));
            let mut good = note(0x10, 0, b"a\0b\0\0");
            if let (Some(byte), Some(new)) = (good.get_mut(at), bytes.pop()) {
                *byte = new;
            }
            read(&source(&good), &layout(good.len() + at));
        }
    }
}
