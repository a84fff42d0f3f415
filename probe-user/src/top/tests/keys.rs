//! Tests of keys: sort, choose, filter, pause, compare.

use super::{SECOND, fixture, functions, model, nth, press, screen, snapshot, typed};
use crate::top::model::{Mode, columns::TopColumn};
use ctrace_core::{report::numbers::NumberId, units::Nanos};
use fixture::MILLI;
use ratatui::crossterm::event::KeyCode;

#[test]
fn rows_are_sorted_by_any_column_either_way() {
    let mut model = model();
    for column in &TopColumn::all()[1..] {
        model.sort.column = *column;
        for reversed in [false, true] {
            model.sort.reversed = reversed;
            let figures = model.figures().expect("numbers");
            let values: Vec<f64> =
                model.rows().iter().filter_map(|&row| column.value(figures, row)).collect();
            // The costs of probes are not measured here, waits are not told apart, and no budget arms
            // anything for a part of the time.
            let name = format!("{column:?}");
            let absent = ["net_", "(running", "(runnable", "(blocked", "(armed"];
            let is_absent = absent.iter().any(|part| name.contains(part));
            assert!(values.len() >= 5 || is_absent && values.is_empty(), "{column:?}");
            assert!(
                values.is_sorted_by(|a, b| if reversed { a <= b } else { a >= b }),
                "{column:?}"
            );
        }
    }
    press(&mut model, KeyCode::Char('n'));
    assert!(functions(&model).is_sorted());
    // The name comes first; go one column to the right.
    press(&mut model, KeyCode::Right);
    assert_eq!(model.sort.column, TopColumn::RATE);
    press(&mut model, KeyCode::Char('3'));
    assert_eq!(model.sort.column, TopColumn::P50);
    press(&mut model, KeyCode::Char('3'));
    assert!(model.sort.reversed);
}

/// The keys reach every number of the registry, and the sorting column is on the screen.
#[test]
fn the_arrows_go_through_all_columns() {
    let mut model = model();
    press(&mut model, KeyCode::Char('n'));
    let mut reached = vec![model.sort.column];
    for column in &TopColumn::all()[1..] {
        press(&mut model, KeyCode::Right);
        reached.push(model.sort.column);
        let screen = screen(&mut model, 80, 24);
        assert!(screen.contains(&format!("{}▼", column.heading())), "{column:?}: {screen}");
    }
    for id in NumberId::all() {
        assert!(reached.contains(&TopColumn::Number(id)), "{id:?}");
    }
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
    // The functions on its paths stay, too.
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
    model.add(vec![snapshot(nth(&fixture::typical(), 2), 3 * SECOND)], 0);
    assert_eq!(screen(&mut model, 80, 24), before);
    press(&mut model, KeyCode::Char(' '));
    let calls = model.figures().expect("numbers").report.functions[0].calls;
    assert_eq!(calls, 3_000);
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
    model.add(vec![snapshot(slower, 3 * SECOND)], 0);
    model.message = None;
    model.sort.column = TopColumn::P50;
    model.detail = true;
    // The largest growth comes first.
    assert_eq!(functions(&model)[0], "on_reload");
    insta::assert_snapshot!("compared", screen(&mut model, 80, 24));
    press(&mut model, KeyCode::Char('b'));
    assert!(!screen(&mut model, 80, 24).contains("COMPARED"));
}
