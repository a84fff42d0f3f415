//! Formats with sums by call path.

use crate::formats::fixture::{self, deep, empty, export_with, hostile, text, typical};
use crate::support::{enter, ret};
use ctrace_core::formats::{Export, ExportError, Format, Options};
use ctrace_core::recording::replay::Query;

#[test]
fn folded_stacks_have_their_own_time() {
    insta::assert_snapshot!(text("folded", &typical()), @r###"
outer 6500
outer;inner 3500
"###);
}

#[test]
fn folded_names_cannot_be_taken_for_frames_or_counts() {
    insta::assert_snapshot!(text("folded", &hostile()), @r###"
a:b "c",d_12 6500
a:b "c",d_12;</text><script>alert(1)</script>&amp:\u{0} 3500
"###);
}

#[test]
fn frames_of_any_name_have_their_own_calls() {
    let mut infos = fixture::functions();
    for (info, name) in infos.iter_mut().zip(["# a", " a", "a b"]) {
        info.name = name.into();
    }
    let events = vec![
        enter(0, 900, 1_000),
        enter(1, 800, 2_000),
        ret(1, 800, 4_000),
        enter(1, 800, 5_000),
        ret(1, 800, 6_000),
        ret(0, 900, 9_000),
        enter(1, 900, 10_000),
        ret(1, 900, 12_000),
    ];
    let svg = text("flamegraph", &fixture::open(fixture::bytes_of(&infos, &[events])));
    for title in ["#_a (8.00 µs, 80.00%, 1 call)", "a (3.00 µs, 30.00%, 2 calls)"] {
        assert!(svg.contains(&format!("<title>{title}<")), "{title} {svg}");
    }
    assert!(svg.contains("<title>a (2.00 µs, 20.00%, 1 call)<"), "{svg}");
}

/// Checks that the sum over all stacks is the time in which any function was running.
fn check_sum(folded: &str, sum: u64) {
    let counts = folded.lines().map(|line| line.rsplit(' ').next().expect("a count"));
    assert_eq!(counts.map(|count| count.parse::<u64>().expect("a number")).sum::<u64>(), sum);
}

#[test]
fn own_times_add_up_to_the_time_of_the_outermost_calls() {
    check_sum(&text("folded", &typical()), 9_000 + 1_000);
    check_sum(&text("folded", &deep()), 4_000);
    assert_eq!(text("folded", &empty()), "");
}

#[test]
fn calls_beyond_the_bounds_on_paths_are_told_apart() {
    let folded = text("folded", &deep());
    let unknown: Vec<_> = folded.lines().filter(|line| line.contains("[path not")).collect();
    let [unknown] = unknown[..] else { panic!("{unknown:?}") };
    // The innermost 88 of 600 frames have two nanoseconds each, except the last one.
    let innermost = 5_000 - 599 - (1_000 + 599);
    assert_eq!(unknown, format!("[path not recorded];outer {}", 2 * 87 + innermost));
}

#[test]
fn the_graph_is_xml_and_has_each_function() {
    let svg = text("flamegraph", &typical());
    assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"));
    for part in [
        "<title>all (10.00 µs, 100%)<",
        "<title>outer (10.00 µs, 100.00%, 2 calls)<",
        "<title>inner (3.50 µs, 35.00%, 2 calls)<",
        "6 calls, 2 calls ended unseen, 1 call still running",
    ] {
        assert!(svg.contains(part), "{part} {svg}");
    }
    let svg = text("flamegraph", &hostile());
    assert!(!svg.contains("<script>alert"), "a name became a script");
}

#[test]
fn reversed_the_graph_stands_on_its_innermost_frames() {
    let recording = typical();
    let options = Options { reversed: true, ..Options::default() };
    let svg = String::from_utf8(export_with("flamegraph", &recording, options).0).expect("UTF-8");
    // Its width is that of all its calls, at the bottom of its stacks.
    assert!(svg.contains("inner (3.50 µs, 35.00%, 2 calls)"), "{svg}");
    assert!(svg.contains("outer (6.50 µs, 65.00%, 2 calls)"), "what outer did itself");
}

#[test]
fn beside_an_older_recording_the_graph_shows_the_change() {
    let older = fixture::open(fixture::bytes_of(
        &fixture::functions(),
        &[vec![enter(0, 900, 1_000), enter(1, 800, 2_000), ret(1, 800, 9_000), ret(0, 900, 9_500)]],
    ));
    let (recording, query) = (typical(), &Query::default());
    let options = Options { older: Some((&older, query)), ..Options::default() };
    let svg = String::from_utf8(export_with("flamegraph", &recording, options).0).expect("UTF-8");
    // It took 7 µs before, of 8.5.
    assert!(svg.contains("inner (3.50 µs, 35.00%; -35.00%, 2 calls)"), "{svg}");
}

#[test]
fn where_nothing_took_time_there_is_no_graph() {
    let recording = empty();
    let (query, options) = (&Query::default(), Options::default());
    let export = Export { recording: &recording, query, options, progress: &|_| {} };
    let format = Format::find("flamegraph").expect("a format");
    assert!(matches!(format.write(&export, &mut Vec::new()), Err(ExportError::NothingToDraw)));
}
