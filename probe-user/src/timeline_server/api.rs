//! The answers about a recording, or about the newest calls of a session.

use super::{
    answer::{as_json, refused},
    asked::Asked,
    draft,
    params::Params,
    shown::{Shown, Source},
};
use crate::{
    connections::http::Answer,
    ui::{text::names::plain, tone_of},
};
use ctrace_core::{recording::replay::OwnThreads, stop::Stop, timeline::About};
use hyper::StatusCode;
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

/// Answers requests for one recording.
pub(super) struct Api {
    shown: Arc<Shown>,
    /// Pictures and single calls do not wait for reports, searches and points.
    threads: OwnThreads,
    /// The recording's files as words of a shell.
    files: String,
}

#[derive(Serialize)]
struct AboutJson<'a> {
    #[serde(flatten)]
    about: About,
    /// The colours of the functions, red, green and blue.
    colours: Vec<[u8; 3]>,
    /// The colours of the programs and libraries.
    object_colours: BTreeMap<String, [u8; 3]>,
    /// Their names without parameters, for narrow calls.
    short: Vec<String>,
    /// The recording's files, as words of a shell.
    files: &'a str,
    /// True if there may be messages, plots or frame marks.
    has_points: bool,
    /// The functions that are marks between frames.
    frame_marks: Vec<usize>,
    /// How far the calls were read, unless all were: what is shown is estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<Reading>,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<LiveJson>,
}

/// What only a live page has.
#[derive(Serialize)]
struct LiveJson {
    /// True if the session has ended.
    has_ended: bool,
    /// The time since the start from which calls are kept.
    kept_from_ns: u64,
}

impl Api {
    pub(super) fn new(shown: Arc<Shown>, threads: OwnThreads, files: &[String]) -> Self {
        let files: Vec<String> = files.iter().map(|file| quoted(file)).collect();
        Self { shown, threads, files: files.join(" ") }
    }

    /// Answers a request by its name and parameters. If it is stopped, the answer is worth nothing.
    pub(super) fn answer(&self, name: &str, query: &str, stop: &Stop) -> Answer {
        let Some(source) = self.shown.now() else { return reading(0, 0) };
        let source = &*source;
        let answered = match source.timeline.get() {
            None => self.so_far(source, name, Params(query), stop),
            Some(Err(error)) => Err(error.to_string()),
            Some(Ok(timeline)) => {
                let asked =
                    Asked { recording: &source.recording, timeline, params: Params(query), stop };
                match name {
                    "about" => Ok(self.about(source, timeline.about(&source.recording), None)),
                    "picture" => self.threads.run(|| asked.picture()),
                    "call" => self.threads.run(|| asked.call()),
                    "report" => asked.report(),
                    "points" => asked.points(),
                    "messages" => asked.messages(),
                    "find" => asked.find(),
                    "lit" => asked.lit(),
                    "durations" => asked.durations(),
                    "frames" => asked.frames(),
                    "nth" => asked.nth(),
                    _ => return refused(StatusCode::NOT_FOUND, "there is no such answer\n"),
                }
            }
        };
        answered.unwrap_or_else(|why| refused(StatusCode::BAD_REQUEST, format!("{why}\n")))
    }

    /// Answers before all calls were read.
    fn so_far(
        &self,
        source: &Source,
        name: &str,
        params: Params<'_>,
        stop: &Stop,
    ) -> Result<Answer, String> {
        match (source.draft(), name) {
            (Some(draft), "about") => {
                let about = draft.about(&source.recording);
                Ok(self.about(source, about, Some(Reading::of(source))))
            }
            (Some(draft), "picture") => {
                self.threads.run(|| draft::picture(source, &draft, &params, stop))
            }
            _ => Ok(still_reading(source)),
        }
    }

    fn about(&self, source: &Source, about: About, reading: Option<Reading>) -> Answer {
        let recording = &source.recording;
        let own = |at: usize| recording.functions().get(at).and_then(|info| info.colour);
        let functions = about.functions.iter().enumerate();
        let colours = functions.map(|(at, function)| tone_of(&function.name, own(at))).collect();
        let objects = about.functions.iter().map(|function| &function.object);
        let object_colours = objects.map(|name| (name.clone(), tone_of(name, None))).collect();
        let short = about.functions.iter().map(|function| plain(&function.name)).collect();
        let live = self.shown.has_ended().map(|has_ended| {
            let (start, end) = recording.period();
            let kept_from = recording.chunks().first().map_or(end, |chunk| chunk.from);
            LiveJson { has_ended, kept_from_ns: kept_from.since(start).0 }
        });
        let has_points = recording.functions().iter().any(|function| function.point.is_some());
        let functions = recording.functions().iter().enumerate();
        let frame_marks = functions.filter(|(_, info)| info.marks_frames());
        let frame_marks = frame_marks.map(|(id, _)| id).collect();
        let files = &self.files;
        as_json(&AboutJson {
            about,
            colours,
            object_colours,
            short,
            files,
            has_points,
            frame_marks,
            reading,
            live,
        })
    }
}

/// How many calls were read, and the number of all.
#[derive(Serialize)]
struct Reading {
    read: u64,
    calls: u64,
}

impl Reading {
    fn of(source: &Source) -> Self {
        Self { read: source.read.load(Ordering::Relaxed), calls: source.recording.ended_calls() }
    }
}

fn still_reading(source: &Source) -> Answer {
    let Reading { read, calls } = Reading::of(source);
    reading(read, calls)
}

/// Tells how many calls were read.
pub(super) fn reading(read: u64, calls: u64) -> Answer {
    let mut answer = as_json(&Reading { read, calls });
    *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    answer
}

/// Returns a file's name as a word of a shell.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}
