//! Tests of the tree and the paths: the chosen row, folding, other roots.

use super::{SECOND, fixture, model_of, nth, press, screen, snapshot, typed};
use crate::top::model::Model;
use ctrace_core::{report::Report, units::Nanos};
use ratatui::crossterm::event::KeyCode::{self, Char, Down, End, Enter, Left, Right, Up};
use std::time::{Duration, Instant};

/// `main` calls `work` and `idle`, and both call `read`, which calls `copy`.
fn report() -> Report {
    let mut report = fixture::empty();
    for (name, calls) in [("main", 1), ("work", 10), ("idle", 20), ("read", 70), ("copy", 300)] {
        let of = fixture::function(name, calls, 1_000_000, report.duration_ns);
        report.functions.push(of);
    }
    let main = fixture::path(&mut report, None, "main", 1, 9_000_000_000);
    let work = fixture::path(&mut report, Some(main), "work", 10, 5_000_000_000);
    let idle = fixture::path(&mut report, Some(main), "idle", 20, 3_000_000_000);
    let read = fixture::path(&mut report, Some(work), "read", 30, 2_000_000_000);
    fixture::path(&mut report, Some(read), "copy", 100, 700_000_000);
    let read = fixture::path(&mut report, Some(idle), "read", 40, 1_000_000_000);
    fixture::path(&mut report, Some(read), "copy", 200, 400_000_000);
    report
}

fn in_tree(report: &Report) -> Model {
    let mut model = model_of(report);
    press(&mut model, Char('t'));
    model
}

/// Returns the names of the rows from top to bottom, the chosen one with its mark.
fn rows(model: &mut Model) -> Vec<String> {
    let screen = screen(model, 100, 30);
    let rows = screen.lines().skip(5).take_while(|line| !line.is_empty());
    rows.map(|line| {
        let mark = if line.starts_with('›') { "›" } else { "" };
        let name = line.split("%  ").nth(1).expect("a row");
        format!("{mark}{}", name.trim_start_matches(['├', '└', '│', '─', ' ']))
    })
    .collect()
}

fn chosen(model: &mut Model) -> String {
    let rows = rows(model);
    let chosen: Vec<_> = rows.iter().filter_map(|row| row.strip_prefix('›')).collect();
    assert_eq!(chosen.len(), 1, "{rows:?}");
    chosen[0].to_owned()
}

fn keys(model: &mut Model, keys: &[KeyCode]) {
    keys.iter().for_each(|key| {
        press(model, *key);
    });
}

#[test]
fn keys_choose_a_row() {
    let mut model = in_tree(&report());
    assert_eq!(rows(&mut model), ["›main", "work", "read", "copy", "idle", "read", "copy"]);
    keys(&mut model, &[Down, Down]);
    assert_eq!(rows(&mut model), ["main", "work", "›read", "copy", "idle", "read", "copy"]);
    keys(&mut model, &[End, Up]);
    assert_eq!(rows(&mut model), ["main", "work", "read", "copy", "idle", "›read", "copy"]);
    keys(&mut model, &[KeyCode::Home]);
    assert_eq!(chosen(&mut model), "main");
    keys(&mut model, &[KeyCode::PageDown]);
    assert_eq!(rows(&mut model).last().map(String::as_str), Some("›copy"));
}

#[test]
fn rows_are_folded_and_unfolded() {
    let mut model = in_tree(&report());
    keys(&mut model, &[Down, Enter]);
    assert_eq!(rows(&mut model), ["main", "›work (+2)", "idle", "read", "copy"]);
    // The row below is the next that is shown.
    keys(&mut model, &[Down]);
    assert_eq!(chosen(&mut model), "idle");
    keys(&mut model, &[Up, Right]);
    assert_eq!(rows(&mut model), ["main", "›work", "read", "copy", "idle", "read", "copy"]);
    // Then to what is below, and back.
    keys(&mut model, &[Right, Right]);
    assert_eq!(chosen(&mut model), "copy");
    keys(&mut model, &[Left]);
    assert_eq!(chosen(&mut model), "read");
    keys(&mut model, &[Left]);
    assert_eq!(rows(&mut model)[..4], ["main", "work", "›read (+1)", "idle"]);
    keys(&mut model, &[Left, Left]);
    assert_eq!(rows(&mut model), ["main", "›work (+2)", "idle", "read", "copy"]);
    // What is folded inside of it stays folded.
    keys(&mut model, &[Enter]);
    assert_eq!(rows(&mut model)[..4], ["main", "›work", "read (+1)", "idle"]);
}

/// New numbers bring another order; the chosen path stays chosen, and the folded one folded.
#[test]
fn an_interval_moves_neither_the_choice_nor_folds() {
    let mut model = in_tree(&report());
    keys(&mut model, &[Down, Enter, Down, Down, Down]);
    assert_eq!(rows(&mut model), ["main", "work (+2)", "idle", "read", "›copy"]);
    let mut other = nth(&report(), 2);
    // Now `idle` takes more than `work`, and the paths are elsewhere in the report.
    other.paths[2].total_ns = Nanos(8_000_000_000);
    other.functions.swap(3, 4);
    other.paths.iter_mut().for_each(|path| {
        path.function = [0, 1, 2, 4, 3][path.function];
    });
    model.add(vec![snapshot(other, 3 * SECOND)], 0);
    assert_eq!(rows(&mut model), ["main", "idle", "read", "›copy", "work (+2)"]);

    // An interval without the path shows the nearest row above, and remembers the choice.
    let mut without = nth(&report(), 3);
    without.paths.truncate(4);
    model.add(vec![snapshot(without, 4 * SECOND)], 0);
    assert_eq!(rows(&mut model), ["main", "work (+1)", "›idle"]);
    model.add(vec![snapshot(nth(&report(), 4), 5 * SECOND)], 0);
    assert_eq!(rows(&mut model), ["main", "work (+2)", "idle", "read", "›copy"]);
    // All since the start has the same rows.
    keys(&mut model, &[Char('c')]);
    assert_eq!(chosen(&mut model), "copy");
}

#[test]
fn a_function_becomes_the_root_and_back() {
    let mut model = in_tree(&report());
    keys(&mut model, &[Down, Down, Char('i')]);
    // Both paths to `read` are one tree, with the sums of both.
    assert_eq!(rows(&mut model), ["›read", "copy"]);
    let text = screen(&mut model, 100, 30);
    assert!(text.contains(" · below read"), "{text}");
    assert!(text.lines().any(|l| l.contains("3.00 s") && l.ends_with("read")), "{text}");
    assert!(text.lines().any(|l| l.contains("1.10 s") && l.ends_with("copy")), "{text}");
    keys(&mut model, &[Enter]);
    assert_eq!(rows(&mut model), ["›read (+1)"]);
    keys(&mut model, &[Char('u')]);
    assert_eq!(rows(&mut model)[2], "›read");
    keys(&mut model, &[Char('u')]);
    assert!(screen(&mut model, 100, 30).contains("no tree to go back to"));
}

#[test]
fn another_view_between_is_no_end_of_the_tree() {
    let mut model = in_tree(&report());
    let whole = rows(&mut model);
    keys(&mut model, &[Char('i'), Char('w'), Char('f'), Char('u')]);
    assert_eq!(chosen(&mut model), "main");
    assert!(screen(&mut model, 100, 30).contains(" · below main"));
    keys(&mut model, &[Char('p'), Char('u')]);
    assert_eq!(rows(&mut model), whole);
}

#[test]
fn callers_are_a_tree_upside_down() {
    let mut model = in_tree(&report());
    keys(&mut model, &[End, Char('w')]);
    let expected = ["›copy", "read", "work", "main", "idle", "main"];
    assert_eq!(rows(&mut model), expected);
    let text = screen(&mut model, 100, 30);
    assert!(text.contains(" · callers of copy"), "{text}");
    // 200 of its 300 calls were made below `idle`.
    assert!(text.lines().any(|l| l.contains(" 300 ") && l.ends_with(" copy")), "{text}");
    assert!(text.lines().any(|l| l.contains(" 200 ") && l.ends_with(" idle")), "{text}");
    // From there to what `idle` calls.
    keys(&mut model, &[Down, Down, Down, Down, Char('i')]);
    assert_eq!(rows(&mut model), ["›idle", "read", "copy"]);
    keys(&mut model, &[Char('u')]);
    assert_eq!(chosen(&mut model), "idle");
    // Also from the table of functions.
    keys(&mut model, &[Char('u'), Char('f'), Char('n'), Char('w')]);
    assert_eq!(rows(&mut model), expected);
}

#[test]
fn recursion_counts_the_outermost_calls_below_and_all_calls_above() {
    let report = fixture::recursion(4);
    let mut model = in_tree(&report);
    keys(&mut model, &[Down, Char('i')]);
    let text = screen(&mut model, 100, 30);
    assert_eq!(rows(&mut model).len(), 4);
    assert!(text.lines().any(|l| l.contains("4.00 µs") && l.contains(" 1 ")), "{text}");
    keys(&mut model, &[Char('w')]);
    let text = screen(&mut model, 100, 30);
    // 4 + 3 + 2 + 1, as in the table of functions.
    assert!(text.lines().any(|l| l.contains("10.0 µs") && l.contains(" 4 ")), "{text}");
}

#[test]
fn a_path_is_chosen_and_shown_in_the_tree() {
    let mut model = model_of(&report());
    press(&mut model, Char('p'));
    let chosen_path = |model: &mut Model| {
        let screen = screen(model, 120, 30);
        let line = screen.lines().find(|line| line.starts_with('›')).expect("a row").to_owned();
        line.rsplit("  ").next().expect("a path").to_owned()
    };
    assert_eq!(chosen_path(&mut model), "main");
    keys(&mut model, &[Down, Down, Down]);
    assert_eq!(chosen_path(&mut model), "main → work → read");
    // The tree has the same choice, also where it was folded.
    keys(&mut model, &[Char('t')]);
    assert_eq!(chosen(&mut model), "read");
    keys(&mut model, &[Left, Left, Left, Char('p'), Down, Down, Enter]);
    assert_eq!(rows(&mut model)[2], "›read (+1)");
    keys(&mut model, &[Char('p'), Char('w')]);
    assert_eq!(rows(&mut model)[0], "›read");
}

#[test]
fn the_filter_keeps_callers_and_callees_in_every_tree() {
    let mut model = in_tree(&report());
    typed(&mut model, "/idle");
    press(&mut model, Enter);
    assert_eq!(rows(&mut model), ["›main", "idle", "read", "copy"]);
    keys(&mut model, &[End, Char('w')]);
    assert_eq!(rows(&mut model), ["›copy", "read", "idle", "main"]);
}

/// As many paths as the engine keeps at most, and as deep.
#[test]
fn a_huge_tree_costs_a_bounded_time() {
    let mut report = fixture::empty();
    for name in 0..64 {
        let of = fixture::function(&format!("f{name}"), 9, 1_000, report.duration_ns);
        report.functions.push(of);
    }
    for n in 0..16_384_usize {
        let parent = (n % 512 > 0).then(|| n - 1);
        let total = (20_000 - n) as u64 * 100;
        let mut path = fixture::recursion(1).paths.remove(0);
        (path.parent, path.function, path.total_ns) = (parent, n % 512 % 3, Nanos(total));
        path.function += n / 512;
        path.path.clear();
        report.paths.push(path);
    }
    let mut model = in_tree(&report);
    let begun = Instant::now();
    let mut frames = 0;
    for keys in [[End, Left, Up], [Char('w'), End, Left], [Char('i'), Down, Right]] {
        for key in keys {
            press(&mut model, key);
            screen(&mut model, 120, 40);
            frames += 1;
        }
    }
    assert!(screen(&mut model, 120, 40).contains('›'));
    // A frame takes some ms; the limit is for slow machines that do not optimize.
    assert!(begun.elapsed() < Duration::from_secs(1) * frames, "{:?}", begun.elapsed());
    keys(&mut model, &[Char('u'), Char('u'), Char('t')]);
    assert!(screen(&mut model, 120, 40).contains("rows not shown"));
}
