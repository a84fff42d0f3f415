//! The sections and notes of this very test program, against docs/marker-format.md.
#![allow(unsafe_code, reason = "marker functions are exported, USDT places are assembly")]

mod support;

use ctrace_marker::{ctrace_enter, ctrace_exit, marker_fn, scope, usdt, usdt_enabled};
use object::{Object, ObjectSection};
use std::{hint::black_box, process::Command};
use support::image::{Site, own};

const SITE: [u8; 17] = [
    0x90, // nop
    0x0f, 0x1f, 0x44, 0x00, 0x00, // 5 bytes of it
    0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, // 10 bytes of it
    0xc3,
];

#[inline(never)]
fn scopes() {
    let _a = scope!("with {braces} \"quotes\" \\ and ü", group = "pröd");
    let _b = scope!();
    let _c = scope!(group = "dev");
    black_box(&_a);
}
const SCOPES_LINE: u32 = line!() - 5;

marker_fn! {
    /// Adds.
    pub extern "C" fn ctrace_test_marker_fn(a: u64, b: u32) -> u64 {
        black_box(a) + u64::from(b)
    }
}

#[inline(never)]
fn probes(n: u64) {
    usdt!(ctrace_test, none);
    usdt!(ctrace_test, twelve, n, 2_u8, -3_i32, true, &raw const n, 6, 7, 8, 9, 10, 11, 12_usize);
    if usdt_enabled!(ctrace_test, twelve) {
        unreachable!("nobody is attached");
    }
    ctrace_enter(c"test");
    ctrace_exit(c"test");
}

#[test]
fn entries_are_as_the_format_says() {
    scopes();
    let own = own();
    assert!(own.sites.len() >= 3);
    for site in &own.sites {
        assert_eq!((site.version, site.address % 32), (1, 0), "{site:?}");
        assert_eq!((site.shape, site.level, &site.values), (0, 0, &None), "{site:?}");
        assert!(site.flags <= 1 && site.file.as_deref().unwrap().ends_with(".rs"), "{site:?}");
        assert_eq!(site.semaphore % 2, 0);
        assert_eq!(own.section_of(site.semaphore), ".probes");
        assert_eq!(own.bytes(site.point)[0], 0x90);
        assert_eq!(own.section_of(site.text), ".text");
    }
    let points = own.sites.iter().map(|site| site.point).collect::<std::collections::HashSet<_>>();
    assert_eq!(points.len(), own.sites.len(), "a control point for each entry");
    let flags = |name: &str| {
        let section = own.file().section_by_name(name).unwrap().flags();
        let object::SectionFlags::Elf { sh_flags, .. } = section else { panic!() };
        sh_flags.0
    };
    // Write is 1, allocated is 2.
    assert_eq!((flags("ctrace_sites") & 3, flags(".probes") & 3), (2, 3));
}

#[test]
fn texts_lines_and_flags_come_through() {
    let own = own();
    let here = |at: u32| -> &Site {
        let found = own.sites.iter().find(|site| {
            site.line == SCOPES_LINE + at && site.file.as_deref().unwrap().ends_with("format.rs")
        });
        found.unwrap()
    };
    let [a, b, c] = [here(0), here(1), here(2)];
    assert_eq!(a.name.as_deref(), Some("with {braces} \"quotes\" \\ and ü"));
    assert_eq!((a.group.as_deref(), a.flags), (Some("pröd"), 0));
    assert_eq!((&b.name, &b.group, b.flags), (&None, &None, 1));
    assert_eq!((&c.name, c.group.as_deref(), c.flags), (&None, Some("dev"), 1));
    for site in [a, b, c] {
        assert!(own.symbol_of(site.text).unwrap().contains("scopes"), "{site:?}");
    }
}

#[test]
fn the_runtime_is_described_and_its_sites_can_be_probed() {
    let own = own();
    assert_eq!(own.runtimes, 1);
    assert_eq!(own.runtime.name, concat!("rust ", env!("CARGO_PKG_VERSION")));
    for site in [own.runtime.flush, own.runtime.register] {
        assert_eq!(site % 16, 0);
        assert_eq!(own.bytes(site)[..17], SITE);
    }
    assert_eq!(own.runtime.list % 8, 0);
}

#[test]
fn marker_functions_begin_with_nops() {
    assert_eq!(ctrace_test_marker_fn(2, 3), 5);
    let at = ctrace_test_marker_fn as *const () as u64;
    assert_eq!(at % 16, 0);
    assert_eq!(own().bytes(at)[..16], SITE[..16]);
    assert_eq!(own().symbol_of(at).as_deref(), Some("ctrace_test_marker_fn"));
}

/// Returns a tool's output, or why there is none.
fn tool(name: &str, arguments: &[&str]) -> Option<String> {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(name).args(arguments).arg(program).output();
    let Ok(output) = output else {
        println!("skipped: {name} is not installed");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn readelf_sees_the_notes() {
    probes(black_box(1));
    let Some(notes) = tool("readelf", &["-nW"]) else { return };
    let note = |provider: &str, name: &str| -> Vec<&str> {
        let lines = notes.lines().collect::<Vec<_>>();
        let found = lines.windows(4).find(|window| {
            window[0].ends_with(&format!("Provider: {provider}"))
                && window[1].trim() == format!("Name: {name}")
        });
        let rest = found.unwrap_or_else(|| panic!("{provider}:{name}\n{notes}"))[2..].to_vec();
        assert!(!rest[0].contains("Base: 0x0000000000000000"), "{}", rest[0]);
        rest
    };
    for (name, semaphore) in
        [("flush", false), ("register", false), ("enter", true), ("exit", true)]
    {
        let rest = note("ctrace", name);
        assert_eq!(rest[1].trim(), "Arguments: 8@%rdi");
        assert_eq!(rest[0].contains("Semaphore: 0x0000000000000000"), !semaphore, "{}", rest[0]);
    }
    assert_eq!(note("ctrace_test", "none")[1].trim(), "Arguments:");
    let arguments = note("ctrace_test", "twelve")[1].trim();
    let arguments = arguments.strip_prefix("Arguments: ").unwrap().split(' ').collect::<Vec<_>>();
    assert_eq!(arguments.len(), 12);
    for (index, argument) in arguments.iter().enumerate() {
        assert!(argument.starts_with(&format!("8@{}(%r", index * 8)), "{argument}");
    }
}

#[test]
fn gdb_sees_the_probes_and_reads_their_arguments() {
    let commands: &[&str] = &["-nx", "-batch", "-ex", "info probes stap ctrace"];
    let Some(probes) = tool("gdb", commands) else { return };
    for name in ["enter", "exit", "flush", "register", "none", "twelve"] {
        assert!(
            probes.lines().any(|line| line.split_whitespace().nth(2) == Some(name)),
            "{probes}"
        );
    }
    let program = std::env::current_exe().unwrap();
    let output = Command::new("gdb")
        .args(["-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "set language c"])
        .args(["-ex", "break -probe-stap ctrace_test:twelve", "-ex", "run"])
        .args(["-ex", "print $_probe_arg0", "-ex", "print (int)$_probe_arg2"])
        .args(["-ex", "print *(long*)$_probe_arg4", "-ex", "print $_probe_arg11"])
        .args(["-ex", "kill", "--args"])
        .arg(program)
        .args(["--exact", "a_probe_is_passed", "--ignored", "--test-threads=1"])
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&output.stdout);
    let printed = output.lines().filter(|line| line.starts_with('$')).collect::<Vec<_>>();
    if printed.is_empty() && output.contains("ptrace") {
        println!("skipped: gdb may not trace here");
        return;
    }
    assert_eq!(printed, ["$1 = 41", "$2 = -3", "$3 = 41", "$4 = 12"], "{output}");
}

#[test]
#[ignore = "gdb runs it"]
fn a_probe_is_passed() {
    let n = black_box(41_u64);
    usdt!(ctrace_test, twelve, n, 2_u8, -3_i32, true, &raw const n, 6, 7, 8, 9, 10, 11, 12_usize);
}
