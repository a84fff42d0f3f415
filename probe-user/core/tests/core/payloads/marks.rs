//! Values that come with entries of markers: messages, plots and scopes.

use super::*;
use crate::formats::traces::perfetto_calls;
use ctrace_core::function::FunctionKind;
use ctrace_core::marker::{
    BUFFER_LEN, BufferId, Carried, ClockSample, MarkerObject, MarkerPlace, Reading, Ticks,
};
use ctrace_core::points::{Level, PointShape};
use ctrace_core::units::{FuncId, Tid};

pub(super) const SECTION: u64 = 0x5555_5555_4000;
const STACK: u64 = 0x7ffd_0000_8000;
/// The functions, by the entries of the section.
const MESSAGE: u64 = 0;
const QUEUE: u64 = 1;
const LOAD: u64 = 2;
const SCOPE: u64 = 3;
const FRAME: u64 = 4;

/// Slots of a buffer, as a runtime writes them.
pub(super) struct Slots(pub(super) Vec<[u64; 2]>);

impl Slots {
    pub(super) fn value(mut self, value: u64) -> Self {
        self.0.push([7 | value << 48, value >> 16 << 16 | 4 << 2]);
        self
    }

    pub(super) fn text(mut self, text: &[u8]) -> Self {
        let pieces = if text.is_empty() { vec![text] } else { text.chunks(7).collect() };
        for (nth, piece) in pieces.into_iter().enumerate() {
            let head = if nth == 0 { 1 << 2 } else { 2 << 2 } | (piece.len() as u64) << 5;
            let bytes = piece.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.0.push([7, head | bytes << 8]);
        }
        self
    }

    fn event(mut self, of: u64, depth: u64, time: u64, exit: bool) -> Self {
        let (sp, site) = (STACK - 64 * depth, SECTION + 32 * of);
        self.0.push([time | sp >> 4 << 48, site | u64::from(exit) | sp >> 20 << 47]);
        self
    }

    pub(super) fn enter(self, of: u64, depth: u64, time: u64) -> Self {
        self.event(of, depth, time, false)
    }
}

pub(super) fn scope(name: &str, values: Vec<ValueInfo>) -> FunctionInfo {
    let (kind, exit) = (FunctionKind::Marker, ExitSeen::ByExitSites);
    FunctionInfo { kind, exit, values, ..function(name) }
}

/// Makes a trace of a message, two plots, a scope with values, and a frame mark.
fn traced(min_duration: u64) -> Trace {
    let filter = Filter { min_duration: Nanos(min_duration), ..Filter::default() };
    let mut trace = Trace::new(filter);
    let value = |name: &str, kind| ValueInfo::new(name, kind);
    let text = vec![value("message", ValueKind::LongText)];
    let jobs = ValueInfo { unit: Some("jobs".into()), ..value("value", ValueKind::Unsigned) };
    let load = vec![value("value", ValueKind::Float)];
    let of_scope = vec![value("bytes", ValueKind::Signed), value("is_new", ValueKind::Bool)];
    let message = PointShape::Message { level: Some(Level::Warn) };
    let point = |point, info| FunctionInfo { point: Some(point), exit: ExitSeen::Never, ..info };
    let cache = FunctionInfo { group: Some("cache".into()), ..scope("miss", text) };
    let infos = [
        point(message, cache),
        point(PointShape::Plot, scope("queue", vec![jobs])),
        point(PointShape::Plot, scope("load", load)),
        scope("parse", of_scope),
        point(PointShape::Frame, scope("picture", Vec::new())),
    ];
    let place = |(info, carried): (FunctionInfo, (u8, bool))| {
        let is_point = info.point.is_some();
        let carried = Carried { numbers: carried.0, has_text: carried.1 };
        let function = trace.engine.add_function(info);
        Some(MarkerPlace { is_point, carried, ..MarkerPlace::new(function, 0) })
    };
    let carried = [(0, true), (1, false), (1, false), (2, false), (0, false)];
    let functions = infos.into_iter().zip(carried).map(place).collect();
    let object = trace.engine.markers().add_object(MarkerObject { section: SECTION, functions });
    trace.engine.markers().map_object(Pid(PID), object, 0, Nanos(0));
    trace
}

/// Records what is in these slots.
pub(super) fn recorded(mut trace: Trace, slots: Slots) -> Recording {
    let mut bytes = Box::new([0; BUFFER_LEN]);
    bytes[..8].copy_from_slice(b"ctraceb\x01");
    bytes[40] = 2;
    bytes[56..64].copy_from_slice(&STACK.to_le_bytes());
    for (slot, words) in bytes[64..].as_chunks_mut::<16>().0.iter_mut().zip(&slots.0) {
        slot[..8].copy_from_slice(&words[0].to_le_bytes());
        slot[8..].copy_from_slice(&words[1].to_le_bytes());
    }
    let buffer = BufferId { pid: Pid(PID), address: 0x7000_0000_0000 };
    let (tid, time) = (Tid(PID), Nanos(0));
    trace.engine.markers().read(Reading { buffer, tid, bytes, time, passed: None, before: None });
    let sample = ClockSample { ticks: Ticks(1), time: Nanos(100_000) };
    trace.engine.sample_clocks(sample, Nanos(100_000));
    open(trace.end(100_000))
}

fn parse_with_points() -> Slots {
    Slots(Vec::new())
        .value(-5_i64 as u64)
        .value(1)
        .enter(SCOPE, 1, 100)
        .text(b"\x1b[2J<b>miss</b> \"41\"")
        .enter(MESSAGE, 1, 110)
        .value(3)
        .enter(QUEUE, 2, 120)
        .value(0.25_f64.to_bits())
        .enter(LOAD, 1, 130)
        .value(u64::MAX)
        .enter(QUEUE, 1, 140)
        .event(SCOPE, 1, 200, true)
}

#[test]
fn entries_bring_their_values_into_a_recording() {
    let recording = recorded(traced(0), parse_with_points());
    let report = report(&recording, &Query::default());
    let expected = [
        (100, "bytes=-5 is_new=true"),
        (110, "message=\"\\u{1b}[2J<b>miss</b> \\\"41\\\"\""),
        (120, "value=3"),
    ];
    let expected = expected.map(|(time, values)| (time, values.to_owned()));
    assert_eq!(points(&report), expected);
    assert_eq!(report.points.more, 2);
    let call = &report.slowest_calls.as_deref().expect("asked for")[0];
    assert_eq!((call.start_ns, call.duration_ns), (Nanos(100), Nanos(100)));
    let inside: Vec<_> = call.points.first.iter().map(|point| point.start_ns.0).collect();
    assert_eq!(inside, [110, 120, 130, 140]);
    // Points have no end that could be missing.
    assert_eq!((report.loss.calls_untimed, report.loss.payloads), (0, 0));
    let json = serde_json::to_value(&report).expect("a report is JSON");
    let of = |name: &str| {
        let rows = json["functions"].as_array().expect("rows");
        rows.iter().find(|row| row["name"] == name).expect("it is there")["point"].clone()
    };
    assert_eq!(of("miss"), serde_json::json!({"shape": "message", "level": "warn"}));
    assert_eq!(of("queue"), serde_json::json!({"shape": "plot"}));
    assert_eq!(of("parse"), serde_json::Value::Null);
}

#[test]
fn exports_have_them_without_harm() {
    let recording = recorded(traced(0), parse_with_points());
    let text = |format: &str| String::from_utf8(export(&recording, format)).expect("text");
    let rows = text("csv");
    assert!(
        !rows.contains('\x1b') && rows.contains("parse,1,parse,bytes=-5 is_new=true"),
        "{rows}"
    );
    let objects = text("jsonl");
    assert!(!objects.contains('\x1b'), "{objects}");
    let objects = objects
        .lines()
        .map(|line| -> serde_json::Value { serde_json::from_str(line).expect("an object") });
    let mut messages = objects.filter(|object| object["function"] == "cache/miss");
    let message = messages.next().expect("one");
    assert_eq!(message["values"]["message"], "\x1b[2J<b>miss</b> \"41\"");
    assert_eq!((&message["start_ns"], messages.next()), (&110.into(), None));
    let mut shown = perfetto_calls(&export(&recording, "perfetto"));
    shown.pop();
    let expected = [
        "2: instant \\u{1b}[2J<b>miss</b> \"41\" 110 level=warn marker=cache/miss",
        "2: queue = 3 jobs 120",
        "2: load = 0.25  130",
        "2: queue = 1.8446744073709552e19 jobs 140",
        "2: parse 100 200 bytes is_new",
    ];
    assert_eq!(shown, expected);
}

/// As where the relation of the clocks is not known to the nanosecond.
#[test]
fn points_of_one_time_keep_their_values_and_their_order() {
    let slots = Slots(Vec::new()).value(3).enter(QUEUE, 1, 120).value(4).enter(QUEUE, 1, 120);
    let slots = slots.value(0).enter(LOAD, 1, 120).value(5).enter(QUEUE, 1, 300);
    let told = report(&recorded(traced(0), slots), &Query::default());
    let points = points(&told);
    let told_values = points.iter().map(|(time, values)| (*time, &**values)).collect::<Vec<_>>();
    assert_eq!(told_values, [(120, "value=3"), (121, "value=4"), (122, "value=0.0")]);
    assert_eq!((told.points.more, told.loss.payloads), (1, 0));
}

#[test]
fn a_frame_mark_is_an_instant_and_is_counted() {
    let slots = Slots(Vec::new()).enter(FRAME, 1, 110).enter(FRAME, 1, 150);
    let recording = recorded(traced(0), slots);
    let mut shown = perfetto_calls(&export(&recording, "perfetto"));
    shown.pop();
    assert_eq!(shown, ["2: instant picture 110", "2: instant picture 150"]);
    let told = report(&recording, &Query::default());
    let row = told.functions.iter().find(|row| row.calls > 0).expect("it was called");
    assert_eq!((&*row.name, row.calls), ("picture", 2));
    assert_eq!((told.loss.calls_untimed, told.loss.calls_open), (0, 0));
}

#[test]
fn values_that_are_torn_are_lost_and_never_wrong() {
    let all = parse_with_points().0;
    let pieces: Vec<usize> = (0..all.len()).filter(|at| all[*at][1] >> 2 & 7 != 0).collect();
    assert_eq!(pieces.len(), 8);
    for piece in pieces {
        let mut slots = all.clone();
        slots[piece] = [0; 2];
        let recording = recorded(traced(0), Slots(slots));
        let told = report(&recording, &Query::default());
        assert_eq!(told.loss.payloads, 1, "{piece}");
        assert_eq!(told.points.first.len() as u64 + told.points.more, 4, "{piece}");
        let calls: u64 = told.functions.iter().map(|row| row.calls).sum();
        assert_eq!(calls, 5, "{piece}");
        for (time, values) in points(&told) {
            let known =
                points(&report(&recorded(traced(0), parse_with_points()), &Query::default()));
            let later = (130..=140).contains(&time);
            assert!(later || known.contains(&(time, values.clone())), "{piece}: {time} {values}");
        }
    }
}

#[test]
fn a_message_of_1008_bytes_comes_whole_and_one_of_64_is_not_cut() {
    for length in [64, 1008] {
        let text = "m".repeat(length);
        let slots = Slots(Vec::new()).text(text.as_bytes()).enter(MESSAGE, 1, 110);
        let recording = recorded(traced(0), slots);
        let [payload] = &all(&recording)[..] else { panic!("one message") };
        let value = payload.values[0].as_ref().expect("it was read");
        assert_eq!(value.to_string(), format!("\"{text}\""));
    }
}

#[test]
fn values_of_a_scope_that_is_too_short_are_not_there() {
    let slots = parse_with_points().value(9).value(0).enter(SCOPE, 1, 300);
    let recording = recorded(traced(101), slots.event(SCOPE, 1, 402, true));
    let told = report(&recording, &Query::default());
    let scopes = all(&recording).iter().filter(|it| it.function == FuncId(6)).count();
    assert_eq!((scopes, told.loss.payloads), (1, 0));
}

#[test]
fn a_report_of_plots_has_their_numbers() {
    let more = parse_with_points().value(2_f64.to_bits()).enter(LOAD, 1, 50_000);
    let more = more.value(f64::NAN.to_bits()).enter(LOAD, 1, 60_000);
    let recording = recorded(traced(0), more);
    let extras = Extras { plots: true, slices: 2, ..Extras::default() };
    let report = report_with(&recording, &Query::default(), meta_with(extras));
    let [queue, load] = &report.plots[..] else { panic!("{:?}", report.plots) };
    assert_eq!((&*queue.name, queue.unit.as_deref(), queue.count), ("queue", Some("jobs"), 2));
    assert_eq!((queue.min, queue.max), (Some(3.0), Some(u64::MAX as f64)));
    assert_eq!((&*load.name, load.count, load.unit.as_deref()), ("load", 3, None));
    let numbers = [load.min, load.mean, load.max, load.last];
    assert_eq!(numbers, [0.25, 1.125, 2.0, 2.0].map(Some));
    assert_eq!(load.over_time, [Some(1.125), None]);
    let without = report_with(&recording, &Query::default(), meta_with(Extras::default()));
    assert!(without.plots.is_empty(), "only on demand");
}

#[test]
fn numbers_whose_sum_is_none_have_no_mean() {
    let slots = Slots(Vec::new()).value(f64::MAX.to_bits()).enter(LOAD, 1, 110);
    let slots = slots.value((f64::MAX / 2.0).to_bits()).enter(LOAD, 1, 120);
    let recording = recorded(traced(0), slots.value(2_f64.to_bits()).enter(LOAD, 1, 70_000));
    let extras = Extras { plots: true, slices: 2, ..Extras::default() };
    let report = report_with(&recording, &Query::default(), meta_with(extras));
    let [load] = &report.plots[..] else { panic!("{:?}", report.plots) };
    let numbers = (load.count, load.min, load.mean, load.max);
    assert_eq!(numbers, (3, Some(2.0), None, Some(f64::MAX)));
    assert_eq!(load.over_time, [None, Some(2.0)]);
}

#[test]
fn a_message_whose_text_is_lost_says_so_in_an_export() {
    let mut slots = parse_with_points();
    let text = slots.0.iter().position(|slot| slot[1] >> 2 & 7 == 1).expect("a text");
    slots.0[text] = [0; 2];
    let mut shown = perfetto_calls(&export(&recorded(traced(0), slots), "perfetto"));
    shown.retain(|line| line.contains("instant"));
    let expected = "2: instant cache/miss 110 level=warn text=<lost>";
    assert_eq!(shown.first().map(String::as_str), Some(expected), "{shown:?}");
}
