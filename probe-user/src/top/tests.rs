//! What the screen shows, as golden files, and what keys do to it.

#[path = "../../core/tests/fixture/mod.rs"]
mod fixture;

use super::{
    columns::Column,
    daemon,
    data::Data,
    export::{self, Format},
    keys,
    model::{Basis, Effect, Mode, Model, View},
    view,
};
use crate::session::live::Snapshot;
use ctrace_core::{
    export::clean::is_harmful,
    report::{Report, SampledReport, TargetExit},
    units::Nanos,
};
use fixture::{MICRO, MILLI, SECOND};
use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    style::Color,
    text::Text,
};
use serde_json::json;
use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixListener,
    path::Path,
    thread::JoinHandle,
    time::Duration,
};

/// The report as that of the nth interval, of a target that runs.
fn nth(report: &Report, n: u64) -> Report {
    let mut report = report.clone();
    let after = Nanos(n * report.duration_ns.0.min(10 * SECOND));
    report.start_ns = report.start_ns.saturating_add(after);
    report.end_ns = report.end_ns.saturating_add(after);
    report.target.exit = None;
    report
}

fn snapshot(report: Report, cpu: u64) -> Snapshot {
    let spent = report.functions.iter().map(|f| Nanos(f.calls.min(SECOND) * 60)).collect();
    Snapshot { report, spent, cpu: Some(Nanos(cpu)) }
}

/// After two intervals with the same numbers.
fn model_of(report: &Report) -> Model {
    let mut model = Model::new(Data::new(Some(Nanos::ZERO)), Duration::from_secs(1), false);
    model.add(snapshot(nth(report, 0), SECOND), 0);
    model.add(snapshot(nth(report, 1), 2 * SECOND), 0);
    model
}

fn model() -> Model {
    model_of(&fixture::typical())
}

fn press(model: &mut Model, code: KeyCode) -> Option<Effect> {
    let key = KeyEvent::new(code, KeyModifiers::NONE);
    keys::action(model.mode, key).and_then(|action| model.act(action))
}

fn typed(model: &mut Model, text: &str) {
    text.chars().for_each(|c| {
        press(model, KeyCode::Char(c));
    });
}

/// The screen's text, after checking what holds for every screen.
fn screen(model: &mut Model, width: u16, height: u16) -> String {
    model.size = (width.into(), height.into());
    let drawn = view::draw(model);
    model.limit_scroll(drawn.last_scroll);
    assert!(drawn.lines.len() <= height.into(), "{width}×{height}");
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a backend");
    let text = Text::from(drawn.lines);
    terminal.draw(|frame| frame.render_widget(text, frame.area())).expect("it draws");
    let buffer = terminal.backend().buffer();
    assert!(model.colour || buffer.content.iter().all(|cell| cell.fg == Color::Reset));
    let mut out = String::new();
    for row in buffer.content.chunks(width.into()) {
        let mut line = String::new();
        let mut hidden = 0_usize;
        for cell in row {
            // A wide character hides the cell behind it.
            if hidden == 0 {
                line += cell.symbol();
                hidden = unicode_width::UnicodeWidthStr::width(cell.symbol()).max(1);
            }
            hidden -= 1;
        }
        out += line.trim_end();
        out.push('\n');
    }
    assert!(!out.chars().any(|c| c != '\n' && is_harmful(c)), "the target drives the terminal");
    out
}

fn functions(model: &Model) -> Vec<String> {
    let figures = model.figures().expect("numbers");
    model.rows().iter().map(|&row| figures.report.functions[row].name.to_string()).collect()
}

#[test]
fn every_view_at_every_size() {
    for view in View::ALL {
        for (width, height) in [(80, 24), (120, 40), (40, 10)] {
            let mut model = model();
            model.view = view;
            let name = format!("{}_{width}x{height}", view.name());
            insta::assert_snapshot!(name, screen(&mut model, width, height));
        }
    }
}

#[test]
fn states_of_the_screen() {
    let mut detail = model();
    press(&mut detail, KeyCode::Enter);
    insta::assert_snapshot!("detail", screen(&mut detail, 80, 24));

    let mut since_start = model();
    press(&mut since_start, KeyCode::Char('c'));
    insta::assert_snapshot!("since_start", screen(&mut since_start, 100, 16));

    let mut filtering = model();
    typed(&mut filtering, "/Request");
    insta::assert_snapshot!("filtering", screen(&mut filtering, 80, 12));

    let mut help = model();
    press(&mut help, KeyCode::Char('?'));
    insta::assert_snapshot!("help", screen(&mut help, 80, 50));

    let mut exporting = model();
    press(&mut exporting, KeyCode::Char('e'));
    insta::assert_snapshot!("exporting", screen(&mut exporting, 80, 6));

    let mut waiting = Model::new(Data::new(None), Duration::from_secs(1), false);
    insta::assert_snapshot!("waiting", screen(&mut waiting, 80, 6));

    insta::assert_snapshot!("idle", screen(&mut model_of(&fixture::nothing_called()), 80, 12));
    insta::assert_snapshot!("lossy", screen(&mut model_of(&fixture::lossy()), 80, 12));
    insta::assert_snapshot!("hostile", screen(&mut model_of(&fixture::hostile()), 80, 12));
    insta::assert_snapshot!("long_names", screen(&mut model_of(&fixture::long_names()), 80, 12));
}

#[test]
fn a_target_that_has_ended_and_a_pause() {
    let mut model = model();
    let mut last = nth(&fixture::typical(), 2);
    last.target.exit = Some(TargetExit::Signal(9));
    model.add(snapshot(last, 3 * SECOND), 2);
    model.ended = true;
    press(&mut model, KeyCode::Char(' '));
    insta::assert_snapshot!("ended", screen(&mut model, 80, 12));
}

const SIZES: [(u16, u16); 9] =
    [(1, 1), (2, 3), (7, 2), (13, 8), (25, 30), (40, 10), (61, 5), (79, 23), (140, 49)];

#[test]
fn no_size_is_too_small_and_no_number_too_large() {
    for report in
        [fixture::extreme(), fixture::hostile(), fixture::recursion(300), fixture::empty()]
    {
        let mut model = model_of(&report);
        for freeze in [false, true] {
            if freeze {
                press(&mut model, KeyCode::Char('b'));
                model.add(snapshot(nth(&report, 2), 3 * SECOND), 0);
            }
            for (view, basis) in View::ALL
                .into_iter()
                .flat_map(|view| [Basis::Interval, Basis::Start].map(|basis| (view, basis)))
            {
                (model.view, model.basis) = (view, basis);
                for (width, height) in SIZES {
                    for detail in [false, true] {
                        model.detail = detail;
                        screen(&mut model, width, height);
                    }
                }
            }
        }
    }
}

#[test]
fn with_colour_the_text_is_the_same() {
    let (mut plain, mut coloured) = (model(), model());
    coloured.colour = true;
    assert_eq!(screen(&mut plain, 80, 24), screen(&mut coloured, 80, 24));
}

#[test]
fn rows_are_sorted_by_any_column_either_way() {
    let mut model = model();
    for column in &Column::ALL[1..] {
        model.sort.column = *column;
        for reversed in [false, true] {
            model.sort.reversed = reversed;
            let figures = model.figures().expect("numbers");
            let values: Vec<f64> =
                model.rows().iter().filter_map(|&row| column.value(figures, row)).collect();
            assert!(values.len() >= 5, "{column:?}");
            assert!(
                values.is_sorted_by(|a, b| if reversed { a <= b } else { a >= b }),
                "{column:?}"
            );
        }
    }
    press(&mut model, KeyCode::Char('n'));
    assert!(functions(&model).is_sorted());
    // From the name, which comes first, one column to the right.
    press(&mut model, KeyCode::Right);
    assert_eq!(model.sort.column, Column::Rate);
    press(&mut model, KeyCode::Char('3'));
    assert_eq!(model.sort.column, Column::P50);
    press(&mut model, KeyCode::Char('3'));
    assert!(model.sort.reversed);
}

#[test]
fn the_chosen_function_stays_chosen() {
    let mut model = model();
    press(&mut model, KeyCode::Down);
    press(&mut model, KeyCode::Down);
    let place = model.selected_place();
    press(&mut model, KeyCode::Char('n'));
    assert_eq!(model.selected_place(), place);
    press(&mut model, KeyCode::End);
    assert_eq!(model.selected_place(), model.rows().last().copied());
}

#[test]
fn a_filter_is_words_in_any_case() {
    let mut model = model();
    typed(&mut model, "/HTTP request");
    assert_eq!(model.mode, Mode::Filter);
    assert_eq!(functions(&model), ["http::Connection::handle_request(http::Request const&)"]);
    typed(&mut model, "?");
    assert!(functions(&model).is_empty());
    assert!(screen(&mut model, 80, 12).contains("No function that was called matches"));
    press(&mut model, KeyCode::Backspace);
    press(&mut model, KeyCode::Enter);
    assert_eq!((model.mode, functions(&model).len()), (Mode::Look, 1));
    // With what is on its paths.
    press(&mut model, KeyCode::Char('t'));
    let tree = screen(&mut model, 80, 24);
    assert!(tree.contains("parse_header") && !tree.contains("variable_timing"), "{tree}");
    press(&mut model, KeyCode::Esc);
    assert_eq!(functions(&model).len(), 6);
}

#[test]
fn a_pause_stands_still_and_counting_goes_on() {
    let mut model = model();
    press(&mut model, KeyCode::Char('c'));
    press(&mut model, KeyCode::Char(' '));
    let before = screen(&mut model, 80, 24);
    assert!(before.contains("PAUSED"));
    model.add(snapshot(nth(&fixture::typical(), 2), 3 * SECOND), 0);
    assert_eq!(screen(&mut model, 80, 24), before);
    press(&mut model, KeyCode::Char(' '));
    let calls = model.figures().expect("numbers").report.functions[0].calls;
    assert_eq!(calls, 3_000);
}

#[test]
fn sums_are_those_of_all_intervals() {
    let mut model = model();
    press(&mut model, KeyCode::Char('c'));
    let figures = model.figures().expect("numbers");
    let (sum, one) = (&figures.report, fixture::typical());
    assert_eq!(sum.duration_ns.0, 2 * one.duration_ns.0);
    assert_eq!(sum.functions[0].total_ns.0, 2 * one.functions[0].total_ns.0);
    assert_eq!(sum.functions[0].durations.mean_ns, one.functions[0].durations.mean_ns);
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    let share = sum.functions[0].active_exclusive_percent;
    assert!(near(share, one.functions[0].active_exclusive_percent));
    // A call that was open in both is one call.
    assert_eq!((sum.functions[5].calls, sum.functions[5].open), (1, 1));
    assert_eq!(sum.loss.calls_open, 1);
    assert_eq!(sum.paths.len(), one.paths.len());
    assert_eq!(sum.paths[2].calls, 2 * one.paths[2].calls);
    assert_eq!(sum.threads[1].calls, 2 * one.threads[1].calls);
    assert_eq!(figures.cpu, Some(Nanos(2 * SECOND)));
    let counts =
        |report: &Report| report.histogram_of(3).map(|of| of.durations.counts.iter().sum::<u64>());
    assert_eq!(counts(sum), counts(&one).map(|count| 2 * count));
}

/// Of what was armed for a part of the time only, the estimates are shown and add up.
#[test]
fn estimates_are_marked_and_add_up() {
    let mut report = fixture::typical();
    report.functions[0].sampled = Some(SampledReport {
        armed_ns: Nanos(report.duration_ns.0 / 10),
        armed_percent: 10.0,
        windows: 4,
        calls: Some(10_000),
        calls_error: Some(300),
        total_ns: None,
        active_ns: None,
    });
    let mut model = model_of(&report);
    let shown = screen(&mut model, 120, 12);
    let row = shown.lines().find(|line| line.contains("micro_operation")).expect("a row");
    assert!(row.contains("armed 10.0 %") && row.contains("~4,607"), "{shown}");
    press(&mut model, KeyCode::Char('c'));
    let sampled = model.figures().expect("numbers").report.functions[0].sampled;
    let sampled = sampled.expect("it was armed for a part");
    assert_eq!((sampled.calls, sampled.calls_error), (Some(20_000), Some(424)));
    assert_eq!((sampled.windows, sampled.total_ns), (8, None));
    assert!((sampled.armed_percent - 10.0).abs() < 1e-6, "{sampled:?}");
}

#[test]
fn functions_are_known_by_name_when_places_change() {
    let mut model = model();
    let mut shifted = nth(&fixture::typical(), 2);
    let late = fixture::function("arrived_late", 10, MICRO, Nanos(SECOND));
    shifted.functions.insert(0, late);
    let places: Vec<usize> = (1..shifted.functions.len()).collect();
    shifted.move_functions(&places);
    model.add(snapshot(shifted, 3 * SECOND), 0);
    press(&mut model, KeyCode::Char('c'));
    let figures = model.figures().expect("numbers");
    let calls =
        |name: &str| figures.report.functions.iter().find(|f| &*f.name == name).map(|f| f.calls);
    assert_eq!(calls("micro_operation"), Some(3_000));
    assert_eq!(calls("arrived_late"), Some(10));
}

#[test]
fn frozen_numbers_are_compared() {
    let mut model = model();
    press(&mut model, KeyCode::Char('b'));
    let mut slower = nth(&fixture::typical(), 2);
    slower.functions[3].durations.p50_ns =
        slower.functions[3].durations.p50_ns.map(|p| Nanos(p.0 * 2));
    slower.functions[0] = fixture::function("micro_operation", 0, 0, slower.duration_ns);
    slower.functions[6] = fixture::function("on_reload", 2, 5 * MILLI, slower.duration_ns);
    model.add(snapshot(slower, 3 * SECOND), 0);
    model.message = None;
    model.sort.column = Column::P50;
    model.detail = true;
    // What grew most comes first.
    assert_eq!(functions(&model)[0], "on_reload");
    insta::assert_snapshot!("compared", screen(&mut model, 80, 24));
    press(&mut model, KeyCode::Char('b'));
    assert!(!screen(&mut model, 80, 24).contains("COMPARED"));
}

#[test]
fn what_is_shown_is_written_and_nothing_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut model = model();
    typed(&mut model, "/operation");
    press(&mut model, KeyCode::Enter);
    press(&mut model, KeyCode::Char('e'));
    assert_eq!(press(&mut model, KeyCode::Char('j')), Some(Effect::Export(Format::Json)));
    let written = |format| {
        let path = export::write(&model, format, folder.path()).expect("written");
        (path.display().to_string(), std::fs::read_to_string(&path).expect("readable"))
    };
    let (path, text) = written(Format::Json);
    assert!(path.ends_with("ctrace-top-4711-1.json"), "{path}");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let names: Vec<_> = json["functions"].as_array().expect("functions").iter().collect();
    // The one that matches, and those on its paths.
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(written(Format::Json).0.ends_with("ctrace-top-4711-2.json"));
    let (_, csv) = written(Format::Csv);
    assert!(csv.starts_with("name,") && csv.contains("micro_operation"), "{csv}");
    let (_, text) = written(Format::Text);
    insta::assert_snapshot!("written", text);
}

#[test]
fn every_view_can_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    for view in View::ALL {
        let mut model = model();
        model.view = view;
        for format in [Format::Text, Format::Json, Format::Csv] {
            let path = export::write(&model, format, folder.path()).expect("written");
            assert!(std::fs::metadata(path).expect("a file").len() > 100, "{view:?} {format:?}");
        }
    }
}

/// Answers so many questions, each with a line.
fn fake_daemon(socket: &Path, answers: Vec<String>) -> JoinHandle<Vec<String>> {
    let listener = UnixListener::bind(socket).expect("a socket");
    std::thread::spawn(move || {
        let answer = |answer: String| {
            let (mut stream, _) = listener.accept().expect("somebody asks");
            let mut question = String::new();
            BufReader::new(&stream).read_line(&mut question).expect("a line");
            writeln!(stream, "{answer}").expect("answered");
            question
        };
        answers.into_iter().map(answer).collect()
    })
}

#[test]
fn a_daemon_is_asked_for_processes_and_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let report = fixture::typical();
    let process = json!({ "pid": 4711, "exe": "/srv/bin/server", "since_s": 75, "state": "traced",
        "last": { "calls": 1234, "lost": 0, "cost_percent": 0.25 } });
    let mut of_daemon = serde_json::to_value(&report).expect("JSON");
    of_daemon["daemon"] = json!({ "schema": "x", "cost_ns": 5_000_000 });
    let asked = fake_daemon(
        &socket,
        vec![
            json!({ "v": 1, "ok": true, "targets": [
                { "target": "web", "processes": [process] }, { "target": "idle" } ] })
            .to_string(),
            json!({ "v": 1, "ok": true, "reports": [of_daemon] }).to_string(),
            json!({ "v": 1, "ok": false, "error": "process 7 is not\u{1b} traced" }).to_string(),
            "nonsense".to_owned(),
        ],
    );
    let processes = daemon::processes(&socket).expect("processes");
    assert_eq!((processes.len(), processes[0].process.pid), (1, 4711));
    let (snapshot, cost) = daemon::report(&socket, 4711).expect("a report");
    assert_eq!(cost, Nanos(5_000_000));
    let again = |report: &Report| {
        let mut value = serde_json::to_value(report).expect("JSON");
        // What is not shown is not read.
        let object = value.as_object_mut().expect("an object");
        object.retain(|key, _| key != "slowest_calls" && key != "timeline");
        value
    };
    assert_eq!(again(&snapshot.report), again(&report));
    let refused = daemon::report(&socket, 7).err().expect("an error").to_string();
    assert!(refused.contains("not\\u{1b} traced"), "{refused}");
    assert!(daemon::processes(&socket).is_err());
    let asked = asked.join().expect("it answered");
    let question: serde_json::Value = serde_json::from_str(&asked[1]).expect("JSON");
    assert_eq!(question, json!({ "v": 1, "do": "report", "pid": 4711 }));
    std::fs::remove_file(&socket).expect("removed");
    let nobody = daemon::processes(&socket).expect_err("nobody is there").to_string();
    assert!(nobody.contains("`ctrace daemon` starts one"), "{nobody}");

    let mut model = Model::new(Data::new(None), Duration::from_secs(1), false);
    model.list(processes);
    insta::assert_snapshot!("processes", screen(&mut model, 80, 10));
    assert_eq!(press(&mut model, KeyCode::Enter), Some(Effect::Choose(Some(4711))));
    model.look(snapshot, cost);
    insta::assert_snapshot!("of_a_daemon", screen(&mut model, 80, 12));
    press(&mut model, KeyCode::Char('b'));
    assert!(screen(&mut model, 80, 12).contains("COMPARED"));
    press(&mut model, KeyCode::Char('c'));
    assert_eq!(model.basis, Basis::Interval);
    assert_eq!(press(&mut model, KeyCode::Char('o')), Some(Effect::Choose(None)));
    model.list(Vec::new());
    assert!(screen(&mut model, 80, 10).contains("The daemon traces no process now"));
    assert_eq!(press(&mut model, KeyCode::Char('q')), Some(Effect::Quit));
}
