use super::super::elf::{Section, Segment};
use super::super::fixtures::{Built, MARKERS, compile};
use super::super::place::nops::NopBlock;
use super::flaws::Flaw;
use super::*;
use crate::target::read::budget::ObjectLimits;
use ctrace_common::SiteEntry;
use ctrace_core::{
    colour::Colour,
    points::{Level, PointShape},
};
use image::ENTRY_SIZE;

const SOURCE: &str = r#"
    #define INLINE static inline __attribute__((always_inline))
    INLINE int step(int x) { SCOPE("step", "prod", 0); return x + 1; }
    INLINE int nameless_step(int x) { SCOPE(NONE, NONE, 1); return x + 1; }
    __attribute__((noinline)) int work(int x) { SCOPE(NONE, "dev", 1); return step(x) * step(x + 2); }
    int main(int c, char **v) { SCOPE("whole run", NONE, 0); return work(c) + nameless_step(c); }
    RUNTIME
"#;

fn build(flags: &str) -> Built {
    compile(&format!("gcc -O1 {flags}"), "c", &format!("{MARKERS}\n#line 1\n{SOURCE}"))
}

/// Returns `group/name whole-function-flag line × sites` of each scope.
fn summary(markers: &Markers) -> Vec<String> {
    let flag = |scope: &MarkerScope| if scope.is_whole_function { " whole" } else { "" };
    let line = |scope: &MarkerScope| scope.line.unwrap();
    let scopes = markers.scopes.iter();
    scopes
        .map(|s| format!("{}{} :{} x{}", s.full_name(), flag(s), line(s), s.sites.len()))
        .collect()
}

#[test]
fn reads_scopes() {
    for flags in ["-fno-pie -no-pie", "-pie -fPIE", "-shared -fPIC", "-g -static", "-pie -fPIE -s"]
    {
        let built = build(flags);
        let object = built.object();
        let markers = object.markers();
        assert!(markers.flaws.is_empty(), "{flags}: {}", markers.flaws);
        let (inlined, work) = match flags {
            "-pie -fPIE -s" => ("input.c:4", "input.c:5"),
            "-g -static" => ("nameless_step", "work"),
            _ => ("main", "work"),
        };
        let mut expected = vec![
            "whole run :6 x1".to_owned(),
            format!("{inlined} whole :4 x1"),
            format!("dev/{work} whole :5 x1"),
            "prod/step :3 x2".to_owned(),
        ];
        let mut found = summary(markers);
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{flags}");
        for scope in &markers.scopes {
            assert_eq!(scope.file.as_deref(), Some("input.c"));
        }
        check_places(&object);
    }
}

#[track_caller]
fn check_places(object: &super::super::object::Object) {
    let (bytes, layout) = (object.bytes(), object.layout());
    let sites: Vec<&MarkerSite> =
        object.markers().scopes.iter().flat_map(|scope| &scope.sites).collect();
    assert_eq!(sites.len(), 5);
    for site in &sites {
        assert!(layout.section("ctrace_sites").unwrap().addresses.contains(&site.address));
        assert_eq!(bytes[site.point as usize], 0x90);
        let probes = layout.section(".probes").unwrap();
        let within = site.semaphore - probes.offset;
        assert!(probes.addresses.contains(&(probes.addresses.start + within)));
    }
    let of_each = |pick: fn(&MarkerSite) -> u64| sites.iter().map(|site| pick(site)).collect();
    let all: [Vec<u64>; 3] =
        [of_each(|site| site.semaphore), of_each(|site| site.point), of_each(|site| site.address)];
    for mut values in all {
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), 5);
    }
}

#[test]
fn reads_runtimes() {
    for flags in ["-fno-pie -no-pie", "-shared -fPIC -s"] {
        let built = build(flags);
        let object = built.object();
        // Two entries describe it.
        let [runtime] = &object.markers().runtimes[..] else { panic!("{:?}", object.markers()) };
        assert_eq!(runtime.name.as_deref(), Some("test 1.0"));
        for site in [runtime.flush, runtime.register] {
            let code = &object.bytes()[site.offset as usize..];
            assert_eq!((code[0], code[NopBlock::SIZE]), (0x90, 0xc3));
        }
        assert!(object.layout().section(".bss").unwrap().addresses.contains(&runtime.list));
    }
}

#[test]
fn semaphores_need_bytes_in_the_file() {
    let bss = r#"-DPROBES=".pushsection\t.bss\n""#;
    let built = build(bss);
    let object = built.object();
    let flaws = &object.markers().flaws;
    assert_eq!(flaws.count(Flaw::SemaphoreWithoutBytes), 5);
    assert!(object.markers().scopes.is_empty());
    let line = flaws.to_string();
    assert!(line.contains(".probes") && !line.contains('\n'), "{line}");
}

#[test]
fn programs_without_markers_have_none() {
    let built = compile("gcc", "c", "int main() { return 0; }");
    assert_eq!(*built.object().markers(), Markers::default());
}

fn source(bytes: &[u8]) -> Source {
    Source::of_bytes(bytes, ObjectLimits::DEFAULT)
}

const SITES: u64 = 0x400;
const TEXT: u64 = 0x100;
const POINT: u64 = 0x200;
const SEMAPHORE: u64 = 0x2010;
const BSS: u64 = 0x2900;
const CODE: u64 = 0x300;

/// A layout of 0x1800 bytes: code, and data from 0x2000. The second half of the data is zeros that
/// are not in the file.
fn layout(sections: Vec<Section>) -> ElfLayout {
    let segment = |addresses: std::ops::Range<u64>, offset, file_size, writable: bool| Segment {
        addresses,
        offset,
        file_size,
        executable: !writable,
        writable,
    };
    let segments =
        vec![segment(0..0x1000, 0, 0x1000, false), segment(0x2000..0x3000, 0x1000, 0x800, true)];
    ElfLayout { segments, sections, ..ElfLayout::default() }
}

fn section(name: &str, start: u64, size: u64) -> Section {
    Section {
        name: name.to_owned(),
        addresses: start..start.saturating_add(size),
        offset: start,
        in_file: true,
        executable: false,
        writable: false,
    }
}

fn file() -> Vec<u8> {
    let mut bytes = vec![0u8; 0x1800];
    bytes[TEXT as usize..][..5].copy_from_slice(b"name\0");
    bytes[POINT as usize..][..4].fill(0x90);
    // A text in the code has no end.
    bytes[0x800..0x1000].fill(b'x');
    bytes
}

/// Makes an entry for the address where it is put: name, semaphore, point.
fn entry(at: u64, version: u8, name: u64, semaphore: u64, point: u64) -> [u8; ENTRY_SIZE] {
    let mut entry = [0u8; ENTRY_SIZE];
    entry[0] = version;
    entry[4] = 7;
    for (field, target) in [(8, name), (20, semaphore), (24, point), (28, CODE)] {
        let distance = target.wrapping_sub(at + field) as u32;
        entry[field as usize..][..4].copy_from_slice(&distance.to_le_bytes());
    }
    entry
}

#[track_caller]
fn check(entries: &[[u8; ENTRY_SIZE]], scopes: usize, flaws: &[Flaw]) {
    let mut bytes = file();
    for (entry, at) in entries.iter().zip((SITES as usize..).step_by(ENTRY_SIZE)) {
        bytes[at..at + ENTRY_SIZE].copy_from_slice(entry);
    }
    let size = (entries.len() * ENTRY_SIZE) as u64;
    let layout = layout(vec![section("ctrace_sites", SITES, size)]);
    let markers = read(&source(&bytes), &layout, |_| None);
    let sites: usize = markers.scopes.iter().map(|scope| scope.sites.len()).sum();
    assert_eq!((sites, markers.flaws.total()), (scopes, flaws.len()), "{}", markers.flaws);
    for flaw in flaws {
        assert!(markers.flaws.count(*flaw) > 0, "{flaw:?}: {}", markers.flaws);
    }
}

/// Reads an entry with these flags, shape and level, whose name has this list behind it.
fn with_list(numbers: [u8; 3], name: u64, list: &[u8]) -> Markers {
    let mut bytes = file();
    bytes[TEXT as usize + "name\0".len()..][..list.len()].copy_from_slice(list);
    let mut entry = entry(SITES, 1, name, SEMAPHORE, POINT);
    entry[1..4].copy_from_slice(&numbers);
    bytes[SITES as usize..][..ENTRY_SIZE].copy_from_slice(&entry);
    read(&source(&bytes), &layout(vec![section("ctrace_sites", SITES, 32)]), |_| None)
}

#[test]
fn points_and_values_are_read() {
    let read = |numbers, list: &str| {
        let markers = with_list(numbers, TEXT, list.as_bytes());
        let [scope] = &markers.scopes[..] else { panic!("{}", markers.flaws) };
        let values: Vec<_> = scope.values.iter().map(|value| value.name.to_string()).collect();
        (scope.point, values.join(" "))
    };
    let level = Some(Level::Warn);
    let message = Some(PointShape::Message { level });
    assert_eq!(read([12, 1, 4], "message:str\0"), (message, "message".to_owned()));
    assert_eq!(read([12, 2, 0], "value[ms]:f64\0"), (Some(PointShape::Plot), "value".to_owned()));
    assert_eq!(read([4, 3, 0], "no:list\0"), (Some(PointShape::Frame), String::new()));
    assert_eq!(read([8, 1, 4], "a:u64,b:bool\0"), (None, "a b".to_owned()));
    assert_eq!(read([10, 0, 0], "a:u64\0"), (None, "a".to_owned()));
}

#[test]
fn a_request_is_no_scope() {
    let markers = with_list([12, 4, 0], TEXT, b"file:u64\0");
    let addresses: Vec<_> = markers.requests.iter().map(|site| site.address).collect();
    assert_eq!((addresses, markers.scopes.len(), markers.flaws.total()), (vec![SITES], 0, 0));
    let scope = with_list([8, 4, 0], TEXT, b"file:u64\0");
    assert_eq!((scope.requests.len(), scope.scopes.len()), (0, 1), "a scope has no shape");
}

#[test]
fn a_colour_behind_the_group_is_read() {
    let read = |flags: u8, group: u64, behind: &[u8]| {
        let mut bytes = file();
        bytes[TEXT as usize + "name\0".len()..][..behind.len()].copy_from_slice(behind);
        let mut entry = entry(SITES, 1, TEXT, SEMAPHORE, POINT);
        let distance = group.wrapping_sub(SITES + 16) as u32;
        entry[16..20].copy_from_slice(&distance.to_le_bytes());
        (entry[1], entry[2]) = (flags, SiteEntry::FRAME);
        bytes[SITES as usize..][..ENTRY_SIZE].copy_from_slice(&entry);
        let layout = layout(vec![section("ctrace_sites", SITES, 32)]);
        let markers = super::read(&source(&bytes), &layout, |_| None);
        let [scope] = &markers.scopes[..] else { panic!("{}", markers.flaws) };
        assert!(scope.is_frame && scope.point.is_none());
        (scope.group.as_deref().map(str::to_owned), scope.colour)
    };
    let group = TEXT + "name\0".len() as u64;
    let prod = Some("prod".to_owned());
    let blue = Colour::from_rgb(0x33_aa_ff);
    assert_eq!(read(16, group, b"prod\0\xff\xaa\x33\0"), (prod.clone(), blue));
    assert_eq!(read(16, group, b"\0\xff\xaa\x33\0"), (None, blue));
    assert_eq!(read(0, group, b"prod\0\xff\xaa\x33\0"), (prod.clone(), None));
    // None of these colours is one. A scope is worth it all the same.
    assert_eq!(read(16, group, b"prod\0\xff\xaa\x33\x01"), (prod, None), "25 bits");
    assert_eq!(read(16, SITES + 16, b""), (None, None), "no group");
}

#[test]
fn a_list_of_values_that_no_runtime_writes_is_a_flaw() {
    let flaws = |flags, name, list: &[u8]| {
        let markers = with_list([flags, 0, 0], name, list);
        assert!(markers.scopes.is_empty());
        (markers.flaws.count(Flaw::Values), markers.flaws.count(Flaw::Text))
    };
    assert_eq!(flaws(8, TEXT, b"\0"), (1, 0));
    assert_eq!(flaws(12, TEXT, b"a:u64,a:u64\0"), (1, 0));
    assert_eq!(flaws(8, TEXT, b"\xff:u65\0"), (1, 0));
    // A text that comes with each entry is the name or a value, not both.
    assert_eq!(flaws(10, TEXT, b"a:str\0"), (1, 0));
    assert_eq!(flaws(8, SITES + 8, b""), (1, 0), "no name");
    assert_eq!(flaws(8, 0xffe, b""), (0, 1), "the end of the segment");
}

#[test]
fn scopes_that_share_a_list_are_charged_each() {
    let read = |list: &[u8]| {
        let mut bytes = file();
        bytes[TEXT as usize + "name\0".len()..][..list.len()].copy_from_slice(list);
        let mut at = SITES;
        for line in 1..=32 {
            let mut entry = entry(at, 1, TEXT, SEMAPHORE, POINT);
            (entry[1], entry[4]) = (8, line);
            bytes[at as usize..][..ENTRY_SIZE].copy_from_slice(&entry);
            at += ENTRY_SIZE as u64;
        }
        let limits = ObjectLimits { memory: 30_000, ..ObjectLimits::DEFAULT };
        let layout = layout(vec![section("ctrace_sites", SITES, at - SITES)]);
        let markers = read(&Source::of_bytes(&bytes, limits), &layout, |_| None);
        (markers.scopes.len(), markers.too_large)
    };
    assert_eq!(read(b"a:u64\0"), (32, None));
    assert_eq!(read(b"a:u64,b:u64,c:u64,d:u64\0"), (0, Some(TooLarge::Memory(30_000))));
}

#[test]
fn counts_flaws() {
    let good = |at| entry(at, 1, TEXT, SEMAPHORE, POINT);
    let second = SITES + ENTRY_SIZE as u64;
    check(&[good(SITES)], 1, &[]);
    check(&[good(SITES), entry(second, 1, TEXT, SEMAPHORE + 2, POINT + 1)], 2, &[]);
    check(&[good(SITES), [0; ENTRY_SIZE]], 1, &[]);
    let bad = |version, name, semaphore, point, flaw| {
        check(&[good(SITES), entry(second, version, name, semaphore, point)], 1, &[flaw]);
    };
    bad(2, TEXT, SEMAPHORE, POINT, Flaw::Version);
    bad(1, 0x800, SEMAPHORE, POINT, Flaw::Text);
    bad(1, 0x7fff_0000, SEMAPHORE, POINT, Flaw::Text);
    bad(1, 0u64.wrapping_sub(0x1000), SEMAPHORE, POINT, Flaw::Text);
    bad(1, BSS, SEMAPHORE, POINT, Flaw::Text);
    bad(1, TEXT, SEMAPHORE + 1, POINT, Flaw::Semaphore);
    bad(1, TEXT, TEXT, POINT, Flaw::Semaphore);
    bad(1, TEXT, 0x2fff, POINT, Flaw::Semaphore);
    bad(1, TEXT, second + 20, POINT, Flaw::Semaphore);
    bad(1, TEXT, BSS, POINT, Flaw::SemaphoreWithoutBytes);
    bad(1, TEXT, 0x27ff, POINT, Flaw::SemaphoreWithoutBytes);
    bad(1, TEXT, SEMAPHORE, SEMAPHORE, Flaw::Point);
    bad(1, TEXT, SEMAPHORE, CODE, Flaw::Point);
    bad(1, TEXT, SEMAPHORE, 0x9999, Flaw::Point);
    // One place cannot have two counters.
    bad(1, TEXT, SEMAPHORE + 2, POINT, Flaw::Point);
}

#[test]
fn survives_sections_that_lie() {
    let mut bytes = file();
    bytes[SITES as usize..][..ENTRY_SIZE].copy_from_slice(&entry(SITES, 1, TEXT, SEMAPHORE, POINT));
    let check = |sections: Vec<Section>, scopes: usize, flaw: Option<Flaw>| {
        let markers = read(&source(&bytes), &layout(sections), |_| None);
        assert_eq!(markers.scopes.len(), scopes);
        assert_eq!(markers.flaws.is_empty(), flaw.is_none(), "{}", markers.flaws);
        assert!(flaw.is_none_or(|flaw| markers.flaws.count(flaw) > 0), "{}", markers.flaws);
    };
    let sites = |start, size| section("ctrace_sites", start, size);
    let size = ENTRY_SIZE as u64;
    check(vec![sites(SITES, size), sites(SITES, size)], 1, None);
    check(vec![sites(SITES, 0)], 0, None);
    check(vec![sites(SITES, size + 8)], 1, Some(Flaw::Section));
    check(vec![sites(SITES + 8, size)], 0, Some(Flaw::Section));
    check(vec![sites(SITES, u64::MAX)], 1, Some(Flaw::Section));
    check(vec![sites(0x9000, u64::MAX)], 0, Some(Flaw::Section));
    check(vec![sites(u64::MAX - 31, u64::MAX)], 0, Some(Flaw::Section));
    let mut elsewhere = sites(SITES, size);
    elsewhere.offset = 0;
    check(vec![elsewhere], 0, Some(Flaw::Section));
    check(vec![section("ctrace_runtime", SITES, size)], 0, Some(Flaw::Runtime));
}

/// The entry has no fields, so a version that is known is another flaw.
#[test]
fn a_runtime_of_a_later_version_is_refused() {
    let versions = [(1, Flaw::Runtime), (2, Flaw::Runtime), (3, Flaw::Version)];
    for (version, flaw) in versions {
        let mut bytes = file();
        bytes[SITES as usize..][..ENTRY_SIZE].fill(0);
        bytes[SITES as usize] = version;
        let sections = vec![section("ctrace_runtime", SITES, ENTRY_SIZE as u64)];
        let markers = read(&source(&bytes), &layout(sections), |_| None);
        assert_eq!(markers.flaws.count(flaw), 1, "version {version}: {}", markers.flaws);
    }
}

#[test]
fn entries_are_bounded() {
    let count = (1 << 20) + 1;
    let size = (count * ENTRY_SIZE) as u64;
    let bytes: Vec<u8> = std::iter::repeat_n([9u8; ENTRY_SIZE], count).flatten().collect();
    let segment = Segment {
        addresses: 0..size,
        offset: 0,
        file_size: size,
        executable: true,
        writable: true,
    };
    let sections = vec![section("ctrace_sites", 0, size)];
    let layout = ElfLayout { segments: vec![segment], sections, ..ElfLayout::default() };
    let markers = read(&source(&bytes), &layout, |_| None);
    assert_eq!((markers.flaws.count(Flaw::TooMany), markers.scopes.len()), (1, 0));
}

proptest::proptest! {
    #[test]
    fn never_panics(
        random in proptest::collection::vec(proptest::num::u8::ANY, 0..400),
        changes in proptest::collection::vec((0usize..96, proptest::num::u8::ANY), 0..6),
        start in proptest::num::u64::ANY,
        size in proptest::num::u64::ANY,
        cut in 0usize..0x1800,
    ) {
        let names = ["ctrace_sites", "ctrace_runtime"];
        let mut bytes = file();
        for (at, entry_at) in [(0, SITES), (1, SITES + 32), (2, SITES + 64)] {
            let good = entry(entry_at, 1, TEXT, SEMAPHORE + 2 * at, POINT + at);
            bytes[entry_at as usize..][..ENTRY_SIZE].copy_from_slice(&good);
        }
        for (at, value) in changes {
            bytes[SITES as usize + at] = value;
        }
        bytes[0x500..0x500 + random.len()].copy_from_slice(&random);
        let near = |name| [
            section(name, SITES, 96),
            section(name, 0x500, random.len() as u64),
            section(name, start % 0x3000, size % 0x3000),
            section(name, start, size),
        ];
        let layout = layout(names.into_iter().flat_map(near).collect());
        let whole = read(&source(&bytes), &layout, |_| None);
        let sites: usize = whole.scopes.iter().map(|scope| scope.sites.len()).sum();
        proptest::prop_assert!(sites <= bytes.len() / ENTRY_SIZE);
        for site in whole.scopes.iter().flat_map(|scope| &scope.sites) {
            proptest::prop_assert_eq!(bytes[site.point as usize], 0x90);
            proptest::prop_assert!((0x1000..0x17ff).contains(&site.semaphore));
        }
        bytes.truncate(cut);
        read(&source(&bytes), &layout, |_| Some("f".to_owned()));
    }
}
