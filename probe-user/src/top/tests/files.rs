//! Tests of exported files.

use super::{model, press, typed};
use crate::top::{
    export,
    format::Format,
    model::{Effect, View},
};
use ratatui::crossterm::event::KeyCode;

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
    // The matching function, and those on its paths.
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
