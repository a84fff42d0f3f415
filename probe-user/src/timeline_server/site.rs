//! What is served: one timeline, or two that are compared.
//!
//! Of two, each is served as one alone would be, below `old/` and `new/`. The page above them has both in frames.

use super::{
    answer::as_json,
    api::{Api, reading},
    shown::Source,
};
use crate::{connections::http::Answer, ui::verdicts::VerdictSheet};
use ctrace_core::{
    diff::{ComparedFile, Content, Options, diff},
    recording::replay::Query,
};
use std::sync::{Arc, OnceLock};

/// Functions in the table of verdicts on each kind: on both sides, and on one.
const MOST_ROWS: usize = 200;

pub(super) enum Site {
    One(Arc<Api>),
    Two { old: Arc<Api>, new: Arc<Api>, verdicts: Arc<Verdicts> },
}

/// What a path leads to.
pub(super) enum Found<'a> {
    /// A file of the page; the empty name is the page itself.
    File(&'a str),
    /// An answer about a recording.
    Answer(&'a Arc<Api>, &'a str),
    /// The verdicts on the functions of both recordings.
    Verdicts(&'a Verdicts),
}

impl Site {
    /// Returns what a path behind the token leads to.
    pub(super) fn find<'a>(&'a self, path: &'a str) -> Found<'a> {
        let of = |api: &'a Arc<Api>, path: &'a str| match path.strip_prefix("api/") {
            Some(name) => Found::Answer(api, name),
            None => Found::File(path),
        };
        match self {
            Self::One(api) => of(api, path),
            Self::Two { old, new, verdicts } => match path.split_once('/') {
                Some(("old", path)) => of(old, path),
                Some(("new", path)) => of(new, path),
                _ if path.is_empty() => Found::File("compare.html"),
                _ if path == "api/verdicts" => Found::Verdicts(verdicts),
                _ => Found::File(path),
            },
        }
    }
}

/// The verdicts of `ctrace diff` on two recordings, as soon as they are known.
#[derive(Default)]
pub(super) struct Verdicts(OnceLock<VerdictSheet>);

impl Verdicts {
    /// Compares two recordings, each with its files' names.
    pub(super) fn find(&self, old: (&Source, String), new: (&Source, String)) {
        let query = Query::default();
        let [old, new] = [old, new].map(|(source, file)| {
            let content = Content::Recording { recording: &source.recording, query: &query };
            [ComparedFile { file, content }]
        });
        let found = diff(&old, &new, &Options::default());
        // Only one thread sets it.
        let _ = self.0.set(VerdictSheet::new(&found, MOST_ROWS));
    }

    pub(super) fn answer(&self) -> Answer {
        self.0.get().map_or_else(|| reading(0, 0), as_json)
    }
}
