//! `include/ctrace.h` and `include/ctrack_compat.hpp`: small programs (in `tests/c`) are compiled by the
//! compilers that are there, in many ways, and run; what lies in their files is compared with
//! docs/marker-format.md. A test says so where a compiler is missing.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use object::{Object, ObjectSection, ObjectSymbol};

const C: &[&str] = &["-std=c11"];
const CXX: &[&str] = &["-xc++", "-std=c++17"];
const STRICT: &[&str] = &["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: there is no {program}");
    }
    there
}

/// Compiles programs into a folder of its own.
struct Build {
    out: tempfile::TempDir,
}

impl Build {
    fn new() -> Self {
        Build { out: tempfile::tempdir().expect("a temporary folder") }
    }

    fn command(
        &self,
        compiler: &str,
        flags: &[&[&str]],
        sources: &[&str],
        name: &str,
    ) -> (Command, PathBuf) {
        let out = self.out.path().join(name);
        let mut command = Command::new(compiler);
        command.current_dir(folder().join("tests/c")).arg("-I../../include").args(flags.concat());
        command.args(sources).arg("-o").arg(&out);
        (command, out)
    }

    /// The program, built; warnings are errors.
    #[track_caller]
    fn program(&self, compiler: &str, flags: &[&[&str]], sources: &[&str]) -> PathBuf {
        let name = sources[0].split('.').next().expect("a name");
        let (mut command, out) =
            self.command(compiler, &[flags, &[STRICT]].concat(), sources, name);
        let output = command.output().expect("the compiler runs");
        assert!(
            output.status.success(),
            "{command:?}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        out
    }
}

#[track_caller]
fn run(program: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output().expect("it runs");
    assert!(
        output.status.success(),
        "{program:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// How programs are compiled and linked.
const WAYS: &[&[&str]] = &[
    &["-O0"],
    &["-O1"],
    &["-O2", "-fPIC", "-pie"],
    &["-O3", "-march=x86-64-v3"],
    &["-Os", "-fno-pie", "-no-pie"],
    &["-O2", "-static"],
    &["-O2", "-fPIE", "-static-pie"],
    &["-O2", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"],
    &["-O2", "-flto"],
    &["-O2", "-fno-omit-frame-pointer", "-fcf-protection"],
    &["-O2", "-DCTRACE_NO_LINK_ORDER", "-DCTRACE_TLS_MODEL=\"global-dynamic\"", "-fPIC"],
];

/// Nesting, tags, stack pointers, threads, recycling, fork, exit: in every way.
fn basics(compiler: &str, language: &[&str]) {
    if !there(compiler) {
        return;
    }
    for way in WAYS {
        let build = Build::new();
        let program =
            build.program(compiler, &[language, way, &["-pthread"]], &["basics.c", "second.c"]);
        let output = run(&program, &[]);
        // The last flush comes after the program's own destructors.
        assert_eq!(String::from_utf8_lossy(&output.stdout), "end\nflush\n", "{compiler} {way:?}");
    }
}

#[test]
fn basics_gcc() {
    basics("gcc", C);
}

#[test]
fn basics_gxx() {
    basics("g++", CXX);
}

#[test]
fn basics_clang() {
    basics("clang", C);
}

#[test]
fn basics_clangxx() {
    basics("clang++", CXX);
}

#[test]
fn c_and_cxx_in_one_program() {
    if !there("g++") {
        return;
    }
    let build = Build::new();
    let flags = &["-O2", "-pthread", "-xc++"][..];
    let program = build.program("g++", &[flags], &["basics.c", "-xc", "second.c"]);
    run(&program, &[]);
    assert_eq!(runtimes(&Elf::open(&program)).len(), 1);
}

#[test]
fn other_standards_and_dialects() {
    for (compiler, languages) in [
        (
            "gcc",
            &[
                ["-xc", "-std=gnu11"],
                ["-xc", "-std=c17"],
                ["-xc", "-std=gnu2x"],
                ["-xc", "-masm=intel"],
            ][..],
        ),
        ("g++", &[["-xc++", "-std=gnu++17"], ["-xc++", "-std=c++20"], ["-xc++", "-std=c++23"]][..]),
        ("clang", &[["-xc", "-std=gnu11"], ["-xc", "-std=gnu2x"], ["-xc", "-masm=intel"]][..]),
        ("clang++", &[["-xc++", "-std=gnu++17"], ["-xc++", "-std=c++20"]][..]),
    ] {
        if !there(compiler) {
            continue;
        }
        for language in languages {
            let build = Build::new();
            run(
                &build.program(
                    compiler,
                    &[language, &["-O2", "-pthread"]],
                    &["basics.c", "second.c"],
                ),
                &[],
            );
        }
    }
}

#[test]
fn musl() {
    if !there("musl-gcc") {
        return;
    }
    for way in [&["-O2", "-static"][..], &["-O0"]] {
        let build = Build::new();
        let program = build.program("musl-gcc", &[C, way], &["basics.c", "second.c"]);
        let output = run(&program, &[]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "end\nflush\n");
    }
}

/// Exceptions, templates, lambdas, inline functions.
#[test]
fn language() {
    for compiler in ["g++", "clang++"] {
        if !there(compiler) {
            continue;
        }
        for way in WAYS.iter().step_by(2) {
            let build = Build::new();
            run(
                &build.program(
                    compiler,
                    &[CXX, way, &["-pthread"]],
                    &["language.cpp", "language2.cpp"],
                ),
                &[],
            );
        }
    }
}

#[test]
fn longjmp() {
    for (compiler, way) in [("gcc", "-O2"), ("gcc", "-O0"), ("clang", "-O2")] {
        if there(compiler) {
            let build = Build::new();
            run(&build.program(compiler, &[C, &[way]], &["longjmp.c"]), &[]);
        }
    }
}

/// Handlers that interrupt scopes everywhere: taken = found.
#[test]
fn signal_storm() {
    for compiler in ["gcc", "clang"] {
        if there(compiler) {
            let build = Build::new();
            let program =
                build.program(compiler, &[&["-std=gnu11", "-O2", "-pthread"]], &["storm.c"]);
            for arguments in [&[][..], &["thread"]] {
                eprint!("{}", String::from_utf8_lossy(&run(&program, arguments).stderr));
            }
        }
    }
}

#[test]
fn dlopen_and_dlclose() {
    for compiler in ["gcc", "clang"] {
        if there(compiler) {
            let build = Build::new();
            let gnu = &["-std=gnu11", "-O2", "-pthread", "-Wno-pedantic"][..];
            let library = build.program(compiler, &[gnu, &["-shared", "-fPIC"]], &["plugin.c"]);
            let program = build.program(compiler, &[gnu, &["-ldl"]], &["dl.c"]);
            let output = run(&program, &[library.to_str().expect("a path")]);
            // dlclose flushes, three times.
            assert_eq!(String::from_utf8_lossy(&output.stdout), "flush\nflush\nflush\n");
        }
    }
}

// What lies in the files.

/// A linked file, read by addresses.
struct Elf {
    data: Vec<u8>,
}

struct Site {
    name: Option<String>,
    file: String,
    group: Option<String>,
    line: u32,
    flags: u8,
    semaphore: u64,
    point: u64,
    text: u64,
}

impl Elf {
    fn open(path: &Path) -> Self {
        Elf { data: std::fs::read(path).expect("the program's file") }
    }

    fn file(&self) -> object::File<'_> {
        object::File::parse(&*self.data).expect("an ELF file")
    }

    /// The section's address, alignment and bytes; nothing: there is none.
    fn section(&self, name: &str) -> (u64, u64, Vec<u8>) {
        self.file().section_by_name(name).map_or((0, 0, Vec::new()), |section| {
            (section.address(), section.align(), section.data().expect("data").to_vec())
        })
    }

    /// The name of the section at an address, and the bytes from there on.
    fn at(&self, address: u64) -> (String, Vec<u8>) {
        let file = self.file();
        let section = file
            .sections()
            .find(|section| {
                section.address() != 0
                    && (section.address()..section.address() + section.size()).contains(&address)
            })
            .unwrap_or_else(|| panic!("nothing at {address:#x}"));
        let offset = (address - section.address()) as usize;
        (
            section.name().expect("a name").to_owned(),
            section.data().expect("data")[offset..].to_vec(),
        )
    }

    fn text(&self, address: u64) -> String {
        let bytes = self.at(address).1;
        let end = bytes.iter().position(|&byte| byte == 0).expect("an end");
        String::from_utf8(bytes[..end].to_vec()).expect("UTF-8")
    }

    /// The symbol of the function that an address lies in.
    fn function(&self, address: u64) -> Option<String> {
        let file = self.file();
        let symbol = file.symbols().find(|symbol| {
            (symbol.address()..symbol.address() + symbol.size()).contains(&address)
        })?;
        Some(symbol.name().expect("a name").to_owned())
    }
}

fn word(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

/// Follows a self-relative field.
fn follow(bytes: &[u8], address: u64, offset: usize) -> Option<u64> {
    let relative = word(bytes, offset) as i32;
    (relative != 0).then(|| (address + offset as u64).wrapping_add_signed(i64::from(relative)))
}

fn sites(elf: &Elf) -> Vec<Site> {
    let (address, align, bytes) = elf.section("ctrace_sites");
    assert!(bytes.is_empty() || align == 32);
    assert_eq!(bytes.len() % 32, 0);
    let entries = bytes.chunks(32).zip((address..).step_by(32));
    entries
        .map(|(entry, address)| {
            assert_eq!((entry[0], &entry[2..4]), (1, &[0, 0][..]), "version and reserved");
            let to = |offset| follow(entry, address, offset);
            Site {
                name: to(8).map(|name| elf.text(name)),
                file: elf.text(to(12).expect("a file")),
                group: to(16).map(|group| elf.text(group)),
                line: word(entry, 4),
                flags: entry[1],
                semaphore: to(20).expect("a semaphore"),
                point: to(24).expect("a control point"),
                text: to(28).expect("a place in a function"),
            }
        })
        .collect()
}

/// The entries of `ctrace_runtime`: addresses of flush, register and list, and the name.
fn runtimes(elf: &Elf) -> Vec<(u64, u64, u64, String)> {
    let (address, _, bytes) = elf.section("ctrace_runtime");
    assert_eq!(bytes.len() % 32, 0);
    let entries = bytes.chunks(32).zip((address..).step_by(32));
    entries
        .map(|(entry, address)| {
            assert_eq!((word(entry, 0), &entry[20..]), (1, &[0; 12][..]), "version and reserved");
            let to = |offset| follow(entry, address, offset).expect("not none");
            (to(4), to(8), to(12), elf.text(to(16)))
        })
        .collect()
}

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
    for (compiler, language) in [("gcc", C), ("g++", CXX), ("clang", C), ("clang++", CXX)] {
        if !there(compiler) {
            continue;
        }
        for way in WAYS {
            let build = Build::new();
            let elf = Elf::open(&build.program(compiler, &[language, way], &["names.c"]));
            let what = format!("{compiler} {way:?}");

            let found = sites(&elf);
            // Copies that were inlined have the same texts.
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

/// The USDT notes are those of the two sites.
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
    for (compiler, language) in [("gcc", C), ("g++", CXX), ("clang", C), ("clang++", CXX)] {
        if !there(compiler) {
            continue;
        }
        // Disabled, or on a target that the header does not know.
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

/// A function that is dropped takes its scopes with it, and is not kept by them.
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

#[test]
fn a_program_for_ctrack() {
    for (compiler, way) in [("g++", "-O2"), ("g++", "-O0"), ("clang++", "-O2"), ("clang++", "-O0")]
    {
        if !there(compiler) {
            continue;
        }
        let build = Build::new();
        let flags = &["-I../../include/ctrack", "-std=c++17", "-pthread", way][..];
        let program = build.program(compiler, &[flags], &["ctrack.cpp"]);
        let output = run(&program, &[]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.lines().all(|line| line.contains("sudo ctrace attach ")), "{text}");
        let groups = |flags: &[&str]| {
            let program = build.program(compiler, &[flags], &["ctrack.cpp"]);
            run(&program, &[]);
            let mut groups: Vec<_> =
                sites(&Elf::open(&program)).into_iter().filter_map(|site| site.group).collect();
            groups.sort();
            groups.dedup();
            groups
        };
        assert_eq!(groups(flags), ["dev", "prod"]);
        assert_eq!(groups(&[flags, &["-DCTRACK_DISABLE_DEV"]].concat()), ["prod"]);
        assert_eq!(groups(&[flags, &["-DCTRACK_DISABLE_PROD"]].concat()), ["dev"]);
        let none: [&str; 0] = [];
        assert_eq!(groups(&[flags, &["-DCTRACK_DISABLE"]].concat()), none);
    }
}

/// Prints what a scope costs, here and now.
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
