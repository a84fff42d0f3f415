//! Probes and markers use different clocks, but their calls form one tree.

use ctrace_tests::env::Link;
use ctrace_tests::targets::program;
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip};

const CALLS: u64 = 200_000;

/// At each end, a few hundred nanoseconds lie between the times of probe and scope. If the clocks
/// differed by more, the scope would begin before its function or end after it.
#[test]
fn a_scope_lies_within_its_probed_function() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("clocks.c")).expect("builds");
    let traced = Trace::run(&env)
        .expect("starts")
        .args(["-f", "outside", "-m", "inside"])
        .program(&path, [&*CALLS.to_string()])
        .finish()
        .and_then(|traced| traced.expect_code(0))
        .expect("runs");
    let report = traced.report().expect("reports");
    report.check_lossless().expect("nothing is lost");
    let of = |name: &str, key: &str| {
        report.expect(name).and_then(|function| function.integer(key)).expect(key)
    };
    for name in ["outside", "inside"] {
        let counts = ["calls", "timed", "headless"].map(|key| of(name, key));
        assert_eq!(counts, [CALLS, CALLS, 0], "{name}");
    }
    let paths = report.0["paths"].as_array().expect("paths");
    assert_eq!(paths.len(), 2, "{paths:?}");
    let inside = paths.iter().find(|path| path["path"].as_array().is_some_and(|p| p.len() == 2));
    assert_eq!(inside.expect("a path of two")["calls"], CALLS, "{paths:?}");
    assert!(of("inside", "min_ns") < of("outside", "min_ns"));
    assert!(of("inside", "total_ns") < of("outside", "total_ns"));
}
