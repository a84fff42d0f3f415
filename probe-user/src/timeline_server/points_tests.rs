//! Messages, plots and frame marks on the page: what the server counts, and what a browser shows.

use super::tests::Served;
use super::*;
use crate::ui::lines_tests::{OTHER, Probes, blocks, engine};
use ctrace_common::{Kind, TEXTS};
use ctrace_core::{
    function::{ExitSeen, FunctionInfo, ValueInfo, ValueKind},
    points::{Level, PointShape},
    recording::{End, Start, Writer},
    units::{Nanos, Pid, Tid},
};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;
const SAY: u32 = OTHER;
const WARN: u32 = OTHER + 1;
const QUEUE: u32 = OTHER + 2;
const PICTURE: u32 = OTHER + 3;
pub(super) const MARKUP: &str = "<img src=x onerror=\"document.title='taken'\">\u{1b}[2J";

pub(super) fn with_points() -> Recording {
    with_points_from(0)
}

/// A recording of one second, behind the first `begin` nanoseconds, with two threads. One says something each 100 ms, the other two things at once;
/// a plot falls each 10 ms, and a frame ends each 250 ms.
pub(super) fn with_points_from(begin: u64) -> Recording {
    let mut engine = engine();
    let point = |name: &str, point, values| FunctionInfo {
        point: Some(point),
        exit: ExitSeen::Never,
        values,
        ..FunctionInfo::new(name, "program")
    };
    let text = || vec![ValueInfo::new("message", ValueKind::Text)];
    let queue =
        ValueInfo { unit: Some("jobs".into()), ..ValueInfo::new("value", ValueKind::Signed) };
    engine.add_function(point("say {}", PointShape::Message { level: None }, text()));
    let warn = PointShape::Message { level: Some(Level::Warn) };
    engine.add_function(point("warn {}", warn, text()));
    engine.add_function(point("queue", PointShape::Plot, vec![queue]));
    engine.add_function(point("picture", PointShape::Frame, Vec::new()));
    engine.name_thread(Pid(7), Tid(7), "main");
    engine.name_thread(Pid(7), Tid(9), "other");
    let mut all = Vec::new();
    for at in 1..=100_u64 {
        let time = begin + 10 * at * MS;
        let mut say = |tid: u32, time: u64, of: u32, text: &str| {
            let mut probes = Probes(&mut engine, tid);
            probes.event(time, of, Kind::Point);
            probes.values((time, of), &[text.len() as u64], Some(text.as_bytes()), 1 << TEXTS);
        };
        if at % 10 == 0 {
            say(7, time + 1, SAY, &format!("step {at}"));
        }
        if at == 50 {
            say(9, time + 2, SAY, MARKUP);
            say(9, time + 3, WARN, "late");
        }
        let mut probes = Probes(&mut engine, 7);
        probes.event(time + 4, QUEUE, Kind::Point);
        probes.values((time + 4, QUEUE), &[(40 - at as i64) as u64], None, 0);
        if at % 25 == 0 {
            Probes(&mut engine, 7).event(time + 5, PICTURE, Kind::Point);
        }
        if at % 20 == 0 {
            all.extend(blocks(&mut engine, &[time + MS]));
        }
    }
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    all.iter().for_each(|block| writer.write(block).expect("memory takes all"));
    let end = End { end_ns: Nanos(begin + 1_001 * MS), ..End::default() };
    Recording::open(writer.finish(&end).expect("memory takes all")).expect("a recording")
}

/// Returns the id of the thread with this system id.
fn thread(about: &Value, tid: u64) -> u64 {
    let threads = about["threads"].as_array().expect("threads");
    let thread = threads.iter().find(|thread| thread["tid"] == tid).expect("it has calls");
    thread["id"].as_u64().expect("a number")
}

#[test]
fn each_pixel_has_its_messages_numbers_and_marks() {
    let served = Served::new(with_points());
    let about = served.json("api/about");
    assert_eq!(about["has_points"], true);
    let (main, other) = (thread(&about, 7), thread(&about, 9));
    let points = |from: u64, to: u64, threads: &str| {
        served.json(&format!("api/points?from={from}&to={to}&columns=2&threads={threads}"))
    };
    let all = points(0, 1_002 * MS, &format!("{main},{other}"));
    // The fiftieth step is in the first half, at 500 ms.
    let [of_main, of_other] = [(main, json!([[0, 5, 0], [1, 5, 0]])), (other, json!([[0, 2, 4]]))]
        .map(|(thread, columns)| json!({ "thread": thread, "columns": columns }));
    assert_eq!(all["messages"], json!([of_main, of_other]));
    let plot = &all["plots"][0];
    assert_eq!((&plot["function"], &plot["unit"]), (&QUEUE.into(), &"jobs".into()));
    let columns = json!([[0, 50, -10.0, 39.0, -10.0], [1, 50, -60.0, -11.0, -60.0]]);
    assert_eq!(plot["columns"], columns);
    assert_eq!(all["marks"], json!([{ "function": PICTURE, "columns": [[0, 2], [1, 2]] }]));
    assert_eq!(all["left_out"], 0);
    // The latter half alone, of one thread.
    let half = points(501 * MS, 1_002 * MS, &other.to_string());
    assert_eq!(
        (&half["messages"], &half["marks"][0]["columns"]),
        (&json!([]), &json!([[0, 1], [1, 1]]))
    );
    let without = Served::demo();
    assert_eq!(without.json("api/about")["has_points"], false);
    let none = without.json("api/points?from=0&to=1000&columns=2&threads=1");
    let lost = json!({ "values": 0, "chunks": 0, "not_finite": 0 });
    let expected = json!({ "messages": [], "plots": [], "marks": [], "left_out": 0, "lost": lost });
    assert_eq!(none, expected);
}

/// Returns the file of a recording of 100 ms with 70 plots of a number each. Three values were lost, and two more
/// numbers are infinite or none.
fn of_many_plots() -> Vec<u8> {
    let mut engine = engine();
    let value = || vec![ValueInfo::new("value", ValueKind::Float)];
    for plot in 0..70 {
        engine.add_function(FunctionInfo {
            point: Some(PointShape::Plot),
            exit: ExitSeen::Never,
            values: value(),
            ..FunctionInfo::new(format!("plot {plot}"), "program")
        });
    }
    engine.name_thread(Pid(7), Tid(7), "main");
    let mut plot = |time: u64, plot: u32, number: f64| {
        let function = OTHER + plot;
        let mut probes = Probes(&mut engine, 7);
        probes.event(time, function, Kind::Point);
        probes.values((time, function), &[number.to_bits()], None, 0);
    };
    (0..70).for_each(|n| plot(MS * (1 + u64::from(n)), n, 1.5 * f64::from(n)));
    plot(80 * MS, 3, f64::NAN);
    plot(81 * MS, 4, f64::INFINITY);
    engine.set_lost_payloads(3);
    let blocks = blocks(&mut engine, &[90 * MS]);
    let mut writer = Writer::uncompressed(Vec::new(), &Start::default()).expect("in memory");
    blocks.iter().for_each(|block| writer.write(block).expect("in memory"));
    let end = End { end_ns: Nanos(100 * MS), ..End::default() };
    writer.finish(&end).expect("in memory")
}

pub(super) fn many_plots() -> Recording {
    Recording::open(of_many_plots()).expect("a recording")
}

#[test]
fn an_answer_says_what_is_lost() {
    let points = |recording| {
        let served = Served::new(recording);
        served.json(&format!("api/points?from=0&to={}&columns=10&threads=", 100 * MS))
    };
    let all = points(many_plots());
    assert_eq!(all["lost"], json!({ "values": 3, "chunks": 0, "not_finite": 2 }));
    let counts = all["plots"].as_array().expect("plots").iter();
    let counts: Vec<u64> = counts.filter_map(|plot| plot["columns"][0][1].as_u64()).collect();
    assert_eq!(counts, [1; 70], "those that are not finite are in no column");
    // The block of values ends in the number of the last plot.
    let mut damaged = of_many_plots();
    let number = (1.5_f64 * 69.0).to_le_bytes();
    let at = damaged.windows(8).rposition(|bytes| bytes == number);
    damaged[at.expect("it is not compressed")] ^= 1;
    let damaged = points(Recording::open(damaged).expect("the index is whole"));
    assert_eq!(damaged["plots"], json!([]));
    assert_eq!(damaged["lost"], json!({ "values": 0, "chunks": 1, "not_finite": 0 }));
}

#[test]
fn texts_are_those_of_the_place_that_is_asked_for() {
    let served = Served::new(with_points());
    let about = served.json("api/about");
    let messages = |tid, from: u64, to: u64| {
        let thread = thread(&about, tid);
        served.json(&format!("api/messages?thread={thread}&from={from}&to={to}"))
    };
    let at = messages(9, 500 * MS, 501 * MS);
    let of = |time: u64, function: u32, level: Value, text: &str| json!({ "time_ns": time, "function": function, "level": level, "text": text });
    let escaped = MARKUP.replace('\u{1b}', "\\u{1b}");
    let first = of(500 * MS + 2, SAY, Value::Null, &escaped);
    let expected = json!([first, of(500 * MS + 3, WARN, "warn".into(), "late")]);
    let lost = json!({ "values": 0, "chunks": 0, "not_finite": 0 });
    assert_eq!(at, json!({ "first": expected, "count": 2, "is_partial": false, "lost": lost }));
    assert_eq!(messages(7, 0, 1_002 * MS)["count"], 10);
    assert_eq!(messages(7, 0, 1_002 * MS)["first"][9]["text"], "step 100");
    assert_eq!(messages(9, 0, 500 * MS)["count"], 0);
    for asked in ["thread=x&from=0&to=1", "thread=1&from=1&to=1"] {
        assert!(served.get(&format!("api/messages?{asked}")).starts_with(b"HTTP/1.1 400 "));
    }
    let asked = "api/points?from=0&to=9&columns=2&threads=1,x";
    assert!(served.get(asked).starts_with(b"HTTP/1.1 400 "));
}
