//! The view of plots of markers.

use super::*;
use ctrace_core::{colour::Colour, report::PlotReport};

/// Three plots: one that rises, one that stays, and one that wrote no finite number.
fn with_plots() -> Report {
    let mut report = fixture::typical();
    let plot = |function: usize, unit: Option<&str>, count, over_time: Vec<Option<f64>>| {
        let known = || over_time.iter().flatten().copied();
        PlotReport {
            function,
            name: report.functions[function].name.clone(),
            unit: unit.map(Into::into),
            count,
            min: known().min_by(f64::total_cmp),
            mean: known().next().map(|first| first + 0.125),
            max: known().max_by(f64::total_cmp),
            last: known().last(),
            over_time,
        }
    };
    let rising = (0..60).map(|at| (at % 7 != 3).then_some(f64::from(at) * 1_000.25)).collect();
    report.plots = vec![
        plot(0, Some("jobs\u{1b}[2J"), 4_321, rising),
        plot(1, None, 60, vec![Some(-0.5); 60]),
        plot(2, None, 3, vec![None; 60]),
    ];
    report
}

#[test]
fn plots_of_markers() {
    check("with_plots_80", &with_plots(), &view("plots"), &NARROW);
    check("with_plots_200", &with_plots(), &view("plots"), &WIDE);
    let csv = render_csv(&with_plots(), &ViewOptions { top: Some(1), ..view("plots") });
    let csv = csv.expect("one view");
    assert!(csv.contains(",jobs\\u{1b}[2J,4321,0,"), "{csv}");
    assert_eq!(csv.lines().count(), 2);
}

#[test]
fn a_plot_has_the_colour_that_the_program_gave_it() {
    let mut report = with_plots();
    report.functions[1].colour = Colour::from_rgb(0x00_aa_ff);
    let text = render_table(&report, &view("plots"), &TRUECOLOUR).expect("a view");
    assert_eq!(text.matches("\x1b[38;2;0;170;255m").count(), 1, "{text:?}");
}
