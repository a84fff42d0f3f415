//! The answers about a recording.

use super::{
    Source,
    answer::{BINARY, JSON, answer, refused},
    call::{CallJson, NearJson},
    params::Params,
    picture::{encode, stretch, time, view},
    range::RangeJson,
};
use crate::{
    connections::http::Answer,
    session::keep::replayed::{CENTER, report_of},
    target::select::{Patterns, recorded::choose},
    ui::{text::names::plain, tone_of},
};
use ctrace_core::{
    recording::{
        ReadAt,
        replay::{OwnThreads, Query},
    },
    report::{Extras, render::json},
    stop::Stop,
    timeline::{About, RowKey, Timeline},
    units::{Nanos, ThreadId},
};
use hyper::StatusCode;
use serde::Serialize;
use std::sync::{Arc, atomic::Ordering};

/// Answers requests for one recording.
pub(super) struct Api<R> {
    source: Arc<Source<R>>,
    /// Pictures and single calls do not wait for reports and searches.
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

impl<R: ReadAt + Send + Sync> Api<R> {
    pub(super) fn new(source: Arc<Source<R>>, threads: OwnThreads, files: &[String]) -> Self {
        let files: Vec<String> = files.iter().map(|file| quoted(file)).collect();
        Self { source, threads, files: files.join(" ") }
    }

    /// Answers a request by its name and parameters. If it is stopped, the answer is worth nothing.
    pub(super) fn answer(&self, name: &str, query: &str, stop: &Stop) -> Answer {
        let params = Params(query);
        let answered = match self.source.timeline.get() {
            None => Ok(self.still_reading()),
            Some(Err(error)) => Err(error.to_string()),
            Some(Ok(timeline)) => match name {
                "about" => Ok(self.about(timeline)),
                "picture" => self.threads.run(|| self.picture(timeline, &params, stop)),
                "call" => self.threads.run(|| self.call(timeline, &params, stop)),
                "report" => self.report(&params, stop),
                "find" => self.find(timeline, &params, stop),
                _ => return refused(StatusCode::NOT_FOUND, "there is no such answer\n"),
            },
        };
        answered.unwrap_or_else(|why| refused(StatusCode::BAD_REQUEST, format!("{why}\n")))
    }

    fn start(&self) -> Nanos {
        self.source.recording.period().0
    }

    fn still_reading(&self) -> Answer {
        let all: u64 = self.source.recording.chunks().iter().map(|chunk| chunk.calls).sum();
        let read = self.source.read.load(Ordering::Relaxed);
        let mut answer = as_json(&serde_json::json!({ "read": read, "calls": all }));
        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        answer
    }

    fn about(&self, timeline: &Timeline) -> Answer {
        let about = timeline.about(&self.source.recording);
        let colours = about.functions.iter().map(|function| tone_of(&function.name)).collect();
        let short = about.functions.iter().map(|function| plain(&function.name)).collect();
        as_json(&AboutJson { about, colours, short, files: &self.files })
    }

    fn picture(&self, timeline: &Timeline, params: &Params<'_>, stop: &Stop) -> Result<Answer> {
        let recording = &self.source.recording;
        let view = view(params, self.start())?;
        let picture = timeline.picture(recording, &view, stop).ok_or(STOPPED)?;
        Ok(answer(BINARY, encode(&picture, &view, self.start(), recording)))
    }

    fn call(&self, timeline: &Timeline, params: &Params<'_>, stop: &Stop) -> Result<Answer> {
        let recording = &self.source.recording;
        let row =
            RowKey { thread: ThreadId(params.number("thread")?), depth: params.number("depth")? };
        let at = time(params, "time", self.start())?;
        let near = timeline.near(recording, row, at, params.number("slack")?, stop);
        Ok(as_json(&near.map(|near| NearJson::new(recording, near))))
    }

    /// Answers with the report of a range: that of `ctrace report --time`.
    fn report(&self, params: &Params<'_>, stop: &Stop) -> Result<Answer> {
        let window = stretch(params, self.start())?;
        let (start, end) = self.source.recording.period();
        if window.start >= end || window.end <= start {
            return Err("the range is outside of the recording".to_owned());
        }
        let window = window.start.max(start)..window.end.min(end);
        let query = Query { window: Some(window), stop: stop.clone(), ..Query::default() };
        let report = report_of(&self.source.recording, &query, CENTER, Extras::default());
        Ok(as_json(&RangeJson::new(&report)))
    }

    fn find(&self, timeline: &Timeline, params: &Params<'_>, stop: &Stop) -> Result<Answer> {
        let recording = &self.source.recording;
        let texts = [params.text("text")?];
        let patterns = Patterns { functions: &texts, ..Patterns::default() };
        let chosen =
            choose(recording.functions(), &patterns).map_err(|error| format!("{error:#}"))?;
        let columns = params.number("columns")?;
        let time = stretch(params, self.start())?;
        let hits = timeline.hits(recording, &chosen, time, columns, stop);
        let longest = hits.longest.iter();
        Ok(as_json(&HitsJson {
            functions: (0..chosen.len()).filter(|id| chosen[*id]).collect(),
            count: hits.count,
            columns: hits.columns,
            longest: longest.map(|(row, span)| CallJson::new(recording, *row, span)).collect(),
        }))
    }
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
