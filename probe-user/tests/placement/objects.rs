//! Whole system libraries and programs: every site on an instruction, most exits seen.

use crate::objdump::Listing;
use crate::survey::{Tally, check_boundaries, decide, missed_returns, redis_server};
use ctrace_user::testing::target::{
    Candidate, CodeMap, CostClass, ExitPlacement, Placement, Policy, Returns, place,
};
use std::path::Path;

fn survey(path: &str, at_least: f64) {
    let path = Path::new(path);
    let Ok(data) = std::fs::read(path) else {
        println!("skipped: {} is not here", path.display());
        return;
    };
    let started = std::time::Instant::now();
    let policy = Policy { returns: Returns::RetSites, ..Policy::default() };
    let functions = decide(&data, &policy);
    println!("placed in {:?}", started.elapsed());
    let tally = Tally::of(&functions);
    tally.print(path);
    let listing = Listing::of(path);
    check_boundaries(&data, &functions, &listing);
    let missed = missed_returns(&data, &functions, &listing);
    assert!(missed.is_empty(), "missed {missed:?}");
    let count = |wanted: fn(&Placement) -> bool| {
        functions.iter().filter_map(|f| f.decision.as_ref().ok()).filter(|p| wanted(p)).count()
    };
    println!(
        "  loop heads {}, moved entries {}, single-stepped entries {}",
        count(|placement| placement.entry_is_loop_head),
        count(|placement| placement.entry.skipped > 0),
        count(|placement| placement.entry.cost == CostClass::SingleStep)
    );
    assert!(tally.percent_seen() >= at_least, "{} %", tally.percent_seen());
}

#[test]
fn c_library() {
    survey("/usr/lib/x86_64-linux-gnu/libc.so.6", 97.0);
}

#[test]
fn cpp_library() {
    survey("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 97.0);
}

#[test]
fn dynamic_linker() {
    survey("/lib64/ld-linux-x86-64.so.2", 90.0);
}

#[test]
fn crypto_library() {
    survey("/usr/lib/x86_64-linux-gnu/libcrypto.so.3", 90.0);
}

#[test]
fn redis() {
    survey(&redis_server().to_string_lossy(), 97.0);
}

/// Readers of their return address are known by what they do, not by their names alone.
#[test]
fn return_address_readers() {
    let Ok(data) = std::fs::read("/usr/lib/x86_64-linux-gnu/libc.so.6") else { return };
    let source = crate::source(&data);
    let map = CodeMap::parse(&source).expect("the object parses");
    for function in decide(&data, &Policy::default()) {
        let reader = ["dlsym", "dlopen", "dlvsym", "dlmopen", "dl_iterate_phdr"];
        if reader.contains(&function.name.as_str()) {
            let unnamed = Candidate { address: function.address, size: function.size, name: "f" };
            let decision = place(unnamed, &map, &Policy::default());
            let exit = decision.expect("it can be traced").exit;
            assert_ne!(exit, ExitPlacement::ReturnProbe, "{}", function.name);
        }
    }
    assert!(!map.has_unwinder());
}

/// Any objects, named in `CTRACE_SURVEY`, separated by colons.
#[test]
#[ignore = "for people: surveys the objects named in CTRACE_SURVEY"]
fn named_objects() {
    for path in std::env::var("CTRACE_SURVEY").unwrap_or_default().split(':') {
        survey(path, 90.0);
    }
}
