//! Tests of what `top` leaves on the normal screen.

use super::{SECOND, fixture, model, model_of, nth, press, snapshot};
use crate::ui::output::style::Shades;
use crate::{
    top::{data::Data, model::Model, summary::summary},
    ui::Style,
};
use ctrace_core::report::{Report, render::clean::is_harmful};
use ratatui::crossterm::event::KeyCode::Char;
use std::time::Duration;

fn left(model: &Model, width: usize, height: usize) -> String {
    let style = Style { width: Some(width), ..Style::default() };
    summary(model, &style, height, None).expect("there are numbers")
}

#[test]
fn it_fits_the_terminal() {
    insta::assert_snapshot!("summary_80x24", left(&model(), 80, 24));
    insta::assert_snapshot!("summary_120x40", left(&model(), 120, 40));
    insta::assert_snapshot!("summary_40x10", left(&model(), 40, 10));
    for (width, height) in [(80, 24), (100, 30), (132, 50)] {
        let text = left(&model_of(&many()), width, height);
        assert!(text.lines().count() + 2 <= height, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        assert!(text.contains("functions not shown\n"), "{text}");
    }
}

/// Much that is to be noted takes the room of rows, down to some, and then its own.
#[test]
fn a_table_is_seen_beside_many_notes() {
    let mut report = many();
    let about =
        "and this note is so long that it takes several lines of a terminal of eighty columns";
    report.notes.extend((1..=6).map(|n| format!("note {n} has {n} words of its own, {about}.")));
    let left = |width, height| {
        let style = Style { width: Some(width), terminal: true, ..Style::default() };
        summary(&model_of(&report), &style, height, None).expect("numbers")
    };
    for (width, height) in [(60, 24), (80, 24), (80, 50)] {
        let text = left(width, height);
        assert!(text.lines().count() + 2 <= height, "{width}x{height}: {text}");
        assert!(
            text.contains("f300") && text.contains("f296") && text.contains("note 6"),
            "{text}"
        );
    }
    assert!(!left(60, 24).contains("columns") && left(80, 50).contains("columns"));
}

/// More functions than any terminal has rows.
fn many() -> Report {
    let mut report = fixture::empty();
    for n in 1..=300 {
        let of = fixture::function(&format!("f{n}"), n, 1_000 * n, report.duration_ns);
        report.functions.push(of);
    }
    report
}

/// Neither a pause nor a freeze leaves calls out, nor counts them twice.
#[test]
fn it_is_on_everything_since_the_start() {
    let report = fixture::typical();
    let add = |model: &mut Model, n: u64| {
        model.add(vec![snapshot(nth(&report, n), n * SECOND)], 0);
    };
    let (mut plain, mut frozen) = (model(), model());
    for n in 2..7 {
        add(&mut plain, n);
        add(&mut frozen, n);
        match n {
            2 | 3 => press(&mut frozen, Char('b')),
            4 => press(&mut frozen, Char(' ')),
            5 => press(&mut frozen, Char('b')),
            _ => None,
        };
    }
    let text = left(&frozen, 120, 40);
    assert_eq!(text, left(&plain, 120, 40));
    // 7 intervals of 1,000 calls.
    let row = text.lines().find(|line| line.starts_with("micro_operation")).expect("a row");
    assert!(row.split_whitespace().any(|word| word == "7,000"), "{row}");
}

#[test]
fn what_is_missing_is_said() {
    let mut model = model_of(&fixture::lossy());
    let lost = left(&model, 120, 40);
    assert!(lost.contains("warning: 24,690 events were lost"), "{lost}");
    // Wrapped at words.
    assert!(lost.replace("\n  ", " ").ends_with(
        "24,690 events lost; 6 events too late; 2 records unreadable; 274 calls ended unseen; 1 call \
         still running; 4 calls began before tracing\n"
    ));
    assert!(!lost.contains("intervals are missing"), "{lost}");
    model.add(vec![snapshot(nth(&fixture::lossy(), 2), 3 * SECOND)], 5);
    let text = left(&model, 120, 40);
    assert!(text.contains("5 intervals are missing: the terminal stood still"), "{text}");
    // The last ones before the end.
    model.end(2);
    assert!(left(&model, 120, 40).contains("7 intervals are missing: "));
}

#[test]
fn without_an_interval_there_is_none_and_names_are_harmless() {
    let waiting = Model::new(Data::new(None), Duration::from_secs(1), Shades::None);
    assert_eq!(summary(&waiting, &Style::default(), 24, None), None);
    let text = left(&model_of(&fixture::hostile()), 80, 24);
    assert!(text.contains("evil") && !text.chars().any(|c| c != '\n' && is_harmful(c)), "{text}");
}
