//! Traces everything over the corpus: nothing changes in any target.

use ctrace_tests::corpus::{check_all, members, unusual_members};
use ctrace_tests::env::Link;
use ctrace_tests::{gate, or_skip};

fn check(optimisation: &str, protection: &str) {
    let env = or_skip!(gate::live(Link::Session));
    let members = members(optimisation, protection);
    if let Err(error) = check_all(&env, &members, &[]) {
        panic!("{error:#}");
    }
}

#[test]
fn o1_with_cet() {
    check("-O1", "-fcf-protection=full");
}

#[test]
fn o1_without_cet() {
    check("-O1", "-fcf-protection=none");
}

#[test]
fn o2_with_cet() {
    check("-O2", "-fcf-protection=full");
}

#[test]
fn o2_without_cet() {
    check("-O2", "-fcf-protection=none");
}

#[test]
fn os_with_cet() {
    check("-Os", "-fcf-protection=full");
}

#[test]
fn os_without_cet() {
    check("-Os", "-fcf-protection=none");
}

#[test]
fn static_and_rust_programs() {
    let env = or_skip!(gate::live(Link::Session));
    if let Err(error) = check_all(&env, &unusual_members(), &[]) {
        panic!("{error:#}");
    }
}

/// The user demands `ret` probes everywhere.
#[test]
fn by_ret_sites() {
    let env = or_skip!(gate::live(Link::Session));
    for protection in ["-fcf-protection=full", "-fcf-protection=none"] {
        let members = members("-O2", protection);
        if let Err(error) = check_all(&env, &members, &["--returns", "ret-sites"]) {
            panic!("{error:#}");
        }
    }
}

#[test]
fn with_multi_links() {
    let env = or_skip!(gate::live(Link::Multi));
    if let Err(error) = check_all(&env, &members("-O2", "-fcf-protection=full"), &[]) {
        panic!("{error:#}");
    }
}

/// Only a few: each perf link takes long to close.
#[test]
fn with_perf_links() {
    let env = or_skip!(gate::live(Link::Perf));
    let members = members("-Os", "-fcf-protection=none");
    let few: Vec<_> = members
        .into_iter()
        .filter(|member| ["counts.c", "switch.c", "cold.cpp"].contains(&&*member.build.source))
        .collect();
    if let Err(error) = check_all(&env, &few, &[]) {
        panic!("{error:#}");
    }
}
