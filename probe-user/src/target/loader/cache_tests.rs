use super::*;
use std::io::Write;

const NEWEST: u32 = u32::MAX;
const PLAIN: Processor = Processor { level: 1, haswell: false, avx512: false };
const THIRD: Processor = Processor { level: 3, haswell: true, avx512: false };

/// A library in a cache: its flags, name, path, and hardware requirements.
type Entry<'a> = (u32, &'a str, &'a str, u64);

const ENTRIES: [Entry<'_>; 3] = [
    // 32 bits; x32; ours.
    (0x0003, "liba.so.1", "/lib32/liba.so.1", 0),
    (0x0803, "liba.so.1", "/libx32/liba.so.1", 0),
    (X86_64, "liba.so.1", "/lib64/liba.so.1", 0),
];

/// Builds the new format for an offset of a file. Directory names are in an extension.
fn new_format(at: usize, entries: &[Entry<'_>], directories: &[&str]) -> Vec<u8> {
    let mut texts = Vec::new();
    let base = NEW_HEADER + NEW_ENTRY * entries.len();
    let mut text = |text: &str| {
        let place = (base + texts.len()) as u32;
        texts.extend_from_slice(text.as_bytes());
        texts.push(0);
        place
    };
    let mut table = Vec::new();
    for (flags, name, path, wants) in entries {
        let numbers = [*flags, text(name), text(path), 0];
        table.extend(numbers.into_iter().flat_map(u32::to_le_bytes));
        table.extend(wants.to_le_bytes());
    }
    // Offsets in the extension count from the file's start.
    let names: Vec<u32> = directories.iter().map(|name| text(name) + at as u32).collect();
    texts.resize(texts.len().next_multiple_of(4), 0);
    let extension = (at + base + texts.len()) as u32;
    let mut bytes = NEW.to_vec();
    bytes.extend((entries.len() as u32).to_le_bytes());
    bytes.extend((texts.len() as u32).to_le_bytes());
    bytes.extend([2, 0, 0, 0]);
    bytes.extend(if names.is_empty() { 0 } else { extension }.to_le_bytes());
    bytes.resize(NEW_HEADER, 0);
    bytes.extend(table);
    bytes.extend(texts);
    let size = 4 * names.len() as u32;
    // Two sections: the file's generator, and the names.
    let header = [EXTENSION, 2, 0, 0, 0, 0, DIRECTORY_NAMES, 0, extension + 40, size];
    bytes.extend(header.into_iter().chain(names).flat_map(u32::to_le_bytes));
    bytes
}

fn old_format(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut bytes = OLD.to_vec();
    bytes.push(0);
    bytes.extend((entries.len() as u32).to_le_bytes());
    let mut texts = Vec::new();
    for (flags, name, path, _) in entries {
        let at = texts.len() as u32;
        texts.extend(format!("{name}\0{path}\0").into_bytes());
        let numbers = [*flags, at, at + name.len() as u32 + 1];
        bytes.extend(numbers.into_iter().flat_map(u32::to_le_bytes));
    }
    bytes.extend(texts);
    bytes
}

fn find(bytes: &[u8], name: &str, processor: Processor, version: u32) -> Option<String> {
    let cache = Cache::new(bytes.to_vec())?;
    let found = cache.find(name.as_bytes(), processor, version)?;
    Some(String::from_utf8_lossy(found).into_owned())
}

#[test]
fn both_formats_and_both_in_one_file() {
    let other = [(X86_64, "liba.so.1", "/old/liba.so.1", 0)];
    let mut both = OLD.to_vec();
    both.extend([0, 1, 0, 0, 0]);
    both.resize((OLD_HEADER + OLD_ENTRY).next_multiple_of(8), 0);
    both.extend(new_format(both.len(), &ENTRIES, &["x86-64-v2"]));
    for (bytes, expected) in [
        (new_format(0, &ENTRIES, &[]), "/lib64/liba.so.1"),
        (old_format(&ENTRIES), "/lib64/liba.so.1"),
        (old_format(&other), "/old/liba.so.1"),
        (both, "/lib64/liba.so.1"),
    ] {
        assert_eq!(find(&bytes, "liba.so.1", PLAIN, NEWEST).as_deref(), Some(expected));
        for absent in ["liba.so", "liba.so.12", "", "iba.so.1"] {
            assert_eq!(find(&bytes, absent, PLAIN, NEWEST), None, "{absent}");
        }
    }
}

#[test]
fn the_best_variant_for_the_processor() {
    let number = |number: u64, level: u64| IS_NUMBER | level << 32 | number;
    let entries = [
        (X86_64, "libx.so", "/v4/libx.so", number(2, 3)),
        (X86_64, "libx.so", "/v3/libx.so", number(0, 2)),
        (X86_64, "libx.so", "/v2/libx.so", number(1, 1)),
        (X86_64, "libx.so", "/libx.so", 0),
        // The directory promises less than the library requires.
        (X86_64, "liby.so", "/v2/liby.so", number(1, 3)),
        (X86_64, "liby.so", "/unknown/liby.so", number(3, 0)),
        (X86_64, "liby.so", "/nowhere/liby.so", number(99, 0)),
        (X86_64, "liby.so", "/liby.so", 0),
    ];
    let names = ["x86-64-v3", "x86-64-v2", "x86-64-v4", "power9"];
    let mut combined = OLD.to_vec();
    combined.resize(OLD_HEADER, 0);
    combined.extend(new_format(OLD_HEADER, &entries, &names));
    for bytes in [new_format(0, &entries, &names), combined] {
        let level = |level| find(&bytes, "libx.so", Processor { level, ..PLAIN }, 36).unwrap();
        assert_eq!(
            [1, 2, 3, 4].map(level),
            ["/libx.so", "/v2/libx.so", "/v3/libx.so", "/v4/libx.so"]
        );
        assert_eq!(find(&bytes, "liby.so", THIRD, 36).as_deref(), Some("/liby.so"));
    }
}

#[test]
fn hardware_of_older_versions() {
    let entries = [
        (X86_64, "libx.so", "/haswell/avx512_1/libx.so", 1 << 50 | 1 << 2),
        (X86_64, "libx.so", "/haswell/libx.so", 1 << 50),
        (X86_64, "libx.so", "/libx.so", 0),
    ];
    let bytes = new_format(0, &entries, &[]);
    assert_eq!(find(&bytes, "libx.so", THIRD, 31).as_deref(), Some("/haswell/libx.so"));
    assert_eq!(find(&bytes, "libx.so", THIRD, 37).as_deref(), Some("/libx.so"));
    assert_eq!(find(&bytes, "libx.so", PLAIN, 31).as_deref(), Some("/libx.so"));
}

/// A broken cache is harmless, whatever its content and length.
#[test]
fn broken_caches_say_nothing() {
    let whole = new_format(0, &ENTRIES, &["x86-64-v2", "x86-64-v3"]);
    for length in 0..whole.len() {
        let found = find(&whole[..length], "liba.so.1", PLAIN, NEWEST);
        assert!(found.is_none() || found.as_deref() == Some("/lib64/liba.so.1"), "{length}");
    }
    for format in [whole, old_format(&ENTRIES)] {
        for at in 0..format.len() {
            for value in [0, 0x7f, 0xff] {
                let mut bytes = format.clone();
                bytes[at] = value;
                find(&bytes, "liba.so.1", THIRD, NEWEST);
            }
        }
    }
    let mut other_order = new_format(0, &ENTRIES, &[]);
    other_order[28] = 3;
    assert_eq!(find(&other_order, "liba.so.1", PLAIN, NEWEST), None);
    assert_eq!(find(b"", "liba.so.1", PLAIN, NEWEST), None);
}

#[test]
fn too_large_a_cache_is_none() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&new_format(0, &ENTRIES, &[])).unwrap();
    let mut budget = SearchBudget::default();
    assert!(Cache::read(&file, &mut budget).unwrap().is_some());
    file.set_len(1 << 40).unwrap();
    assert!(Cache::read(&file, &mut budget).unwrap().is_none());
}
