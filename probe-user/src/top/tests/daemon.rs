//! Tests with a daemon at the other end of a socket.

use super::{SECOND, fixture, nth, press, screen, snapshot};
use crate::top::{
    data::Data,
    model::{Basis, Effect, Model},
    source::{Update, daemon, observer::Series},
};
use crate::ui::output::style::Shades;
use ctrace_core::units::{Nanos, Pid};
use ratatui::crossterm::event::KeyCode;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixListener,
    path::Path,
    thread::JoinHandle,
    time::Duration,
};

/// Sends these answers, one line for each question.
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

/// Makes a look at an interval in which the same happened `times` times.
fn look(times: u64) -> crate::session::keep::live::Snapshot {
    let mut data = Data::new(Some(Nanos::ZERO));
    let add = |n| data.add(vec![snapshot(nth(&fixture::typical(), n), (n + 1) * SECOND)], 0);
    (0..times).for_each(add);
    let sums = data.sums.expect("there are some").figures;
    let (report, spent) = (sums.report, sums.spent);
    crate::session::keep::live::Snapshot { report, spent, cpu: Some(Nanos(times * SECOND)) }
}

/// Returns the look in the daemon's form.
fn answer(times: u64) -> String {
    let look = look(times);
    let mut of_daemon = serde_json::to_value(&look.report).expect("JSON");
    let open: Vec<u64> = look.report.paths.iter().map(|path| path.open).collect();
    let tallies: Vec<_> = look.report.functions.iter().map(|f| f.tally()).collect();
    of_daemon["daemon"] = json!({ "schema": "x", "cost_ns": 5_000_000, "cpu_ns": look.cpu,
        "spent_ns": look.spent, "paths_open": open,
        "timed_ns": tallies.iter().map(|tally| tally.timed_ns).collect::<Vec<_>>(),
        "timed_squares": tallies.iter().map(|t| t.squares.to_string()).collect::<Vec<_>>() });
    json!({ "v": 1, "ok": true, "reports": [of_daemon] }).to_string()
}

fn traced() -> Value {
    json!({ "pid": 4711, "exe": "/srv/bin/server", "since_s": 75, "state": "traced",
        "last": { "calls": 1234, "lost": 0, "cost_percent": 0.25 } })
}

#[test]
fn a_daemon_is_asked_for_processes_and_looks() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let asked = fake_daemon(
        &socket,
        vec![
            json!({ "v": 1, "ok": true, "targets": [
                { "target": "web", "processes": [traced()] }, { "target": "idle" } ] })
            .to_string(),
            answer(1),
            answer(3),
            json!({ "v": 1, "ok": false, "error": "process 7 is not\u{1b} traced" }).to_string(),
            "nonsense".to_owned(),
        ],
    );
    let processes = daemon::processes(&socket).expect("processes");
    assert_eq!((processes.len(), processes[0].process.pid), (1, 4711));
    for (times, since) in [(1, None), (3, Some(Nanos(SECOND)))] {
        let looks = daemon::look(&socket, 4711, since).expect("a look");
        let wanted = look(times);
        assert_eq!((looks.len(), looks[0].cpu), (1, wanted.cpu));
        assert_eq!(looks[0].spent, wanted.spent);
        let all = |report| serde_json::to_value(report).expect("JSON");
        // Data that is never shown is not read.
        let mut wanted = all(wanted.report);
        let object = wanted.as_object_mut().expect("an object");
        object.retain(|key, _| key != "slowest_calls" && key != "timeline");
        assert_eq!(all(looks[0].report.clone()), wanted);
    }
    let refused = daemon::look(&socket, 7, None).err().expect("an error").to_string();
    assert!(refused.contains("not\\u{1b} traced"), "{refused}");
    assert!(daemon::processes(&socket).is_err());
    let asked = asked.join().expect("it answered");
    let question = |at: usize| serde_json::from_str::<Value>(&asked[at]).expect("JSON");
    assert_eq!(question(1), json!({ "v": 1, "do": "report", "pid": 4711, "full": true }));
    assert_eq!(question(2)["since_ns"], SECOND);
    std::fs::remove_file(&socket).expect("removed");
    let nobody = daemon::processes(&socket).expect_err("nobody is there").to_string();
    assert!(nobody.contains("`ctrace daemon` starts one"), "{nobody}");
}

fn take(model: &mut Model, update: Update) {
    match update {
        Update::Begun { cpu } => model.begun(cpu),
        Update::Interval { parts, missed } => model.add(parts, missed),
        _ => panic!("it is about a process"),
    }
}

/// A daemon's process has all that an own session has: shares, trend, sums, comparison.
#[test]
fn a_process_of_a_daemon_is_shown_as_any_other() {
    let mut model = Model::new(Data::new(None), Duration::from_secs(1), Shades::None);
    let list = |list: Value| serde_json::from_value(list).expect("processes");
    let traced = daemon::Traced { target: "web".to_owned(), process: list(traced()) };
    model.list(vec![traced]);
    insta::assert_snapshot!("processes", screen(&mut model, 80, 10));
    assert_eq!(press(&mut model, KeyCode::Enter), Some(Effect::Choose(Some(4711))));
    let mut series = Series::default();
    take(&mut model, series.add(vec![look(1)]));
    assert!(screen(&mut model, 80, 12).contains("The first numbers come after"));
    take(&mut model, series.add(vec![look(2)]));
    take(&mut model, series.add(vec![look(3)]));
    press(&mut model, KeyCode::Enter);
    insta::assert_snapshot!("of_a_daemon", screen(&mut model, 100, 24));
    press(&mut model, KeyCode::Enter);
    press(&mut model, KeyCode::Char('h'));
    assert!(screen(&mut model, 80, 24).contains("◂ p"));
    press(&mut model, KeyCode::Char('f'));
    press(&mut model, KeyCode::Char('c'));
    assert_eq!(model.basis, Basis::Start);
    assert!(screen(&mut model, 80, 12).contains("since start, 4.34 s"));
    press(&mut model, KeyCode::Char('c'));
    press(&mut model, KeyCode::Char('b'));
    take(&mut model, series.add(vec![look(4)]));
    let compared = screen(&mut model, 80, 12);
    assert!(compared.contains("COMPARED") && compared.contains(" = "), "{compared}");
    // This look was under way when another process was chosen.
    let mut late = look(1);
    late.report.target.pid = Some(Pid(1));
    let before = screen(&mut model, 80, 12);
    model.add(vec![late], 0);
    assert_eq!(screen(&mut model, 80, 12), before);

    assert_eq!(press(&mut model, KeyCode::Char('o')), Some(Effect::Choose(None)));
    model.list(Vec::new());
    assert!(screen(&mut model, 80, 10).contains("The daemon traces no process now"));
    assert_eq!(press(&mut model, KeyCode::Char('q')), Some(Effect::Quit));
}
