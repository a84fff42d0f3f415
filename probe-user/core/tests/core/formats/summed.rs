//! Formats with sums by thread and call path, read back.

use crate::formats::fixture::{self, deep, export, hostile, text, typical};
use crate::formats::protobuf::{Field, bytes, fields, number, texts};
use crate::support::{enter, ret};
use ctrace_core::recording::replay::{Query, report};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;

fn speedscope(recording: &fixture::Bytes) -> Value {
    serde_json::from_str(&text("speedscope", recording)).expect("JSON")
}

#[test]
fn speedscope_has_a_profile_for_each_thread() {
    let file = speedscope(&typical());
    assert_eq!(file["name"], "app: 6 calls, 2 calls ended unseen, 1 call still running");
    let frames = &file["shared"]["frames"];
    assert_eq!(frames[0], json!({ "name": "outer", "file": "app.c", "line": 7 }));
    assert_eq!(frames[2], json!({ "name": "prod/mark" }));
    let main = &file["profiles"][0];
    assert_eq!((&main["name"], &main["endValue"]), (&json!("main (100)"), &json!(9_000)));
    assert_eq!(main["samples"], json!([[0], [0, 1], [0, 2]]));
    assert_eq!(main["weights"], json!([5_500, 3_500, 0]));
    assert_eq!(file["profiles"][1]["name"], "(7)");
    assert!(file["profiles"].get(2).is_none());
}

#[test]
fn speedscope_samples_are_of_frames_that_exist() {
    for recording in [typical(), hostile(), deep()] {
        let file = speedscope(&recording);
        let frames = file["shared"]["frames"].as_array().expect("frames").len() as u64;
        for profile in file["profiles"].as_array().expect("profiles") {
            let list = |key: &str| profile[key].as_array().expect("a list").clone();
            assert_eq!(list("samples").len(), list("weights").len());
            let weights: u64 = list("weights").iter().filter_map(Value::as_u64).sum();
            assert_eq!(profile["endValue"], weights);
            for frame in list("samples").iter().flat_map(|s| s.as_array().expect("a stack")) {
                assert!(frame.as_u64().expect("an index") < frames);
            }
        }
    }
}

/// Returns each sample as `frames;… calls untimed time thread`.
fn pprof_samples(file: &[u8]) -> Vec<String> {
    let mut profile = Vec::new();
    GzDecoder::new(file).read_to_end(&mut profile).expect("gzip");
    let profile = fields(&profile);
    let strings = texts(&profile, 6);
    assert_eq!(strings[0], "");
    let messages = |field| {
        profile.iter().filter_map(move |(n, value)| match value {
            Field::Bytes(value) if *n == field => Some(fields(value)),
            _ => None,
        })
    };
    let functions: BTreeMap<u64, &str> = messages(5)
        .map(|f| {
            (number(&f, 1).expect("an id"), &*strings[number(&f, 2).expect("a name") as usize])
        })
        .collect();
    let locations: BTreeMap<u64, &str> = messages(4)
        .map(|location| {
            let line = fields(bytes(&location, 4).expect("a line"));
            (
                number(&location, 1).expect("an id"),
                functions[&number(&line, 1).expect("a function")],
            )
        })
        .collect();
    let samples = messages(2).map(|sample| {
        let packed = |field| {
            let mut packed = bytes(&sample, field).expect("numbers");
            let mut numbers = Vec::new();
            while !packed.is_empty() {
                numbers.push(crate::formats::protobuf::varint(&mut packed));
            }
            numbers
        };
        let frames: Vec<_> = packed(1).iter().rev().map(|id| locations[id]).collect();
        let label = fields(bytes(&sample, 3).expect("a label"));
        let thread = number(&label, 2).map_or("", |name| &strings[name as usize]);
        format!("{} {:?} {thread}", frames.join(";"), packed(2))
    });
    samples.collect()
}

#[test]
fn pprof_has_a_sample_for_each_thread_and_path() {
    let samples = pprof_samples(&export("pprof", &typical()).0);
    insta::assert_snapshot!(samples.join("\n"), @r###"
outer [1, 0, 5500] main
outer;inner [2, 0, 3500] main
outer;prod/mark [1, 1, 0] main
outer [1, 1, 1000] 
outer;prod/mark [1, 1, 0]
"###);
    assert_eq!(pprof_samples(&export("pprof", &hostile()).0).len(), 5);
    assert!(pprof_samples(&export("pprof", &deep()).0).iter().any(|s| s.starts_with("[path not")));
}

#[test]
fn pprof_has_one_line_of_comments() {
    let mut profile = Vec::new();
    GzDecoder::new(&*export("pprof", &typical()).0).read_to_end(&mut profile).expect("gzip");
    let profile = fields(&profile);
    let comments = profile.iter().filter(|(field, _)| *field == 13).collect::<Vec<_>>();
    let [(_, Field::Number(comment))] = &comments[..] else { panic!("{comments:?}") };
    assert_eq!(
        texts(&profile, 6)[*comment as usize],
        "6 calls, 2 calls ended unseen, 1 call still running"
    );
}

#[test]
fn firefox_threads_are_in_the_order_of_their_ids() {
    let mut events = vec![enter(0, 900, 1_000), ret(0, 900, 90_000)];
    for (tid, start) in [(2_010, 2_000), (2_002, 40_000), (2_001, 60_000)] {
        events.extend([enter(0, 900, start).on(tid), ret(0, 900, start + 5_000).on(tid)]);
    }
    events.sort_by_key(|event| event.ts);
    let recording = fixture::open(fixture::bytes_of(&fixture::functions(), &[events]));
    let profile: Value = serde_json::from_str(&text("firefox", &recording)).expect("JSON");
    let threads = profile["threads"].as_array().expect("threads").iter();
    let ids: Vec<_> = threads.map(|thread| thread["tid"].as_str().expect("an id")).collect();
    assert_eq!(ids, ["100", "2001", "2002", "2010"]);
}

#[test]
fn firefox_samples_show_where_each_thread_was() {
    let profile: Value = serde_json::from_str(&text("firefox", &typical())).expect("JSON");
    assert_eq!(
        profile["meta"]["product"],
        "app: 6 calls, 2 calls ended unseen, 1 call still running"
    );
    let threads = profile["threads"].as_array().expect("threads");
    assert_eq!(threads.len(), 2);
    // The process's first thread is shown under the name of the process.
    assert_eq!((&threads[0]["name"], &threads[0]["tid"]), (&json!("app"), &json!("100")));
    // Samples once a microsecond from 500 ns on: outer, and inner at 2.5, 4.5, 5.5 and 6.5.
    let stacks = threads[0]["samples"]["stack"].as_array().expect("stacks");
    let depth = |stack: &Value| match stack.as_u64() {
        None => 0,
        Some(mut at) => {
            let prefix = &threads[0]["stackTable"]["prefix"];
            let mut depth = 1;
            while let Some(next) = prefix[at as usize].as_u64() {
                (at, depth) = (next, depth + 1);
            }
            depth
        }
    };
    let depths: Vec<_> = stacks.iter().map(depth).collect();
    assert_eq!(depths, [1, 1, 1, 2, 2, 2, 1, 1, 1, 0]);
}

/// Many threads are sampled less often, so that a profile has a bounded number of samples.
#[test]
fn firefox_profiles_of_many_threads_are_bounded() {
    for (threads, looks) in [(2, 100_000), (400, 10_000)] {
        let span = 10_000_000_000;
        // Only the first thread has calls all the time.
        let mut events = vec![enter(0, 900, 1_000)];
        events
            .extend((1..threads).map(|tid| enter(1, 900, 1_000 + u64::from(tid)).on(tid + 1_000)));
        events.extend((1..threads).map(|tid| ret(1, 900, 3_000 + u64::from(tid)).on(tid + 1_000)));
        events.push(ret(0, 900, span));
        let recording = fixture::open(fixture::bytes_of(&fixture::functions(), &[events]));
        let profile: Value = serde_json::from_str(&text("firefox", &recording)).expect("JSON");
        let interval = profile["meta"]["interval"].as_f64().expect("milliseconds");
        let expected = span as f64 / 1e6 / f64::from(looks);
        assert!((interval / expected - 1.0).abs() < 0.01, "{interval} of {expected}");
    }
}

/// This holds without open calls, which a report leaves out of its sums.
#[test]
fn own_times_are_those_of_a_report() {
    for recording in [fixture::many_calls(), fixture::ended()] {
        let report = report(&recording, &Query::default(), 1.0);
        let mut of_report: Vec<u64> =
            report.paths.iter().map(|path| path.self_ns.0).filter(|own| *own > 0).collect();
        let folded = text("folded", &recording);
        let own = |line: &str| line.rsplit(' ').next().expect("a count").parse().expect("digits");
        let mut of_export: Vec<u64> = folded.lines().map(own).collect();
        of_report.sort_unstable();
        of_export.sort_unstable();
        assert_eq!(of_export, of_report);
    }
}
