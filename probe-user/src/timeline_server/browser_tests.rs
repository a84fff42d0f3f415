//! The page in Chromium: what it shows and does. A script at the end of the page's own presses keys, clicks and
//! looks, and leaves what it saw in the document. Without Chromium these tests are skipped.

use super::points_tests::{MARKUP, many_plots, with_points, with_points_from};
use super::tests::{HOSTILE, Served, demo, hostile};
use super::*;
use serde_json::Value;
use std::{fs, process::Command};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/timeline_server");
const CALLS: &str = "browser_tests.js";
const POINTS: &str = "browser_points.js";
const MANY_PLOTS: &str = "browser_many_plots.js";
const FRAMES: &str = "browser_frames.js";
const HISTOGRAM: &str = "browser_histogram.js";
const VERDICTS: &str = "browser_verdicts.js";
const ALIGNED: &str = "browser_aligned.js";

/// Opens the page of a recording with the script, and returns what that saw. `None` without Chromium.
fn seen(recording: Recording, find: &str) -> Option<(Served, Value)> {
    seen_by(CALLS, recording, find)
}

fn seen_by(script: &str, recording: Recording, find: &str) -> Option<(Served, Value)> {
    seen_in("main.js", script, find, |page| Served::with_page(recording, Some(page)))
}

/// Opens a page that has the script at the end of one of its own.
pub(super) fn seen_in(
    own: &str,
    script: &str,
    find: &str,
    serve: impl FnOnce(PathBuf) -> Served,
) -> Option<(Served, Value)> {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page");
    fs::create_dir(&page).expect("a folder");
    for name in page::names() {
        let read = |name: &str| fs::read_to_string(format!("{SOURCES}/{name}")).expect("a file");
        let mut text = read(&format!("page/{name}"));
        if name == own {
            text += &read("browser_helpers.js");
            text += &read(script);
        }
        fs::write(page.join(name), text).expect("room");
    }
    let served = serve(page);
    let mut command = Command::new("chromium");
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
    command.args(["--disable-quic", "--no-first-run", "--disable-background-networking"]);
    command.args(["--disable-component-update", "--disable-sync", "--disable-extensions"]);
    command.args(["--window-size=1200,800", "--virtual-time-budget=1000000", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
    let output = match command.arg(format!("{}?{find}", served.url())).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: cannot run chromium: {error}");
            return None;
        }
    };
    let document = String::from_utf8_lossy(&output.stdout);
    let told = document.split("data-seen=\"").nth(1).and_then(|rest| rest.split('"').next());
    let told = told.unwrap_or_else(|| {
        panic!("the script has not ended: {document}\n{}", String::from_utf8_lossy(&output.stderr))
    });
    let told = told.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">");
    let seen: Value = serde_json::from_str(&told.replace("&amp;", "&")).expect("JSON");
    assert_eq!(seen["error"], Value::Null, "{seen:#}");
    Some((served, seen))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn a_browser_shows_calls_and_does_what_keys_say() {
    let Some((served, seen)) = seen(demo(), "main") else { return };
    let about = served.json("api/about");
    let length = about["length_ns"].as_u64().expect("a length");
    assert_eq!(seen["title"], format!("{} · ctrace", text(&about["program"])));
    // The outermost call covers most of its row, and rows have names.
    assert!(seen["covered"].as_f64() > Some(0.5), "{seen:#}");
    assert!(seen["names"].as_u64() >= Some(1), "{seen:#}");
    assert!(text(&seen["tip"]).starts_with("main\n"), "{seen:#}");
    assert_eq!(seen["missing"], "calls from here are not kept any more");
    assert_eq!(seen["nothing"], true, "nothing is said where nothing is missing");
    for said in ["ended unseen", "still running", "events were lost here"] {
        assert!(text(&seen["legend"]).contains(said), "{said}: {seen:#}");
    }
    assert_ne!(seen["whole"], seen["zoomed"], "W zooms in");
    assert_eq!(seen["whole"], seen["again"], "0 shows the whole again");
    let hits = served.json(&format!("api/find?text=main&from=0&to={length}&columns=10"));
    assert_eq!((&seen["found"], &hits["count"]), (&"1 call of main".into(), &1.into()));
    assert_eq!(seen["call"], "main");
    assert!(text(&seen["facts"]).contains("own time"), "{seen:#}");
    let (from, to) = (&hits["longest"][0]["start_ns"], &hits["longest"][0]["duration_ns"]);
    let (from, to) = (from.as_u64().expect("a time"), to.as_u64().expect("a time"));
    let range = served.json(&format!("api/report?from={from}&to={}", from + to));
    let rows = range["rows"].as_array().expect("rows");
    let name =
        |row: &Value| format!("{} {}", text(&row["name"]), text(&row["marks"])).trim().to_owned();
    assert_eq!(seen["functions"], Value::from(rows.iter().map(name).collect::<Vec<_>>()));
    for said in range["remarks"].as_array().expect("sentences") {
        assert!(text(&seen["report"]).contains(text(said)), "{said}");
    }
    assert!(text(&seen["hash"]).contains("range="), "{seen:#}");
    assert_eq!(seen["closed"], true, "Esc closes the panel");
}

#[test]
fn a_browser_shows_names_as_text() {
    let Some((_served, seen)) = seen(hostile(), "/img/") else { return };
    assert_eq!(seen["title"], "unknown program · ctrace", "no code of a name has run");
    assert_eq!(seen["markup"], 0, "{seen:#}");
    assert_eq!(
        (&seen["call"], &seen["functions"][0]),
        (&Value::from(HOSTILE), &Value::from(HOSTILE))
    );
    assert!(text(&seen["tip"]).starts_with(HOSTILE), "{seen:#}");
}

#[test]
fn a_browser_shows_messages_plots_and_frame_marks() {
    let Some((_served, seen)) = seen_by(POINTS, with_points(), "") else { return };
    // The text is what was written: its markup is none.
    let told = text(&seen["message"]);
    assert!(
        told.starts_with("2 messages\n500") && told.contains(&MARKUP[..MARKUP.len() - 4]),
        "{told}"
    );
    assert!(told.ends_with("[warn] late"), "{told}");
    assert_eq!(seen["listed"], "2 messages");
    // A level has its colour, and a message without one has none.
    let levels = serde_json::json!([["[warn]", "rgb(232, 89, 12)"]]);
    assert_eq!((&seen["tipLevels"], &seen["listedLevels"]), (&levels, &levels), "{seen:#}");
    assert_eq!(seen["rows"], 2);
    assert_eq!((&seen["title"], &seen["markup"]), (&"unknown program · ctrace".into(), &0.into()));
    let plot = text(&seen["plot"]);
    assert!(plot.starts_with("queue\n") && plot.contains(" jobs\n"), "{plot}");
    assert_eq!(seen["mark"], "frame picture");
    // The plot falls from the left to the right, and the frame marks are lines from top to bottom.
    let heights = seen["heights"].as_array().expect("two places");
    assert!(heights[0].as_u64() < heights[1].as_u64(), "{seen:#}");
    assert_eq!(seen["lines"], 4, "{seen:#}");
}

#[test]
fn a_browser_says_which_plots_and_values_are_not_shown() {
    let Some((_served, seen)) = seen_by(MANY_PLOTS, many_plots(), "") else { return };
    assert_eq!(seen["last"], "plot 63\n94.5\n1 value", "{seen:#}");
    for status in [&seen["status"], &seen["again"]] {
        for said in
            ["6 more plots are not shown", "3 values were lost near here", "2 plotted numbers are"]
        {
            assert!(text(status).contains(said), "{said}: {seen:#}");
        }
    }
}

#[test]
fn a_browser_shows_frames_and_goes_to_the_worst() {
    let Some((served, seen)) = seen_by(FRAMES, with_points(), "") else { return };
    let about = served.json("api/about");
    let mark = &about["frame_marks"][0];
    let frames = served.json(&format!("api/frames?function={mark}&columns=100&budget=249999999"));
    assert_eq!((&frames["frames"], &frames["over_budget"]), (&3.into(), &3.into()));
    assert_eq!(seen["listed"], 3, "{seen:#}");
    assert!(text(&seen["facts"]).contains("frames3"), "{seen:#}");
    assert!(text(&seen["told"]).contains("longest 250 ms"), "{seen:#}");
    // Bars are where frames begin: a quarter of the recording has none.
    assert_eq!(seen["bars"], serde_json::json!([false, true, true, true]), "{seen:#}");
    let from = text(&seen["hash"]).split(['=', '&']).nth(1).and_then(|from| from.parse().ok());
    assert!(from.is_some_and(|from: u64| (450_000_000..500_000_001).contains(&from)), "{seen:#}");
    assert!(text(&seen["over"]).contains("over the budget3 of 3"), "{seen:#}");
    assert_eq!(seen["closed"], true, "{seen:#}");
}

#[test]
fn a_browser_lights_calls_of_the_chosen_durations() {
    let Some((served, seen)) = seen_by(HISTOGRAM, demo(), "handle_request") else { return };
    let length = served.json("api/about")["length_ns"].clone();
    let id = seen["function"].as_u64().expect("a function");
    let path = format!("api/durations?functions={id}&from=0&to={length}");
    let bars = served.json(&path);
    assert_eq!(seen["bars"], bars["bars"].as_array().expect("bars").len(), "{seen:#}");
    assert!(bars["count"].as_u64() > Some(1), "{bars}");
    // The bars of the right half are dragged over.
    let bars = bars["bars"].as_array().expect("bars");
    let first = seen["first"].as_u64().expect("a bar") as usize;
    let sum = |bars: &[Value]| bars.iter().filter_map(|bar| bar["count"].as_u64()).sum::<u64>();
    assert_eq!(seen["count"], sum(&bars[first..]), "{seen:#}");
    assert!(seen["lit"].as_u64() >= Some(1), "{seen:#}");
    assert!(seen["dim"].as_u64() >= Some(1), "{seen:#}");
    assert_eq!(seen["after"], 0, "Esc ends it: {seen:#}");
}

/// Opens the page that compares two recordings.
fn compared(script: &str, old: Recording, new: Recording) -> Option<(Served, Value)> {
    seen_in("compare.js", script, "", |page| Served::compared(old, new, Some(page)))
}

#[test]
fn a_browser_shows_verdicts_and_the_longest_calls_of_both_sides() {
    let Some((served, seen)) = compared(VERDICTS, demo(), demo()) else { return };
    let verdicts = served.json("api/verdicts");
    let rows = verdicts["rows"].as_array().expect("rows").iter();
    let row = |row: &Value| Value::from(vec![row["name"].clone(), row["verdict"].clone()]);
    assert_eq!(seen["rows"], Value::from(rows.map(row).collect::<Vec<_>>()), "{seen:#}");
    let both = serde_json::json!(["632 calls of handle_request", "632 calls of handle_request"]);
    assert_eq!(seen["titles"], both, "{seen:#}");
    // What one shows, the other does, too.
    let shown = seen["shown"].as_array().expect("two places");
    assert_eq!(shown[0], shown[1], "{seen:#}");
    assert_ne!(shown[0], seen["whole"], "{seen:#}");
    assert_eq!(seen["frames"], 2, "{seen:#}");
}

#[test]
fn a_browser_aligns_recordings_by_a_frame() {
    let late = with_points_from(130_000_000);
    let Some((_served, seen)) = compared(ALIGNED, with_points(), late) else { return };
    let apart = |name: &str| {
        let of = |side: usize| seen[name][side].as_i64().expect("a time");
        of(1) - of(0)
    };
    assert_eq!(apart("starts"), 0, "{seen:#}");
    // The second mark is at 500 ms of the old one, and at 630 ms of the new one.
    assert!((apart("aligned") - 130_000_000).abs() <= 1, "{seen:#}");
    assert!((apart("moved") - 130_000_000).abs() <= 1, "{seen:#}");
    assert_ne!(seen["aligned"], seen["moved"], "{seen:#}");
    assert_eq!(seen["status"], "the new one is moved by -130 ms", "{seen:#}");
    assert_eq!(seen["few"], "aligned as before: there are only 4 such calls", "{seen:#}");
    assert_eq!(apart("again"), 0, "{seen:#}");
}
