//! Tests what markers say of frames that begin and end, and of colours, with a program that knows both.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Finished, run};
use ctrace_tests::recorded::Recorded;
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const MILLI: u64 = 1_000_000;

fn recorded(env: &Env) -> Recorded {
    let target = env.targets.get(&program("marks_frames.cpp")).expect("builds");
    let mut recorded = Recorded::new(env, []).expect("a folder");
    let finished = recorded.program(&target, &[]).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    recorded
}

fn ctrace(env: &Env, recorded: &Recorded, arguments: &[&str]) -> Finished {
    let mut command = Command::new(&env.ctrace);
    let (first, rest) = arguments.split_first().expect("a command");
    run(command.arg(first).arg(&recorded.file).args(rest), LIMIT).expect("runs")
}

#[test]
fn frames_that_begin_and_end_are_without_the_time_between_them() {
    let env = or_skip!(gate::live(Link::Session));
    let recorded = recorded(&env);
    let durations = |name: &str| {
        let report = recorded.report(&["--frame", name]).expect("a report");
        let frames = report.0["frames"].clone();
        let worst = frames["worst"].as_array().expect("frames").iter();
        let worst = worst.map(|frame| frame["duration_ns"].as_u64().expect("a number"));
        (frames["frames"].as_u64().expect("a number"), worst.collect::<Vec<u64>>())
    };
    let (steps, worst) = durations("physics");
    assert_eq!(steps, 40);
    // Every tenth one took 30 ms.
    assert!(worst[..4].iter().all(|duration| *duration >= 30 * MILLI), "{worst:?}");
    // Pictures have the steps in them, the time behind these, and the drawing.
    let (pictures, of_pictures) = durations("picture");
    assert_eq!(pictures, 39, "the first mark only begins one");
    assert!(of_pictures[..4].iter().all(|duration| *duration >= 35 * MILLI), "{of_pictures:?}");

    let judge = |limit| {
        let options = ["report", "--frame", "physics", "--fail-frames-over", limit];
        ctrace(&env, &recorded, &options)
    };
    let failed = judge("25ms:9%");
    assert_eq!(failed.shell_code(), 1, "{}", failed.stderr);
    assert!(failed.stderr.contains("FAILED: "), "{}", failed.stderr);
    assert_eq!(judge("100s").shell_code(), 0);
    // Who asks for it in the wrong place is told where it is.
    let run = Command::new(&env.ctrace).args(["run", "--fail-frames-over", "1ms", "true"]).output();
    let told = String::from_utf8_lossy(&run.expect("runs").stderr).into_owned();
    assert!(told.contains("ctrace report --frame NAME --fail-frames-over 1ms"), "{told}");
}

#[test]
fn colours_of_scopes_are_wherever_scopes_are() {
    let env = or_skip!(gate::live(Link::Session));
    let recorded = recorded(&env);
    let report = recorded.report(&[]).expect("a report");
    let colour = |name: &str| {
        let functions = report.0["functions"].as_array().expect("functions");
        functions.iter().find(|row| row["name"] == *name).expect("the scope")["colour"].clone()
    };
    assert_eq!([colour("draw"), colour("shadows")], ["#ff8800", "#33aaff"]);
    assert_eq!(colour("physics"), Value::Null);
    let points = ["sky", "height", "picture %d", "tick"].map(colour);
    assert_eq!(points, ["#00ccff", "#00ff00", "#ff00ff", "#0000ff"]);

    let mut command = Command::new(&env.ctrace);
    command.arg("report").arg(&recorded.file).args(["--color", "always", "--view", "summary"]);
    command.args(["--view", "tree", "--view", "timeline", "--view", "detail"]);
    let shown = run(command.env("COLORTERM", "truecolor"), LIMIT).expect("runs").stdout;
    let marked = "\x1b[38;2;51;170;255mshadows";
    assert!(shown.matches(marked).count() >= 3, "{shown}");
    assert!(shown.contains("\x1b[38;2;255;136;0mgpu/draw"), "{shown}");

    // Points have theirs in tables and in lines.
    let in_colours = |arguments: &[&str]| {
        let mut command = Command::new(&env.ctrace);
        let (first, rest) = arguments.split_first().expect("a command");
        command.arg(first).arg(&recorded.file).args(["--color", "always"]).args(rest);
        run(command.env("COLORTERM", "truecolor"), LIMIT).expect("runs").stdout
    };
    let plots = in_colours(&["report", "--view", "plots"]);
    assert!(plots.contains("\x1b[38;2;0;255;0mheight"), "{plots}");
    let lines = in_colours(&["trace"]);
    for shown in [
        "\x1b[38;2;0;204;255mgpu/sky\x1b[0m(number=39)",
        "\x1b[38;2;0;255;0mheight\x1b[0m = 78",
        "\x1b[38;2;255;0;255mpicture 39\x1b[0m",
        "\x1b[38;2;0;0;255mtick\x1b[0m",
    ] {
        assert!(lines.contains(shown), "no {shown:?} in {lines}");
    }

    let svg = ctrace(&env, &recorded, &["export", "--format", "flamegraph", "-o", "-"]).stdout;
    let frame = svg.split("<title>").find(|frame| frame.starts_with("shadows (")).expect("a frame");
    assert!(frame.contains("fill=\"#33aaff\""), "{frame}");
    assert_eq!(svg.matches("#ff8800").count(), 1);
    let firefox = ctrace(&env, &recorded, &["export", "--format", "firefox", "-o", "-"]).stdout;
    let profile: Value = serde_json::from_str(&firefox).expect("JSON");
    let categories = profile["meta"]["categories"].as_array().expect("categories");
    let names: Vec<&str> = categories.iter().filter_map(|it| it["name"].as_str()).collect();
    assert!(names.contains(&"orange") && names.contains(&"light blue"), "{names:?}");
}
