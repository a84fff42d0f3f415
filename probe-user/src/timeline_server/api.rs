//! The answers about a recording, or about the newest calls of a session.

use super::{
    answer::{BINARY, JSON, answer, refused},
    call::{CallJson, NearJson},
    params::Params,
    picture::{encode, stretch, time, view},
    points::PointsJson,
    range::RangeJson,
    shown::{Shown, Source},
};
use crate::{
    connections::http::Answer,
    session::keep::replayed::{CENTER, report_of},
    target::select::{Patterns, recorded::choose},
    ui::{text::names::plain, tone_of},
};
use ctrace_core::{
    recording::replay::{OwnThreads, Query},
    report::{Extras, render::json},
    stop::Stop,
    timeline::{About, RowKey, Timeline},
    units::ThreadId,
};
use hyper::StatusCode;
use serde::Serialize;
use std::sync::{Arc, atomic::Ordering};

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
    /// Their names without parameters, for narrow calls.
    short: Vec<String>,
    /// The recording's files, as words of a shell.
    files: &'a str,
    /// True if there may be messages, plots or frame marks.
    has_points: bool,
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

#[derive(Serialize)]
struct HitsJson {
    functions: Vec<usize>,
    count: u64,
    columns: Vec<u64>,
    longest: Vec<CallJson>,
}

/// Said to nobody.
const STOPPED: &str = "the page does not wait for it any more";

type Result<T> = std::result::Result<T, String>;

impl Api {
    pub(super) fn new(shown: Arc<Shown>, threads: OwnThreads, files: &[String]) -> Self {
        let files: Vec<String> = files.iter().map(|file| quoted(file)).collect();
        Self { shown, threads, files: files.join(" ") }
    }

    /// Answers a request by its name and parameters. If it is stopped, the answer is worth nothing.
    pub(super) fn answer(&self, name: &str, query: &str, stop: &Stop) -> Answer {
        let params = Params(query);
        let Some(source) = self.shown.now() else { return reading(0, 0) };
        let source = &*source;
        let answered = match source.timeline.get() {
            None => Ok(still_reading(source)),
            Some(Err(error)) => Err(error.to_string()),
            Some(Ok(timeline)) => match name {
                "about" => Ok(self.about(source, timeline)),
                "picture" => self.threads.run(|| picture_of(source, timeline, &params, stop)),
                "call" => self.threads.run(|| call_of(source, timeline, &params, stop)),
                "report" => report(source, &params, stop),
                "points" => points_of(source, timeline, &params, stop),
                "messages" => messages_of(source, timeline, &params, stop),
                "find" => find(source, timeline, &params, stop),
                _ => return refused(StatusCode::NOT_FOUND, "there is no such answer\n"),
            },
        };
        answered.unwrap_or_else(|why| refused(StatusCode::BAD_REQUEST, format!("{why}\n")))
    }

    fn about(&self, source: &Source, timeline: &Timeline) -> Answer {
        let recording = &source.recording;
        let about = timeline.about(recording);
        let colours = about.functions.iter().map(|function| tone_of(&function.name)).collect();
        let short = about.functions.iter().map(|function| plain(&function.name)).collect();
        let live = self.shown.has_ended().map(|has_ended| {
            let (start, end) = recording.period();
            let kept_from = recording.chunks().first().map_or(end, |chunk| chunk.from);
            LiveJson { has_ended, kept_from_ns: kept_from.since(start).0 }
        });
        let has_points = recording.functions().iter().any(|function| function.point.is_some());
        as_json(&AboutJson { about, colours, short, files: &self.files, has_points, live })
    }
}

fn still_reading(source: &Source) -> Answer {
    let all: u64 = source.recording.chunks().iter().map(|chunk| chunk.calls).sum();
    reading(source.read.load(Ordering::Relaxed), all)
}

/// Tells how many calls were read.
fn reading(read: u64, all: u64) -> Answer {
    let mut answer = as_json(&serde_json::json!({ "read": read, "calls": all }));
    *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    answer
}

fn picture_of(
    source: &Source,
    timeline: &Timeline,
    params: &Params<'_>,
    stop: &Stop,
) -> Result<Answer> {
    let recording = &source.recording;
    let start = recording.period().0;
    let view = view(params, start)?;
    let picture = timeline.picture(recording, &view, stop).ok_or(STOPPED)?;
    Ok(answer(BINARY, encode(&picture, &view, start, recording)))
}

fn call_of(
    source: &Source,
    timeline: &Timeline,
    params: &Params<'_>,
    stop: &Stop,
) -> Result<Answer> {
    let recording = &source.recording;
    let row = RowKey { thread: ThreadId(params.number("thread")?), depth: params.number("depth")? };
    let at = time(params, "time", recording.period().0)?;
    let near = timeline.near(recording, row, at, params.number("slack")?, stop);
    Ok(as_json(&near.map(|near| NearJson::new(recording, near))))
}

/// Answers with the messages of some threads, the plots and the frame marks of a stretch of time.
fn points_of(
    source: &Source,
    timeline: &Timeline,
    params: &Params<'_>,
    stop: &Stop,
) -> Result<Answer> {
    let recording = &source.recording;
    let threads = params.text("threads")?;
    let threads = threads
        .split(',')
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().map(ThreadId).map_err(|_| "threads has no numbers".to_owned()));
    let threads: Vec<ThreadId> = threads.collect::<Result<_>>()?;
    let time = stretch(params, recording.period().0)?;
    let points = timeline.points(recording, &threads, time, params.number("columns")?, stop);
    Ok(as_json(&PointsJson::new(recording, points)))
}

/// Answers with the texts of a thread's messages.
fn messages_of(
    source: &Source,
    timeline: &Timeline,
    params: &Params<'_>,
    stop: &Stop,
) -> Result<Answer> {
    let recording = &source.recording;
    let time = stretch(params, recording.period().0)?;
    let thread = ThreadId(params.number("thread")?);
    Ok(as_json(&timeline.messages(recording, thread, time, stop)))
}

/// Answers with the report of a range: that of `ctrace report --time`.
fn report(source: &Source, params: &Params<'_>, stop: &Stop) -> Result<Answer> {
    let (start, end) = source.recording.period();
    let window = stretch(params, start)?;
    if window.start >= end || window.end <= start {
        return Err("the range is outside of the recording".to_owned());
    }
    let window = window.start.max(start)..window.end.min(end);
    let query = Query { window: Some(window), stop: stop.clone(), ..Query::default() };
    let report = report_of(&source.recording, &query, CENTER, Extras::default());
    Ok(as_json(&RangeJson::new(&report)))
}

fn find(source: &Source, timeline: &Timeline, params: &Params<'_>, stop: &Stop) -> Result<Answer> {
    let recording = &source.recording;
    let texts = [params.text("text")?];
    let patterns = Patterns { functions: &texts, ..Patterns::default() };
    let chosen = choose(recording.functions(), &patterns).map_err(|error| format!("{error:#}"))?;
    let columns = params.number("columns")?;
    let time = stretch(params, recording.period().0)?;
    let hits = timeline.hits(recording, &chosen, time, columns, stop);
    let longest = hits.longest.iter();
    Ok(as_json(&HitsJson {
        functions: (0..chosen.len()).filter(|id| chosen[*id]).collect(),
        count: hits.count,
        columns: hits.columns,
        longest: longest.map(|(row, span)| CallJson::new(recording, *row, span)).collect(),
    }))
}

fn as_json(value: &impl Serialize) -> Answer {
    answer(JSON, json::line(value))
}

/// Returns a file's name as a word of a shell.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}
