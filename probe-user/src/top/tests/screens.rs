//! Golden files of screens, and checks for all of them.

use super::{SECOND, fixture, model, model_of, nth, press, screen, snapshot, typed};
use crate::top::{
    data::Data,
    model::{Basis, Model, View},
};
use crate::ui::output::style::Shades;
use ctrace_core::{
    function::ProbeCost,
    report::{ProbeTimes, TargetExit},
    units::Nanos,
};
use ratatui::crossterm::event::KeyCode;
use std::time::Duration;

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

    let whole = screen(&mut help, 100, 150).replace("\n  ", " ");
    for text in ["d shows times as they were seen", "12 rows below it are folded"] {
        assert!(whole.contains(text), "{whole}");
    }

    let mut exporting = model();
    press(&mut exporting, KeyCode::Char('e'));
    insta::assert_snapshot!("exporting", screen(&mut exporting, 80, 6));

    let mut waiting = Model::new(Data::new(None), Duration::from_secs(1), Shades::None);
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
    model.add(vec![snapshot(last, 3 * SECOND)], 2);
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
                model.add(vec![snapshot(nth(&report, 2), 3 * SECOND)], 0);
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
    coloured.shades = Shades::All;
    assert_eq!(screen(&mut plain, 80, 24), screen(&mut coloured, 80, 24));
}

/// Reports show times without the cost of probes, and so does the screen: what is rough, what is only a bound,
/// and rows that are mostly that cost say so.
#[test]
fn times_are_those_of_reports() {
    let mut report = fixture::empty();
    let rows = [("jump", 50, 5_000, 500), ("tiny", 7_000, 900, 220), ("walk", 40, 70_000, 30)];
    for (name, calls, typical, error) in rows {
        let mut row = fixture::function(name, calls, typical, report.duration_ns);
        let (call_ns, inside_ns, error_ns) = (Nanos(800), Nanos(500), Nanos(80));
        row.probes = Some(ProbeTimes {
            cost: ProbeCost { call_ns, inside_ns, error_ns, measured: true },
            total_ns: Nanos(500 * calls),
            self_ns: Nanos(500 * calls),
            total_error_ns: Nanos(error * calls),
            self_error_ns: Nanos(error * calls),
            ..ProbeTimes::default()
        });
        report.functions.push(row);
    }
    report.functions[2].until_tail_call = true;
    let mut model = model_of(&report);
    press(&mut model, KeyCode::Enter);
    insta::assert_snapshot!("measured", screen(&mut model, 100, 24));
    press(&mut model, KeyCode::Char('c'));
    insta::assert_snapshot!("measured_since_start", screen(&mut model, 80, 12));
}
