//! Golden files of all that people see, view by view: `cargo insta review` shows what a change does
//! to them.

#[path = "views/ascii.rs"]
mod ascii;
#[path = "../core/tests/fixture/mod.rs"]
mod fixture;
#[path = "views/frames.rs"]
mod frames;
#[path = "views/locks.rs"]
mod locks;
#[path = "views/marks.rs"]
mod marks;
#[path = "views/plots.rs"]
mod plots;
#[path = "views/told_below.rs"]
mod told_below;
#[path = "views/values.rs"]
mod values;
#[path = "views/waits.rs"]
mod waits;

use ctrace_core::report::render::clean::is_harmful;
use ctrace_core::report::{Extras, Report};
use ctrace_core::units::Nanos;
use ctrace_user::testing::ui::{
    Style, ViewError, ViewName, ViewOptions, loss_line, render_csv, render_table,
};
use marks::with_marks;
use unicode_width::UnicodeWidthStr;
use values::with_values;

const FILE: Style =
    Style { width: None, colour: false, truecolour: false, ascii: false, terminal: false };
const NARROW: Style = Style { width: Some(80), ..FILE };
const WIDE: Style = Style { width: Some(120), ..FILE };
const WIDEST: Style = Style { width: Some(200), ..FILE };
const COLOUR: Style = Style { colour: true, ..WIDE };
const TRUECOLOUR: Style = Style { truecolour: true, ..COLOUR };

fn view(name: &str) -> ViewOptions {
    ViewOptions {
        views: vec![name.parse().expect("a view of that name")],
        epoch_offset_ns: Some(1_757_762_651_123_000_000),
        ..ViewOptions::default()
    }
}

/// Renders, checks what holds for every report, and compares with the golden file.
fn check(name: &str, report: &Report, options: &ViewOptions, style: &Style) -> String {
    let text = sound(report, options, style);
    insta::assert_snapshot!(name, text.replace('\x1b', "␛"));
    text
}

/// The rendering, after checking what holds for every report.
fn sound(report: &Report, options: &ViewOptions, style: &Style) -> String {
    let text = render_table(report, options, style).expect("the options are right");
    let plain = without_colour(&text);
    let uncoloured = Style { colour: false, ..*style };
    assert_eq!(plain, render_table(report, options, &uncoloured).expect("as before"));
    assert!(!plain.chars().any(|c| c != '\n' && is_harmful(c)), "the target drives the terminal");
    // Wrapped at words.
    let whole = plain.replace("\n  ", " ");
    assert_eq!(whole.lines().last().map(str::trim_start), Some(loss_line(&report.loss).as_str()));
    assert!(plain.ends_with('\n'));
    let loss = &report.loss;
    let damaged = loss.events > 0 || loss.late > 0 || loss.decode_errors > 0 || loss.payloads > 0;
    assert_eq!(plain.starts_with("warning: "), damaged);
    plain
        .lines()
        .filter(|line| style.width.is_some_and(|width| line.width() > width))
        .for_each(|line| assert!(is_wide_by_need(report), "wider than the terminal: {line}"));
    text
}

/// Numbers are never cut, so those of 20 digits may need more than the terminal has.
fn is_wide_by_need(report: &Report) -> bool {
    report.filtered_calls == u64::MAX
}

fn without_colour(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        out += &rest[..at];
        let end = rest[at..].find('m').expect("only colours") + at + 1;
        rest = &rest[end..];
    }
    out + rest
}

#[test]
fn every_view_at_every_width() {
    let report = fixture::typical();
    for name in ViewName::all() {
        let options = view(&name.to_string());
        check(&format!("{name}_80"), &report, &options, &NARROW);
        check(&format!("{name}_120"), &report, &options, &WIDE);
        check(&format!("{name}_200"), &report, &options, &WIDEST);
        check(&format!("{name}_file"), &report, &options, &FILE);
        check(&format!("{name}_colour"), &report, &options, &COLOUR);
    }
}

#[test]
fn every_report_in_every_view_at_any_width() {
    let reports = [
        fixture::empty(),
        fixture::typical(),
        fixture::lossy(),
        fixture::hostile(),
        fixture::long_names(),
        fixture::extreme(),
        fixture::nothing_called(),
        fixture::recursion(300),
    ];
    for report in &reports {
        for name in ViewName::all() {
            for width in [None, Some(80), Some(100), Some(137), Some(200), Some(400)] {
                for colour in [false, true] {
                    let options = ViewOptions { show_zero: colour, ..view(&name.to_string()) };
                    sound(
                        report,
                        &options,
                        &Style {
                            width,
                            colour,
                            truecolour: colour,
                            ascii: colour,
                            terminal: width.is_some(),
                        },
                    );
                }
            }
        }
    }
}

#[test]
fn default_views() {
    check("default_120", &fixture::typical(), &ViewOptions::default(), &WIDE);
}

#[test]
fn heat_has_more_shades_where_the_terminal_has_all_colours() {
    let text = check("hist_truecolour", &fixture::typical(), &view("hist"), &TRUECOLOUR);
    assert!(text.contains("\x1b[38;2;"));
    let few = sound(&fixture::typical(), &view("hist"), &COLOUR);
    assert_eq!(without_colour(&text), without_colour(&few));
}

/// Returns the headings of tables, as they stand above the rule, with those of groups.
fn headings(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let rules = (2..lines.len()).filter(|&at| lines[at].starts_with('─'));
    let above = rules.flat_map(|at| match lines[at].contains('┼') {
        true => &lines[at - 2..at],
        false => &lines[at - 1..at],
    });
    // Histograms have headings without a rule.
    let of_bars = lines.iter().filter(|line| line.trim_start().starts_with("from "));
    let parts = above.chain(of_bars).flat_map(|line| line.split('│'));
    let headings = parts.flat_map(|part| part.split("  ")).map(str::trim);
    headings.filter(|heading| !heading.is_empty()).map(str::to_owned).collect()
}

#[test]
fn every_heading_is_explained() {
    let text = include_str!("../../docs/statistics.md");
    let section =
        text.split("\n## ").find(|part| part.starts_with("Headings")).expect("there is one");
    let explained = |heading: &str| section.contains(&format!("`{heading}`"));
    let mut found = std::collections::BTreeSet::new();
    for report in [fixture::typical(), with_values(), with_marks(true)] {
        for name in ViewName::all() {
            found.extend(headings(&sound(&report, &view(&name.to_string()), &FILE)));
        }
    }
    // The scale of the small histograms stands in their heading.
    let is_scale = |heading: &String| heading.contains('–') && heading.ends_with('s');
    let unknown: Vec<&String> = found.iter().filter(|it| !is_scale(it) && !explained(it)).collect();
    assert!(found.len() > 40, "these are not all: {found:?}");
    assert!(unknown.is_empty(), "docs/statistics.md does not explain {unknown:?}");
}

#[test]
fn the_first_screen_has_no_heading_twice() {
    let mut found = headings(&sound(&fixture::typical(), &view("summary"), &FILE));
    let all = found.len();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), all, "{found:?}");
}

/// Headings that all calls share stand above the first of them.
#[test]
fn the_calls_inside_slow_calls_have_headings_once() {
    let text = sound(&fixture::typical(), &view("calls"), &WIDE);
    let headings = |text: &str| text.lines().filter(|line| line.ends_with("  inside")).count();
    assert_eq!((headings(&text), text.matches(" ×1,000").count()), (1, 2), "{text}");
}

#[test]
fn scopes_of_one_name_are_told_apart() {
    let report = fixture::scopes();
    for name in
        ["summary", "detail", "tree", "paths", "counts", "hist", "trend", "calls", "timeline"]
    {
        let text = sound(&report, &view(name), &WIDE);
        for scope in ["ingest/parse", "render/parse"] {
            assert!(text.contains(scope), "no {scope} in {name}:\n{text}");
        }
        let bare = text.matches("parse").count() - text.matches("parse_header").count();
        assert_eq!(text.matches("/parse").count(), bare, "a scope without its group:\n{text}");
    }
}

#[test]
fn losses_come_first_and_last() {
    check("lossy_summary", &fixture::lossy(), &view("summary"), &WIDE);
    check("lossy_detail", &fixture::lossy(), &view("detail"), &WIDE);
}

#[test]
fn hostile_names() {
    for name in ["summary", "paths", "calls", "timeline", "threads", "ctrack"] {
        check(&format!("hostile_{name}"), &fixture::hostile(), &view(name), &WIDE);
    }
}

#[test]
fn long_names() {
    for name in ["summary", "detail", "tree", "paths", "calls"] {
        check(&format!("long_{name}"), &fixture::long_names(), &view(name), &WIDE);
    }
}

#[test]
fn no_calls() {
    check("nothing_called", &fixture::nothing_called(), &ViewOptions::default(), &NARROW);
    check("nothing_selected", &fixture::empty(), &ViewOptions::default(), &NARROW);
}

#[test]
fn extremes() {
    for name in ViewName::all() {
        check(&format!("extreme_{name}"), &fixture::extreme(), &view(&name.to_string()), &WIDE);
    }
}

#[test]
fn deep_recursion() {
    check("recursion_tree", &fixture::recursion(40), &view("tree"), &NARROW);
    let deep = sound(&fixture::recursion(5_000), &view("tree"), &FILE);
    assert!(deep.contains("[4999] fib"));
    let paths = ViewOptions { top: Some(3), ..view("paths") };
    assert!(sound(&fixture::recursion(5_000), &paths, &NARROW).contains("4,997 paths not shown"));
}

/// A function with calls that ended unseen, a function with no other, and an interval without them.
#[test]
fn ctracks_tables_say_what_is_not_in_them() {
    let mut report = fixture::typical();
    report.functions[1].untimed = 3;
    let text = check("ctrack_marked", &report, &view("ctrack"), &WIDE);
    assert!(text.contains("variable_timing_function *") && !text.contains("parse_header *"));
    assert!(text.contains("1 function is not listed: none of its calls was seen to end."));
    report.ctrack = None;
    let text = sound(&report, &view("ctrack"), &WIDE);
    assert!(text.contains("--spool") && !text.contains("variable_timing_function"), "{text}");
}

#[test]
fn rows_are_chosen() {
    let top = ViewOptions { top: Some(2), sort: Some("calls".to_owned()), ..view("summary") };
    let text = check("top_2_by_calls", &fixture::typical(), &top, &WIDE);
    assert!(text.contains("parse_header") && !text.contains("micro_operation"));
    let tree = ViewOptions { top: Some(3), min_percent: Some(5.0), ..view("tree") };
    check("tree_top_3", &fixture::typical(), &tree, &WIDE);
}

#[test]
fn paths_by_count_or_by_time() {
    let first = |view_name: &str, sort: Option<&str>| {
        let sort = sort.map(str::to_owned);
        let options = ViewOptions { top: Some(1), sort, ..view(view_name) };
        let text = sound(&fixture::typical(), &options, &FILE);
        let row = text.lines().skip_while(|line| !line.starts_with("──")).nth(1);
        row.and_then(|row| row.split_whitespace().last()).expect("a row").to_owned()
    };
    assert_eq!(first("paths", None), "main");
    assert_eq!(first("paths", Some("total")), "main");
    assert_eq!(first("paths", Some("calls")), "parse_header");
    assert_eq!(first("counts", None), "parse_header");
    assert_eq!(first("counts", Some("total")), "main");
}

#[test]
fn what_needs_every_call_says_how_to_get_them() {
    for name in ViewName::all() {
        let error = view(&name.to_string()).check_intervals().err().map(|error| error.to_string());
        let needs = ["trend", "calls", "values", "wakers", "plots", "locks", "frames", "timeline"]
            .contains(&name.to_string().as_str());
        assert_eq!(error.is_some(), needs, "{name}");
        let report = format!("`ctrace report trace.ctrace --view {name} --interval SECONDS`");
        assert!(
            error.is_none_or(|error| error.contains("`ctrace record`") && error.contains(&report))
        );
    }
}

#[test]
fn a_report_holds_what_its_views_need() {
    let nothing = ViewOptions::default().extras(Some(80));
    assert_eq!(nothing, Extras { slices: 70, ..Extras::default() });
    let all = ViewOptions { views: ViewName::all().collect(), top: Some(3), ..view("hist") };
    let all = all.extras(None);
    assert!(all.histograms && all.path_histograms && all.ctrack);
    assert_eq!((all.slowest_calls, all.timeline_lanes), (Some(3), Some(3)));
    assert_eq!(view("calls").extras(None).slowest_calls, Some(10));
}

#[test]
fn what_is_asked_wrongly() {
    let sort = ViewOptions { sort: Some("colour".to_owned()), ..view("threads") };
    let error = render_table(&fixture::typical(), &sort, &FILE).expect_err("no such column");
    assert_eq!(
        error.to_string(),
        "cannot sort by 'colour': choose one of calls, first, last, pid, tid, name"
    );
    let error = "pie".parse::<ViewName>().expect_err("no such view");
    assert!(error.to_string().contains(
        "summary, detail, tree, paths, counts, hist, trend, calls, values, wakers, plots, locks, frames, \
         timeline, threads, ctrack"
    ));
    let two = ViewOptions { views: ViewName::all().collect(), ..ViewOptions::default() };
    let error = render_csv(&fixture::typical(), &two).expect_err("too many views");
    assert_eq!(error, ViewError::OneViewForCsv { given: ViewName::all().count() });
}

#[test]
fn more_than_the_whole_time_is_explained() {
    let mut report = fixture::typical();
    let text = sound(&report, &view("tree"), &WIDE);
    assert!(!text.contains("of time: "), "{text}");
    report.duration_ns = Nanos(report.duration_ns.0 / 2);
    let text = sound(&report, &view("tree"), &WIDE);
    assert!(text.contains("200.00%") && text.contains("of time: "), "{text}");
}

/// As many functions as one attach may select: the time grows with the rows, not their square.
#[test]
fn many_functions() {
    let mut report = fixture::typical();
    let duration = report.duration_ns;
    report.functions = (0..5_000)
        .map(|i| fixture::function(&format!("module_{}::function_{i}", i % 40), i, 1_000, duration))
        .collect();
    let all = ViewOptions { top: Some(5_000), ..view("detail") };
    assert!(sound(&report, &all, &WIDE).lines().count() > 2 * 4_999);
    let text = sound(&report, &ViewOptions::default(), &WIDE);
    assert!(text.contains("4,959 functions not shown"), "{text}");
    assert!(text.contains("1 selected function was not called while traced: "));
}
