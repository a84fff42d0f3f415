//! Two recordings that are compared: what is served where, and the verdicts.

use super::points_tests::{with_points, with_points_from};
use super::tests::{Served, demo, squeezed};
use crate::ui::{DiffOptions, DiffView, Style, render_diff};
use ctrace_core::{
    diff::{ComparedFile, Content, Options as Judging, RowSelection, diff},
    recording::replay::Query,
};
use serde_json::Value;

const MS: u64 = 1_000_000;

#[test]
fn the_verdicts_are_those_of_the_command() {
    let served = Served::compared(with_points(), demo(), None);
    let (query, [old, new]) = (Query::default(), [with_points(), demo()]);
    let file = |recording, file: &str| ComparedFile {
        file: file.to_owned(),
        content: Content::Recording { recording, query: &query },
    };
    let found = diff(&[file(&old, "old.ctrace")], &[file(&new, "new.ctrace")], &Judging::default());
    let options =
        DiffOptions { views: vec![DiffView::Functions], selection: RowSelection::default() };
    let printed = render_diff(&found, &options, &Style::default());
    let verdicts = served.json("api/verdicts");
    let rows = verdicts["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), found.functions.len());
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let mut sides = Vec::new();
    for row in rows {
        let name = text(&row["name"]);
        let is_there = |line: &str| squeezed(line).starts_with(&name);
        assert!(printed.lines().any(is_there), "{name}\n{printed}");
        let side = row["verdict"].as_str().and_then(|verdict| verdict.strip_prefix("only in "));
        let side = side.expect("no function is on both sides");
        let id = row[side][0].as_u64().expect("an id") as usize;
        assert_eq!(served.json(&format!("{side}/api/about"))["functions"][id]["name"], name);
        sides.push(side);
    }
    assert!(sides.contains(&"old") && sides.contains(&"new"), "{sides:?}");
    let remarks = verdicts["remarks"].as_array().expect("sentences").iter().map(text);
    for remark in remarks {
        assert!(squeezed(&printed).contains(&squeezed(&remark)), "{remark}\n{printed}");
    }
}

#[test]
fn verdicts_have_the_words_and_numbers_of_the_command() {
    let served = Served::compared(demo(), demo(), None);
    let query = Query::default();
    let (old, new) = (demo(), demo());
    let [old, new] = [&old, &new].map(|recording| {
        let content = Content::Recording { recording, query: &query };
        [ComparedFile { file: String::new(), content }]
    });
    let found = diff(&old, &new, &Judging::default());
    let options =
        DiffOptions { views: vec![DiffView::Functions], selection: RowSelection::default() };
    let printed = render_diff(&found, &options, &Style::default());
    let lines: Vec<String> = printed.replace('│', " ").lines().map(squeezed).collect();
    let verdicts = served.json("api/verdicts");
    for row in verdicts["rows"].as_array().expect("rows") {
        let numbers = row["numbers"].as_array().expect("numbers");
        let cells = [&row["name"], &row["verdict"]].into_iter().chain(&numbers[..4]);
        let cells: Vec<&str> = cells.map(|cell| cell.as_str().expect("a text")).collect();
        let expected = squeezed(&cells.join(" "));
        assert!(lines.iter().any(|line| line.starts_with(&expected)), "{expected}\n{printed}");
    }
}

#[test]
fn each_of_two_recordings_has_its_own_answers() {
    let served = Served::compared(with_points(), with_points_from(130 * MS), None);
    let length = |side: &str| served.json(&format!("{side}/api/about"))["length_ns"].clone();
    assert_eq!((length("old"), length("new")), ((1_001 * MS).into(), (1_131 * MS).into()));
    let page = |path: &str| String::from_utf8_lossy(&served.body(path)).into_owned();
    assert!(page("").contains("compare.js") && page("old/").contains("main.js"));
    assert!(page("new/main.js") == page("main.js"));
    for path in ["api/about", "api/", "new/api/verdicts", "other/api/about", "old/old/"] {
        assert!(served.get(path).starts_with(b"HTTP/1.1 404 "), "{path}");
    }
    let nth = |side: &str, n: u64| format!("{side}/api/nth?text=picture&n={n}");
    assert_eq!(served.json(&nth("old", 2))["start_ns"], 500 * MS + 5);
    assert_eq!(served.json(&nth("new", 2))["start_ns"], 630 * MS + 5);
    let few = String::from_utf8_lossy(&served.get(&nth("new", 5))).into_owned();
    assert!(few.starts_with("HTTP/1.1 400 ") && few.contains("only 4 such calls"), "{few}");
}
