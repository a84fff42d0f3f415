//! The paths of one timeline, or of two that are compared.
//!
//! Each of two is served as one alone would be, below `old/` and `new/`. The page above them has both in frames.

use super::{
    answer::{as_json, refused},
    api::{Api, reading},
    shown::Source,
};
use crate::{connections::http::Answer, ui::verdicts::VerdictSheet};
use ctrace_core::{
    diff::{ComparedFile, Content, Options, diff},
    recording::replay::Query,
};
use hyper::StatusCode;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
};

/// Functions in the table of verdicts on each kind: on both sides, and on one.
const MOST_ROWS: usize = 200;

pub(super) enum Site {
    One(Arc<Api>),
    Two { old: Arc<Api>, new: Arc<Api>, verdicts: Arc<Verdicts> },
}

/// The thing that a path leads to.
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

/// The verdicts of `ctrace diff` on two recordings, as soon as they are known; `None` if ctrace failed.
#[derive(Default)]
pub(super) struct Verdicts(OnceLock<Option<VerdictSheet>>);

impl Verdicts {
    /// Compares two recordings, each with its files' names.
    pub(super) fn find(&self, old: (&Source, String), new: (&Source, String)) {
        let query = Query::default();
        let [old, new] = [old, new].map(|(source, file)| {
            let content = Content::Recording { recording: &source.recording, query: &query };
            [ComparedFile { file, content }]
        });
        let find = || VerdictSheet::new(&diff(&old, &new, &Options::default()), MOST_ROWS);
        // Nothing is left of a panic but the sources, which are only read. Only one thread sets it.
        let _ = self.0.set(catch_unwind(AssertUnwindSafe(find)).ok());
    }

    pub(super) fn answer(&self) -> Answer {
        match self.0.get() {
            None => reading(0, 0),
            Some(Some(sheet)) => as_json(sheet),
            Some(None) => refused(
                StatusCode::BAD_REQUEST,
                "ctrace failed while it compared the recordings: please report it\n",
            ),
        }
    }
}
