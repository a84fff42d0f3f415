//! Compares the files of programs with docs/marker-format.md.

use super::elf::{Elf, runtimes, sites, word};
use super::*;
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::BTreeSet;

const NAMES: &[(&str, Option<&str>)] = &[
    ("plain", None),
    ("plain name", None),
    ("quote \" backslash \\ apostrophe '", None),
    ("percent %d %% %c[line] %=", None),
    ("braces {a|b} }{", None),
    ("dollar $1 # // /* ; \t tab", None),
    ("Umläute ß 日本 🦀", None),
    ("", None),
    ("one after another", None),
    ("by macro", None),
    ("by array", None),
    ("in prod", Some("prod")),
    ("in dev", Some("dev")),
    ("in net_io", Some("net_io")),
    ("grouped", Some("dev")),
];

#[test]
fn sections() {
    for (compiler, language, ways) in COMPILERS {
        if !there(compiler) {
            continue;
        }
        for way in *ways {
            let build = Build::new();
            let elf = Elf::open(&build.program(compiler, &[language, way], &["names.c"]));
            let what = format!("{compiler} {way:?}");

            let found = sites(&elf);
            // Inlined copies have the same texts.
            let mut texts: Vec<_> = found
                .iter()
                .map(|site| (site.name.as_deref().unwrap(), site.group.as_deref()))
                .collect();
            texts.sort_unstable();
            texts.dedup();
            let mut expected = NAMES.to_vec();
            expected.sort_unstable();
            assert_eq!(texts, expected, "{what}");

            let source =
                std::fs::read_to_string(folder().join("tests/c/names.c")).expect("the source");
            for site in &found {
                let name = site.name.as_deref().unwrap();
                assert_eq!(
                    site.flags,
                    u8::from(["plain", "grouped"].contains(&name)),
                    "{what}: {name}"
                );
                assert_eq!(site.file, "names.c");
                if name.starts_with("in ") {
                    let line = source
                        .lines()
                        .position(|line| line.contains(&format!("\"{name}\"")))
                        .unwrap()
                        + 1;
                    assert_eq!(site.line, line as u32);
                }
                let (section, bytes) = elf.at(site.semaphore);
                assert_eq!((&*section, &bytes[..2]), (".probes", &[0, 0][..]), "{what}: {name}");
                assert_eq!(site.semaphore % 2, 0);
                // The linker puts .text.ctrace_points into .text.
                assert_eq!(
                    (&*elf.at(site.point).0, elf.at(site.point).1[0]),
                    (".text", 0x90),
                    "{what}: {name}"
                );
                assert!(elf.at(site.text).0.starts_with(".text"));
                let function = elf.function(site.text).unwrap_or_default();
                assert!(
                    ["main", "plain", "grouped"].iter().any(|f| function.contains(f))
                        || function.is_empty(),
                    "{what}: {function}"
                );
            }
            let mut semaphores: Vec<_> = found.iter().map(|site| site.semaphore).collect();
            semaphores.sort_unstable();
            semaphores.dedup();
            assert_eq!(semaphores.len(), found.len(), "each has its own");

            let [(flush, register, list, name)] = &runtimes(&elf)[..] else {
                panic!("{what}: one runtime")
            };
            assert_eq!(name, "c 0.1.0");
            for site in [*flush, *register] {
                assert_eq!(site % 16, 0);
                let code = [
                    0x90, 0x0f, 0x1f, 0x44, 0, 0, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0xc3,
                ];
                assert_eq!(elf.at(site).1[..17], code, "{what}");
            }
            let file = elf.file();
            let bss = file
                .sections()
                .find(|s| (s.address()..s.address() + s.size()).contains(list))
                .expect("a section");
            assert!([".bss", ".data"].contains(&bss.name().unwrap()), "{what}");
            assert_eq!(list % 8, 0);
            check_notes(&elf, *flush, *register);
        }
    }
}

/// Checks that the USDT notes are those of the two sites.
fn check_notes(elf: &Elf, flush: u64, register: u64) {
    let base = elf.section(".stapsdt.base").0;
    let notes = elf.section(".note.stapsdt").2;
    let mut found = Vec::new();
    let mut rest = &notes[..];
    while !rest.is_empty() {
        let size = word(rest, 4) as usize;
        assert_eq!((word(rest, 0), word(rest, 8), &rest[12..20]), (8, 3, &b"stapsdt\0"[..]));
        let address =
            |offset: usize| u64::from_le_bytes(rest[offset..offset + 8].try_into().unwrap());
        assert_eq!((address(28), address(36)), (base, 0), "base and semaphore");
        let texts = rest[44..20 + size].split(|&byte| byte == 0);
        let texts: Vec<_> = texts.map(|text| String::from_utf8(text.to_vec()).unwrap()).collect();
        found.push((address(20), texts[..3].join(" ")));
        rest = &rest[20 + size.next_multiple_of(4)..];
    }
    found.sort();
    let mut expected = vec![
        (flush, "ctrace flush 8@%rdi".to_owned()),
        (register, "ctrace register 8@%rdi".to_owned()),
    ];
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn readelf_sees_the_notes() {
    if !there("gcc") || !there("readelf") {
        return;
    }
    let build = Build::new();
    let program = build.program("gcc", &[C, &["-O2"]], &["names.c"]);
    let output = Command::new("readelf").arg("-nW").arg(&program).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    for name in ["flush", "register"] {
        assert!(
            text.contains("Provider: ctrace") && text.contains(&format!("Name: {name}")),
            "{text}"
        );
    }
    assert_eq!(text.matches("Arguments: 8@%rdi").count(), 2, "{text}");
}

#[test]
fn disabled_is_nothing() {
    for (compiler, language, _) in COMPILERS {
        if !there(compiler) {
            continue;
        }
        // Disabled by the flag, or on a target that the header does not know.
        for why in ["-DCTRACE_DISABLE", "-U__linux__", "-U__x86_64__"] {
            let build = Build::new();
            let program = build.program(compiler, &[language, &["-O1", why]], &["nothing.c"]);
            run(&program, &[]);
            let elf = Elf::open(&program);
            for section in ["ctrace_sites", "ctrace_runtime", ".probes", ".note.stapsdt"] {
                assert!(elf.section(section).2.is_empty());
            }
            assert!(
                !elf.file().symbols().any(|symbol| symbol.name().unwrap().starts_with("ctrace"))
            );
        }
    }
}

#[test]
fn a_group_compiled_out() {
    if there("gcc") {
        for define in ["-DCTRACE_DISABLE_dev", "-DCTRACE_DISABLE_dev="] {
            let build = Build::new();
            let found =
                sites(&Elf::open(&build.program("gcc", &[C, &["-O2", define]], &["names.c"])));
            assert!(found.iter().any(|site| site.group.as_deref() == Some("prod")));
            assert!(!found.iter().any(|site| site.group.as_deref() == Some("dev")));
        }
    }
}

#[test]
fn points_of_a_group_compiled_out() {
    for compiler in ["gcc", "clang", "g++", "clang++"] {
        let language = if compiler.ends_with("++") { CXX } else { C };
        if !there(compiler) {
            continue;
        }
        let names = |define: &str| {
            let build = Build::new();
            let program = build.program(compiler, &[language, &["-O1", define]], &["grouped.c"]);
            run(&program, &[]);
            let sites = sites(&Elf::open(&program)).into_iter();
            let named = sites.filter_map(|site| {
                let name = site.name?;
                let group = site.group.as_deref().unwrap_or_default();
                assert!(
                    name.ends_with(&format!("in {group}")) || name.contains(" %d"),
                    "{name}: {group}"
                );
                Some(name)
            });
            named.collect()
        };
        let all: BTreeSet<String> = names("-DCTRACE_DISABLE_other");
        assert_eq!(all.len(), 26, "{compiler}: {all:?}");
        for define in ["-DCTRACE_DISABLE_dev", "-DCTRACE_DISABLE_dev="] {
            let kept: Vec<_> = all.iter().filter(|name| name.contains("prod")).cloned().collect();
            assert_eq!(names(define).into_iter().collect::<Vec<_>>(), kept, "{compiler}");
        }
    }
}

/// A dropped function takes its scopes with it, and they do not keep it.
#[test]
fn gc_sections_drops_scopes() {
    for (compiler, linker) in
        [("gcc", "-fuse-ld=bfd"), ("clang", "-fuse-ld=bfd"), ("clang", "-fuse-ld=lld")]
    {
        if !there(compiler) || linker.ends_with("lld") && !there("ld.lld") {
            continue;
        }
        let build = Build::new();
        let flags = &["-O2", "-ffunction-sections", "-Wl,--gc-sections", linker][..];
        let elf = Elf::open(&build.program(compiler, &[C, flags], &["unused.c"]));
        let names: Vec<_> = sites(&elf).into_iter().filter_map(|site| site.name).collect();
        assert!(!names.is_empty() && names.iter().all(|name| name == "kept"), "{names:?}");
        assert_eq!(runtimes(&elf).len(), 1);
    }
}

/// A compile takes seconds, so not every compiler meets each standard at each level.
#[test]
fn a_program_for_ctrack() {
    for (compiler, way, standard) in [
        ("g++", "-O0", "-std=c++17"),
        ("g++", "-O2", "-std=c++20"),
        ("clang++", "-O0", "-std=c++20"),
    ] {
        if !there(compiler) {
            continue;
        }
        let build = Build::new();
        let flags = &["-I../../include/ctrack", standard, "-pthread", way][..];
        let program = build.program(compiler, &[flags], &["ctrack.cpp"]);
        let output = run(&program, &[]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.lines().all(|line| line.contains("sudo ctrace attach ")), "{text}");
        let names: BTreeSet<String> =
            sites(&Elf::open(&program)).into_iter().filter_map(|site| site.name).collect();
        // gcc tells CTRACK the arguments of a template.
        let instantiations: &[&str] = match compiler {
            "g++" => &["template_of<4>", "template_of<6>"],
            _ => &["template_of"],
        };
        let usual = ["named", "dev named", "in parentheses", "at_run_time (any name)", "function"];
        for name in usual.iter().chain(instantiations).copied() {
            assert!(names.contains(name), "{compiler} {way}: no {name} in {names:?}");
        }
        assert_eq!(groups(&program), ["dev", "prod"]);
        // What is compiled out is so before the optimizer sees it.
        if way == "-O0" {
            continue;
        }
        let without = |define| {
            let program = build.program(compiler, &[flags, &[define]], &["ctrack.cpp"]);
            run(&program, &[]);
            groups(&program)
        };
        assert_eq!(without("-DCTRACK_DISABLE_DEV"), ["prod"]);
        assert_eq!(without("-DCTRACK_DISABLE_PROD"), ["dev"]);
        let none: [&str; 0] = [];
        assert_eq!(without("-DCTRACK_DISABLE"), none);
    }
}

fn groups(program: &Path) -> Vec<String> {
    let found: BTreeSet<_> =
        sites(&Elf::open(program)).into_iter().filter_map(|site| site.group).collect();
    found.into_iter().collect()
}

/// Prints the cost of a scope on this machine.
#[test]
#[ignore = "it measures: run it with --nocapture on a quiet machine"]
fn bench() {
    for compiler in ["gcc", "clang"] {
        if there(compiler) {
            let build = Build::new();
            let output = run(&build.program(compiler, &[C, &["-O2"]], &["bench.c"]), &[]);
            eprint!("{compiler}\n{}", String::from_utf8_lossy(&output.stdout));
        }
    }
}
