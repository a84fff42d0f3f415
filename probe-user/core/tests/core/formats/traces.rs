//! Formats with the time of every call.

use crate::formats::fixture::{deep, export, hostile, tail_called, text, thrown, typical};
use crate::formats::protobuf::{Field, bytes, fields, number};
use crate::payloads::typed;
use ctrace_core::recording::Recording;
use flate2::read::ZlibDecoder;
use serde_json::Value;
use std::collections::HashMap;
use std::io::Read;

#[test]
fn chrome_has_a_complete_event_for_each_call() {
    let json = text("chrome", &typical());
    let (events, other) = json.split_once("\n],").expect("more than events");
    insta::assert_snapshot!(events, @r###"
{"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":100,"tid":100,"name":"process_name","args":{"name":"app"}},
{"ph":"M","pid":100,"tid":100,"name":"thread_name","args":{"name":"main"}},
{"ph":"X","pid":100,"tid":100,"ts":2.2,"dur":0,"name":"prod/mark","args":{"untimed":true}},
{"ph":"X","pid":100,"tid":100,"ts":1.500,"dur":0.500,"name":"inner"},
{"ph":"X","pid":100,"tid":100,"ts":3.500,"dur":3.000,"name":"inner"},
{"ph":"X","pid":100,"tid":100,"ts":0.500,"dur":9.000,"name":"outer"},
{"ph":"X","pid":100,"tid":7,"ts":10.5,"dur":1.000000000000007,"name":"outer","args":{"open":true}},
{"ph":"X","pid":100,"tid":7,"ts":11.5,"dur":0,"name":"prod/mark","args":{"untimed":true}}
"###);
    let other: Value = serde_json::from_str(&format!("{{{other}")).expect("JSON");
    let other = &other["otherData"];
    assert_eq!((&other["ctrace"]["calls"], &other["start_ns"]), (&6.into(), &500.into()));
    assert_eq!(other["host"]["name"], "host");
}

/// Beginning, duration and name, in microseconds.
type Slice = (f64, f64, String);

/// Returns the events of each process and thread.
fn chrome_calls(json: &str) -> HashMap<(u64, u64), Vec<Slice>> {
    let trace: Value = serde_json::from_str(json).expect("JSON");
    let mut threads: HashMap<_, Vec<_>> = HashMap::new();
    for event in trace["traceEvents"].as_array().expect("events") {
        if event["ph"] == "X" {
            let id = |key: &str| event[key].as_u64().expect("an id");
            let micros = |key: &str| event[key].as_f64().expect("a number");
            let name = event["name"].as_str().expect("a name").to_owned();
            let calls = threads.entry((id("pid"), id("tid"))).or_default();
            calls.push((micros("ts"), micros("dur"), name));
        }
    }
    threads
}

/// Checks that calls nest where viewers see their ends.
fn check_nesting<T: PartialOrd + Copy + std::fmt::Debug>(
    calls: &[Slice],
    ends: impl Fn(f64, f64) -> (T, T),
) {
    let mut inside: Vec<(T, T)> = Vec::new();
    for (start, duration, name) in calls {
        let (start, end) = ends(*start, *duration);
        inside.retain(|outer| outer.1 > start || (outer.1 == start && start == end));
        let outer = inside.last();
        assert!(outer.is_none_or(|outer| end <= outer.1), "{name} {start:?} {end:?} in {outer:?}");
        inside.push((start, end));
    }
}

#[test]
fn chrome_events_of_a_thread_nest() {
    for recording in [typical(), hostile(), deep(), thrown(), tail_called()] {
        for mut calls in chrome_calls(&text("chrome", &recording)).into_values() {
            calls.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
            check_nesting(&calls, |start, duration| (start, start + duration));
            let whole = |micros: f64| (micros * 1_000.0) as u64;
            check_nesting(&calls, |start, duration| (whole(start), whole(start) + whole(duration)));
        }
    }
}

#[test]
fn chrome_events_have_the_durations_of_the_recording() {
    let calls = chrome_calls(&text("chrome", &thrown())).into_values().next().expect("a thread");
    // In the first turn: 101 + 13 + 57 + 31 + 7 ns from 1,000 on, but 500 before tracing began.
    let of_first = calls.iter().filter(|(start, ..)| *start < 1.0);
    let mut of_first: Vec<String> =
        of_first.map(|(start, dur, name)| format!("{start:.3} {dur:.3} {name}")).collect();
    of_first.sort();
    let expected =
        ["0.601 0.509 outer", "0.614 0.095 inner", "0.671 0.038 inner", "0.702 0.007 inner"];
    assert_eq!(of_first, expected);
}

/// Returns the slices that Perfetto would show: for each sequence, `name start end` in order of the
/// ends, with the names of annotations at the end; instants and counters likewise.
pub(crate) fn perfetto_calls(trace: &[u8]) -> Vec<String> {
    let mut packets = Vec::new();
    for (_, packet) in fields(trace) {
        let Field::Bytes(packet) = packet else { panic!("a packet is a message") };
        let compressed = bytes(&fields(packet), 50).expect("compressed packets");
        ZlibDecoder::new(compressed).read_to_end(&mut packets).expect("zlib");
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut tracks = HashMap::new();
    let (mut names, mut clocks, mut stacks, mut calls) =
        (HashMap::new(), HashMap::new(), HashMap::<u64, Vec<(String, u64)>>::new(), Vec::new());
    for (_, packet) in fields(&packets) {
        let Field::Bytes(packet) = packet else { panic!("a packet is a message") };
        let packet = fields(packet);
        let sequence = number(&packet, 10).expect("each packet has a sequence");
        if let Some(clock) = bytes(&packet, 6).filter(|_| bytes(&packet, 59).is_some()) {
            let clock = fields(bytes(&fields(clock), 1).expect("a clock"));
            assert_eq!((number(&clock, 1), number(&clock, 3)), (Some(64), Some(1)));
            clocks.insert(sequence, number(&clock, 2).expect("a time"));
        }
        if let Some(interned) = bytes(&packet, 12) {
            let interned = fields(interned);
            let entry = fields(bytes(&interned, 2).expect("an event's name"));
            let mut name = String::from_utf8_lossy(bytes(&entry, 2).expect("a name")).into_owned();
            if let Some(source) = bytes(&interned, 4).map(fields) {
                assert_eq!(number(&source, 1), number(&entry, 1), "the id of its name");
                let file = String::from_utf8_lossy(bytes(&source, 2).expect("a file"));
                name += &format!(" ({file}:{})", number(&source, 4).expect("a line"));
            }
            names.insert((sequence, number(&entry, 1).expect("an id")), name);
        }
        if let Some(track) = bytes(&packet, 60).map(fields)
            && let Some(counter) = bytes(&track, 8)
        {
            let name = text(bytes(&track, 2).expect("a name"));
            let unit = bytes(&fields(counter), 6).map(text).unwrap_or_default();
            tracks.insert(number(&track, 1), (name, unit));
        }
        let Some(event) = bytes(&packet, 11) else { continue };
        let event = fields(event);
        let remarks: Vec<_> = event.iter().filter(|(field, _)| *field == 4).collect();
        let remark = remarks.iter().map(|(_, remark)| match remark {
            Field::Bytes(remark) => {
                let remark = fields(remark);
                let key = String::from_utf8_lossy(bytes(&remark, 10).expect("a key")).into_owned();
                let text = bytes(&remark, 6).map(|v| String::from_utf8_lossy(v).into_owned());
                let double = remark.iter().find_map(|(field, value)| match value {
                    Field::Double(value) if *field == 5 => Some(format!("{value:?}")),
                    _ => None,
                });
                let value = text.or(double);
                value.map_or(format!(" {key}"), |value| format!(" {key}={value}"))
            }
            Field::Number(_) | Field::Double(_) => panic!("an annotation is a message"),
        });
        let remark: String = remark.collect();
        let stack = stacks.entry(sequence).or_default();
        match number(&event, 9) {
            Some(3) if number(&packet, 58).is_some() => {
                calls.push(format!("{sequence}: instant{remark}"));
            }
            kind => {
                let clock = clocks.get_mut(&sequence).expect("a clock");
                *clock += number(&packet, 8).expect("a time");
                if kind == Some(3) {
                    let name = text(bytes(&event, 23).expect("a name"));
                    calls.push(format!("{sequence}: instant {name} {clock}{remark}"));
                } else if kind == Some(4) {
                    let (name, unit) = &tracks[&number(&event, 11)];
                    let value = event.iter().find_map(|(field, value)| match (field, value) {
                        (30, Field::Number(value)) => Some((*value as i64).to_string()),
                        (44, Field::Double(value)) => Some(format!("{value:?}")),
                        _ => None,
                    });
                    let value = value.expect("a number");
                    calls.push(format!("{sequence}: {name} = {value} {unit} {clock}"));
                } else if kind == Some(1) {
                    let source = number(&event, 34);
                    assert!(source.is_none_or(|source| Some(source) == number(&event, 10)));
                    let name = &names[&(sequence, number(&event, 10).expect("a name"))];
                    stack.push((name.clone(), *clock));
                } else {
                    let (name, start) = stack.pop().expect("an end of something");
                    calls.push(format!("{sequence}: {name} {start} {clock}{remark}"));
                }
            }
        }
    }
    assert!(stacks.values().all(Vec::is_empty), "slices without an end");
    calls
}

#[test]
fn perfetto_has_each_call_on_its_thread() {
    insta::assert_snapshot!(perfetto_calls(&export("perfetto", &typical()).0).join("\n"), @r###"
2: inner 2000 2500
2: prod/mark 2700 2700 untimed
2: inner 4000 7000
2: outer (app.c:7) 1000 10000
3: prod/mark 12000 12000 untimed
3: outer (app.c:7) 11000 12000 open
1: instant calls=6 calls_without_path=0 filtered_calls=0 has_no_end=false lost_calls_headless=0 lost_calls_open=1 lost_calls_untimed=2 lost_decode_errors=0 lost_events=0 lost_late=0 unreadable_bytes=0 unreadable_calls=0
"###);
}

#[test]
fn perfetto_has_the_values_of_calls() {
    let calls = perfetto_calls(
        &export("perfetto", &Recording::open(typed::recording()).expect("it can be read")).0,
    );
    let values: Vec<_> = calls.iter().filter_map(|call| call.split_once(" ratio=")).collect();
    let values: Vec<_> = values.into_iter().map(|(_, values)| values).collect();
    assert_eq!(
        values,
        ["0.25 key=GET \"/a\"", "NaN key=\\u{1b}[2J\\xff", "<unreadable> key=<unreadable>"]
    );
}

#[test]
fn perfetto_slices_are_balanced_in_deep_recursion() {
    let calls = perfetto_calls(&export("perfetto", &deep()).0);
    assert_eq!(calls.len(), 600 + 1);
    let timed = calls.iter().filter(|call| call.ends_with(|c: char| c.is_ascii_digit())).count();
    assert!(timed >= 600, "{timed}");
    assert_eq!(perfetto_calls(&export("perfetto", &hostile()).0).len(), 6 + 1);
}
