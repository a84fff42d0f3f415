//! Tests frames between marks where marks may be missing, and where a filter leaves some out.

use crate::support::*;
use ctrace_core::engine::EngineConfig;
use ctrace_core::filter::{Filter, ThreadFilter};
use ctrace_core::formats::{ChosenFrame, Export, Format, Options};
use ctrace_core::function::{ExitSeen, FunctionInfo, FunctionKind};
use ctrace_core::points::PointShape;
use ctrace_core::recording::replay::{Query, frame_times, report_with};
use ctrace_core::recording::{End, Recording, Start, Writer};
use ctrace_core::report::{Extras, FramesAsked, FramesReport};
use ctrace_core::units::{FuncId, Nanos, Tid};

const SECOND: u64 = 1_000_000_000;
const LAST: u64 = 40 * SECOND;

/// Records a mark each second from the first to the 39th, with a chunk for each two seconds. In the even
/// ones, another thread than that of `work` marks. `lost`: an event is lost in second 20.
fn recorded(lost: bool) -> Vec<u8> {
    recorded_with(FunctionInfo { point: Some(PointShape::Frame), ..function("picture") }, lost)
}

fn recorded_with(mark: FunctionInfo, lost: bool) -> Vec<u8> {
    let mark = FunctionInfo { exit: ExitSeen::Never, ..mark };
    let config = EngineConfig { record: true, ..EngineConfig::default() };
    let mut engine = engine(&[function("work"), mark], config);
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    for second in 1..40 {
        let now = second * SECOND;
        // Work takes longer in each tenth second.
        let takes = if second % 10 == 9 { 800_000_000 } else { 100_000_000 + second };
        engine.push(0, &enter(0, 900, now + 1).bytes());
        engine.push(0, &ret(0, 900, now + 1 + takes).bytes());
        engine.push(0, &point(1, 800, now).on(PID + (second % 2 == 0) as u32).bytes());
        if lost && second == 20 {
            engine.set_lost_events(1, 0);
        }
        if second % 2 == 0 {
            engine.advance(Nanos(now + SECOND / 2));
            engine.end_chunk(Nanos(now + SECOND / 2));
        }
    }
    engine.advance(Nanos(LAST));
    engine.end_chunk(Nanos(LAST));
    for block in engine.take_blocks() {
        writer.write(&block).expect("memory takes all");
    }
    writer.finish(&End { end_ns: Nanos(LAST), ..End::default() }).expect("memory takes all")
}

fn frames(bytes: Vec<u8>, query: &Query) -> Option<FramesReport> {
    let recording = Recording::open(bytes).expect("it was just written");
    let asked = FramesAsked { function: FuncId(1), budget: None };
    let extras = Extras { frames: Some(asked), ..Extras::default() };
    report_with(&recording, query, meta_with(extras)).frames
}

fn counts(frames: Option<FramesReport>) -> (u64, u64) {
    let frames = frames.expect("there are some");
    (frames.frames, frames.marks.expect("between marks").unknown)
}

#[test]
fn frames_near_a_loss_are_unknown_and_not_long() {
    assert_eq!(counts(frames(recorded(false), &Query::default())), (38, 0));
    let with_loss = frames(recorded(true), &Query::default()).expect("there are some");
    let max = with_loss.marks.expect("between marks").max_ns;
    assert_eq!(max, Some(Nanos(SECOND)));
    // The chunk from 18.5 to 20.5 s, and a second on either side: from that of 17 to 18 s to the one
    // before 22 s.
    assert_eq!(counts(Some(with_loss)), (33, 5));
}

#[test]
fn frames_over_a_chunk_that_cannot_be_read_are_unknown() {
    let mut bytes = recorded(false);
    let recording = Recording::open(bytes.clone()).expect("it was just written");
    let chunk = recording.chunks().iter().find(|chunk| chunk.from.0 > 10 * SECOND);
    assert_eq!(chunk.map(|chunk| chunk.from.0), Some(10 * SECOND + SECOND / 2));
    let needle = b"CTRB\x04\x00";
    let blocks = bytes.windows(needle.len()).enumerate().filter(|(_, it)| *it == needle);
    let (place, _) = blocks.map(|(at, _)| (at, ())).nth(5).expect("more than five chunks");
    bytes[place + 30] ^= 0x55;
    // Marks at 11 and 12 s are missing.
    let frames = frames(bytes, &Query::default()).expect("there are some");
    assert_eq!(frames.marks.expect("between marks").max_ns, Some(Nanos(SECOND)));
    assert_eq!(counts(Some(frames)), (35, 1));
}

#[test]
fn a_filter_leaves_out_frames_but_no_mark_between_them() {
    let threads = vec![ThreadFilter::Tid(Tid(PID))];
    let filter = Filter { threads, ..Filter::default() };
    let frames = frames(recorded(false), &Query { filter, ..Query::default() });
    let frames = frames.expect("there are some");
    // Those that end in an odd second, from the third on.
    assert_eq!(frames.marks.expect("between marks").max_ns, Some(Nanos(SECOND)));
    assert_eq!(counts(Some(frames)), (19, 0));
}

#[test]
fn the_worst_frames_are_slow_for_the_calls_of_another_thread() {
    let bytes = recorded(false);
    let recording = Recording::open(bytes).expect("it was just written");
    let asked = FramesAsked { function: FuncId(1), budget: Some(Nanos(SECOND - 1)) };
    let extras = Extras { frames: Some(asked), ..Extras::default() };
    let report = report_with(&recording, &Query::default(), meta_with(extras));
    let frames = report.frames.expect("there are some");
    assert_eq!((frames.over_budget, frames.typical_frames), (Some(38), 10));
    let work = frames.parts.iter().find(|part| part.function == 0).expect("work");
    assert_eq!((work.worst_calls, work.typical_calls), (10, 10));
    // All frames are equally long, so the first are the worst; one of them has the longer work.
    let first: u64 = (1..=10).filter(|second| second % 10 != 9).map(|n| 100_000_000 + n).sum();
    assert_eq!(work.worst_self_ns, Nanos(first + 800_000_000));
}

#[test]
fn hits_of_a_usdt_probe_without_ends_are_edges_of_frames() {
    let probe = FunctionInfo { kind: FunctionKind::Usdt, ..function("picture") };
    let of_probe = frames(recorded_with(probe.clone(), true), &Query::default());
    assert_eq!(of_probe, frames(recorded(true), &Query::default()));
    assert_eq!(counts(of_probe), (33, 5));
    let recording = Recording::open(recorded_with(probe, false)).expect("it was just written");
    let asked = FramesAsked { function: FuncId(1), budget: Some(Nanos(SECOND - 1)) };
    let times = frame_times(&recording, &Query::default(), asked, 4).expect("not too many");
    assert_eq!((times.frames, times.over_budget), (38, Some(38)));
}

#[test]
fn an_export_has_one_frame_and_its_calls() {
    let probe = FunctionInfo { kind: FunctionKind::Usdt, ..function("picture") };
    for bytes in [recorded(true), recorded_with(probe, true)] {
        has_one_frame_and_its_calls(bytes);
    }
}

fn has_one_frame_and_its_calls(recorded: Vec<u8>) {
    let recording = Recording::open(recorded).expect("it was just written");
    let export = |number| {
        let frame =
            ChosenFrame { function: FuncId(1), number: std::num::NonZeroUsize::new(number) };
        let options = Options { frame: Some(frame), ..Options::default() };
        let query = Query::default();
        let export = Export { recording: &recording, query: &query, options, progress: &|_| () };
        let mut bytes = Vec::new();
        let written = Format::find("frame").expect("a format").write(&export, &mut bytes);
        written.map(|_| serde_json::from_slice::<serde_json::Value>(&bytes).expect("JSON"))
    };
    let document = export(2).expect("a frame");
    let frame = &document["frame"];
    assert_eq!(
        (&frame["name"], &frame["frames"], &frame["unknown"]),
        (&"picture".into(), &33.into(), &5.into())
    );
    assert_eq!((&frame["start"], &frame["duration"]), (&2000.0.into(), &1000.0.into()));
    let names: Vec<_> = document["events"].as_array().expect("calls").iter().collect();
    let names: Vec<_> = names.iter().map(|event| event["name"].as_str().expect("text")).collect();
    assert_eq!(names, ["work", "picture"]);
    let error = export(34).expect_err("there are 33").to_string();
    assert!(error.contains("33 are known between marks") && error.contains("5 are not"), "{error}");
}
