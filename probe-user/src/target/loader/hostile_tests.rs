//! Tests programs whose dynamic sections ask for too much. Each answer comes in bounded time. Most
//! of these would keep a naive search busy for hours.

use super::environment::Environment;
use super::*;
use crate::target::fixtures::loader_takeover::{DYNAMIC, texts, with_dynamic_section};
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

const GLIBC: &str = "/lib64/ld-linux-x86-64.so.2";
fn craft(path: &Path, entries: &[(i64, u64)], texts: &[u8]) {
    fs::write(path, with_dynamic_section(entries, texts)).unwrap();
}

fn search(exe: &Path, variables: Environment) -> Result<Libraries, String> {
    find(exe, GLIBC.as_bytes(), &Root::ours().unwrap(), variables, Processor::ours())
}

fn in_directory(directory: &Path) -> Environment {
    Environment { directory: directory.to_owned(), ..Environment::default() }
}

#[test]
fn a_hundred_thousand_libraries() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    for (count, refused) in [(100_000, true), (4_097, true), (4_000, false)] {
        let (bytes, places) = texts((0..count).map(|at| format!("lib{at}.so")));
        let entries: Vec<_> = places.into_iter().map(|place| (DT_NEEDED.0, place)).collect();
        craft(&program, &entries, &bytes);
        let found = search(&program, in_directory(dir.path()));
        match refused {
            true => assert_eq!(found.unwrap_err(), "there are more than 4096"),
            false => assert_eq!(found.unwrap().missing.len(), count),
        }
    }
    // A section without an end and without libraries.
    let entries = vec![(DT_RUNPATH.0, 1); 1 << 20];
    craft(&program, &entries, b"\0x\0");
    assert_eq!(search(&program, in_directory(dir.path())).unwrap_err(), "there are more than 4096");
}

#[test]
fn many_libraries_in_many_directories() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    let path: Vec<String> = (0..4000).map(|at| format!("{}{at}", "/./".repeat(at % 3))).collect();
    let names = (0..4000).map(|at| format!("lib{at}.so"));
    let (bytes, places) = texts(std::iter::once(path.join(":")).chain(names));
    let needed = places[1..].iter().map(|place| (DT_NEEDED.0, *place));
    let entries: Vec<_> = needed.chain([(DT_RUNPATH.0, places[0])]).collect();
    craft(&program, &entries, &bytes);
    for at in 0..4000 {
        fs::create_dir(dir.path().join(at.to_string())).unwrap();
    }
    let why = search(&program, in_directory(dir.path())).unwrap_err();
    assert!(why.contains("places") || why.contains("longer than"), "{why}");
}

/// Each library adds a search path to the next one's. None of the directories exists.
#[test]
fn a_chain_of_search_paths() {
    let dir = tempfile::tempdir().unwrap();
    let path = |at: usize| format!("{}/{at}", dir.path().display());
    for at in 0..1000 {
        let list: Vec<String> = (0..2000).map(|next| format!("$ORIGIN/no/{next}")).collect();
        let names = (0..50).map(|name| format!("lib{at}x{name}.so")).chain([path(at + 1)]);
        let (bytes, places) = texts(std::iter::once(list.join(":")).chain(names));
        let needed = places[1..].iter().map(|place| (DT_NEEDED.0, *place));
        let entries: Vec<_> = needed.chain([(DT_RPATH.0, places[0])]).collect();
        craft(Path::new(&path(at)), &entries, &bytes);
    }
    let why = search(Path::new(&path(0)), in_directory(dir.path())).unwrap_err();
    assert!(why.contains("longer than") || why.contains("64 MiB"), "{why}");
}

/// Hundreds of thousands of names are all missing.
#[test]
fn many_missing_libraries() {
    let dir = tempfile::tempdir().unwrap();
    let path = |at: usize| format!("{}/{at}", dir.path().display());
    for at in 0..100 {
        let names = (0..4000).map(|name| format!("l{}", at * 4000 + name)).chain([path(at + 1)]);
        let (bytes, places) = texts(names.skip(1));
        let entries: Vec<_> = places.into_iter().map(|place| (DT_NEEDED.0, place)).collect();
        craft(Path::new(&path(at)), &entries, &bytes);
    }
    search(Path::new(&path(0)), in_directory(dir.path())).unwrap_err();
}

/// A library names seventy, each of which names seventy.
#[test]
fn libraries_without_end() {
    let dir = tempfile::tempdir().unwrap();
    let names = |count: usize| (0..count).map(|at| format!("{}/{at}", dir.path().display()));
    for at in 0..70 {
        let needed =
            (at * 70..(at + 1) * 70).map(|next| format!("{}/{next}", dir.path().display()));
        let (bytes, places) = texts(needed);
        let entries: Vec<_> = places.into_iter().map(|place| (DT_NEEDED.0, place)).collect();
        craft(&dir.path().join(at.to_string()), &entries, &bytes);
    }
    for path in names(4900).skip(70) {
        craft(Path::new(&path), &[], b"");
    }
    let why = search(&dir.path().join("0"), in_directory(dir.path())).unwrap_err();
    assert_eq!(why, "there are more than 4096");
}

#[test]
fn long_names_and_long_paths() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    let path = "$ORIGIN".repeat(9_000);
    let (bytes, places) =
        texts(["x".repeat(4_090), "y".repeat(5_000), path, "z".repeat(1 << 20)].into_iter());
    let needed = [places[0], places[1], places[3], u64::MAX, 1 << 40];
    let needed = needed.map(|place| (DT_NEEDED.0, place));
    craft(&program, &[&needed[..], &[(DT_RUNPATH.0, places[2])]].concat(), &bytes);
    let found = search(&program, in_directory(dir.path())).unwrap();
    // A text longer than a path is no name.
    assert_eq!(found.missing.len(), 1);
    assert!(found.missing[0].len() < 300);
}

/// A fifo, a device or a directory takes each place where a library could be.
#[test]
fn fifos_devices_and_directories_are_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    let fifo = dir.path().join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let names = [fifo.to_str().unwrap(), "/dev/zero", "/dev/tty", "/dev/watchdog", "/proc", "fifo"];
    let (bytes, places) = texts(names.iter().map(|name| (*name).to_owned()));
    let entries: Vec<_> = places.into_iter().map(|place| (DT_NEEDED.0, place)).collect();
    craft(&program, &entries, &bytes);
    let variables = Environment {
        library_path: Some(dir.path().into()),
        preload: Some(fifo.clone().into()),
        ..in_directory(dir.path())
    };
    assert_eq!(search(&program, variables.clone()).unwrap().missing, names);
    // The fifo stands for the program, then for its loader.
    assert!(search(&fifo, variables.clone()).is_err());
    let loader = dir.path().join("ld-linux-x86-64.so.2");
    fs::rename(&fifo, &loader).unwrap();
    let loader = loader.to_str().unwrap().as_bytes();
    let root = Root::ours().unwrap();
    let why = find(&program, loader, &root, variables, Processor::ours()).unwrap_err();
    assert!(why.contains("cannot be read"), "{why}");
}

/// Reading /proc/kmsg would steal messages from their reader.
#[test]
fn files_of_the_kernel_are_not_read() {
    let root = Root::ours().unwrap();
    let mut files =
        Files { root: &root, directory: Path::new("/"), budget: SearchBudget::default() };
    let before = files.budget.bytes;
    let found = files.look(b"/proc/version").unwrap().unwrap();
    assert_eq!((found.kind, files.budget.bytes), (dynamic::FileKind::Broken, before));
    files.look(GLIBC.as_bytes()).unwrap().unwrap();
    assert!(files.budget.bytes < before);
}

#[test]
fn huge_files_are_read_in_small_parts() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    let library = dir.path().join("libhuge.so");
    let (bytes, places) = texts(["./libhuge.so".to_owned()].into_iter());
    craft(&program, &[(DT_NEEDED.0, places[0])], &bytes);
    craft(&library, &[], &bytes);
    for path in [&program, &library] {
        File::options().write(true).open(path).unwrap().set_len(4 << 40).unwrap();
    }
    let found = search(&program, in_directory(dir.path())).unwrap();
    assert_eq!(found.paths[0], dir.path().join("./libhuge.so"));
}

/// Changes any byte of the headers and cuts the file anywhere.
#[test]
fn survives_mutations() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    let (bytes, places) = texts(["libx.so".to_owned(), "$ORIGIN:/lib".to_owned()].into_iter());
    craft(&program, &[(DT_NEEDED.0, places[0]), (DT_RUNPATH.0, places[1])], &bytes);
    let whole = fs::read(&program).unwrap();
    let file = File::options().write(true).open(&program).unwrap();
    for at in (0..232).chain(DYNAMIC..whole.len()) {
        for value in [0, 1, 0x7f, 0xff, whole[at] ^ 1] {
            file.write_all_at(&[value], at as u64).unwrap();
            let _ = search(&program, in_directory(dir.path()));
        }
        file.write_all_at(&whole[at..=at], at as u64).unwrap();
    }
    for length in (0..240).chain(DYNAMIC..whole.len()) {
        fs::write(&program, &whole[..length]).unwrap();
        let _ = search(&program, in_directory(dir.path()));
    }
}
