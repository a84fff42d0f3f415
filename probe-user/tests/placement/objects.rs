//! Whole system libraries and programs: every site on an instruction, most exits seen.

use crate::objdump::Listing;
use crate::survey::{Tally, check_boundaries, decide, missed_returns};
use ctrace_user::target::place::{Policy, Returns};
use ctrace_user::target::plan::{CostClass, ExitKind, ExitPlacement, Placement};
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
    println!("  missed: {}", missed_returns(&data, &functions, &listing).join(" "));
    let auto = decide(&data, &Policy::default());
    let shy: Vec<_> = auto
        .iter()
        .filter(
            |function| matches!(&function.decision, Ok(p) if p.exit != ExitPlacement::ReturnProbe),
        )
        .map(|function| function.name.as_str())
        .collect();
    println!("  no return probe: {}", shy.join(" "));
    let count = |wanted: fn(&Placement) -> bool| {
        functions.iter().filter_map(|f| f.decision.as_ref().ok()).filter(|p| wanted(p)).count()
    };
    let indirect = |p: &Placement| matches!(&p.exit, ExitPlacement::Sites(s) if s.iter().any(|s| matches!(s.kind, ExitKind::IndirectJump(_))));
    println!(
        "  loop heads {}, indirect {}, skipped {}, single-stepped entries {}",
        count(|p| p.entry_is_loop_head),
        count(indirect),
        count(|p| p.entry.skipped > 0),
        count(|p| p.entry.cost == CostClass::SingleStep)
    );
    for f in functions.iter().filter(|f| matches!(&f.decision, Ok(p) if p.entry_is_loop_head)) {
        print!(" LH:{}", f.name);
    }
    for f in functions.iter().filter(|f| matches!(&f.decision, Ok(p) if indirect(p))).take(200) {
        print!(" IJ:{}", f.name);
    }
    println!();
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
    survey("/usr/bin/redis-server", 97.0);
}
