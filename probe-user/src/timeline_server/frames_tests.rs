//! Durations of frames and of chosen calls: what the server answers, compared with reports.

use super::points_tests::with_points;
use super::tests::{Served, demo};
use super::*;
use crate::session::keep::replayed::{CENTER, report_of};
use ctrace_core::{
    recording::replay::Query,
    report::{Extras, FramesAsked},
    units::{FuncId, Nanos},
};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

#[test]
fn frames_between_marks_have_a_bar_where_they_begin() {
    let served = Served::new(with_points());
    let mark = served.json("api/about")["frame_marks"][0].clone();
    let ask = |more: &str| served.json(&format!("api/frames?function={mark}&columns=4{more}"));
    let frames = ask("");
    assert_eq!((&frames["frames"], &frames["over_budget"]), (&3.into(), &Value::Null));
    let columns = frames["columns"].as_array().expect("columns");
    // 1,001 ms have four columns; marks are at 250, 500, 750 and 1,000 ms.
    let places: Vec<&Value> = columns.iter().map(|column| &column["place"]).collect();
    assert_eq!(places, [&json!(0), &json!(1), &json!(2)]);
    for (column, begins) in columns.iter().zip([250, 500, 750]) {
        assert_eq!(column["worst"]["start_ns"], begins * MS + 5);
        assert_eq!((&column["median_ns"], &column["count"]), (&(250 * MS).into(), &1.into()));
    }
    assert_eq!(ask(&format!("&budget={}", 250 * MS))["over_budget"], 0);
    assert_eq!(ask(&format!("&budget={}", 250 * MS - 1))["over_budget"], 3);
    for asked in ["function=x&columns=4", "function=0", "function=0&columns=4&budget=x"] {
        assert!(
            served.get(&format!("api/frames?{asked}")).starts_with(b"HTTP/1.1 400 "),
            "{asked}"
        );
    }
}

/// Returns the function with the most calls, by its id, and the number of them.
fn busiest(recording: &Recording) -> (usize, u64) {
    let report = report_of(recording, &Query::default(), CENTER, Extras::default());
    let calls = report.functions.iter().map(|row| row.calls).enumerate();
    calls.max_by_key(|(_, calls)| *calls).expect("a function")
}

#[test]
fn the_worst_frames_are_those_of_the_report() {
    let (recording, served) = (demo(), Served::demo());
    let (id, _) = busiest(&recording);
    let budget = Nanos(2_000);
    let asked = FramesAsked { function: FuncId(id as u32), budget: Some(budget) };
    let extras = Extras { frames: Some(asked), ..Extras::default() };
    let report = report_of(&recording, &Query::default(), CENTER, extras);
    let expected = report.frames.expect("frames");
    let path = format!("api/frames?function={id}&columns=300&budget={budget}", budget = budget.0);
    let frames = served.json(&path);
    assert_eq!(frames["frames"], expected.frames);
    assert_eq!(frames["over_budget"], expected.over_budget.expect("there is a budget"));
    let start = recording.period().0;
    let worst = expected
        .worst
        .iter()
        .map(|frame| (frame.start_ns.since(start).0.into(), Value::from(frame.duration_ns.0)));
    let told = frames["worst"].as_array().expect("frames").iter();
    let told: Vec<(Value, Value)> =
        told.map(|frame| (frame["start_ns"].clone(), frame["duration_ns"].clone())).collect();
    assert_eq!(told, worst.collect::<Vec<_>>());
    let columns = frames["columns"].as_array().expect("columns");
    let count: u64 = columns.iter().filter_map(|column| column["count"].as_u64()).sum();
    assert_eq!(count, expected.frames, "each frame is in a column");
}

#[test]
fn calls_are_chosen_by_their_durations() {
    let served = Served::demo();
    let (id, calls) = busiest(&demo());
    let length = served.json("api/about")["length_ns"].clone();
    let whole = format!("functions={id}&from=0&to={length}");
    let durations = served.json(&format!("api/durations?{whole}"));
    let counted = durations["count"].as_u64().expect("a count");
    assert_eq!(counted + durations["untimed"].as_u64().expect("a count"), calls);
    let bars = durations["bars"].as_array().expect("bars");
    let middle = &bars[bars.len() / 2];
    let (least, most) = (&middle["from_ns"], &middle["to_ns"]);
    let chosen = served.json(&format!("api/find?{whole}&least={least}&most={most}&columns=10"));
    assert_eq!(chosen["count"], middle["count"]);
    let above = served.json(&format!("api/find?{whole}&least={least}&columns=10"));
    let sum: u64 = bars[bars.len() / 2..].iter().filter_map(|bar| bar["count"].as_u64()).sum();
    assert_eq!(above["count"], sum);
    for asked in ["functions=4000000000", "functions=x", &format!("functions={id}&least=-1")] {
        let path = format!("api/durations?{asked}&from=0&to=9");
        assert!(served.get(&path).starts_with(b"HTTP/1.1 400 "), "{asked}");
    }
}
