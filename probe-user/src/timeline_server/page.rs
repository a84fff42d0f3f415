//! The files of the page.

use super::answer::{answer, refused};
use crate::connections::http::Answer;
use hyper::StatusCode;
use std::path::PathBuf;

struct PageFile {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! file {
    ($name:literal, $kind:expr) => {
        PageFile { name: $name, kind: $kind, text: include_str!(concat!("page/", $name)) }
    };
}

/// All files; the first is the page itself.
const FILES: [PageFile; 29] = [
    file!("index.html", "text/html; charset=utf-8"),
    file!("style.css", "text/css; charset=utf-8"),
    file!("icon.svg", "image/svg+xml"),
    file!("main.js", SCRIPT),
    file!("live.js", SCRIPT),
    file!("data.js", SCRIPT),
    file!("draw.js", SCRIPT),
    file!("compare.html", "text/html; charset=utf-8"),
    file!("compare.js", SCRIPT),
    file!("address.js", SCRIPT),
    file!("colours.js", SCRIPT),
    file!("commands.js", SCRIPT),
    file!("format.js", SCRIPT),
    file!("frames.js", SCRIPT),
    file!("histogram.js", SCRIPT),
    file!("image.js", SCRIPT),
    file!("keys.js", SCRIPT),
    file!("levels.js", SCRIPT),
    file!("lit.js", SCRIPT),
    file!("lost.js", SCRIPT),
    file!("names.js", SCRIPT),
    file!("panel.js", SCRIPT),
    file!("pointer.js", SCRIPT),
    file!("points.js", SCRIPT),
    file!("reading.js", SCRIPT),
    file!("rows.js", SCRIPT),
    file!("search.js", SCRIPT),
    file!("threads.js", SCRIPT),
    file!("view.js", SCRIPT),
];

/// Returns the names of all files.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| file.name)
}

/// The source of the files.
pub(super) struct Page {
    /// A folder, for those who work on the page. Otherwise they are in the program.
    folder: Option<PathBuf>,
}

impl Page {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    /// Answers with a file. Only known names are served, from a folder, too.
    pub(super) fn file(&self, path: &str) -> Answer {
        let name = if path.is_empty() { FILES[0].name } else { path };
        let Some(file) = FILES.iter().find(|file| file.name == name) else {
            return refused(StatusCode::NOT_FOUND, "there is no such file\n");
        };
        match &self.folder {
            None => answer(file.kind, file.text),
            Some(folder) => match std::fs::read(folder.join(file.name)) {
                Ok(text) => answer(file.kind, text),
                Err(error) => {
                    refused(StatusCode::NOT_FOUND, format!("cannot read {}: {error}\n", file.name))
                }
            },
        }
    }
}
