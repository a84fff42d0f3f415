//! The questions about a recording whose calls were all read, and their answers.

use super::{
    answer::{BINARY, answer, as_json},
    call::{CallJson, NearJson},
    params::Params,
    picture::{encode, stretch, time, view},
    points::PointsJson,
    range::RangeJson,
};
use crate::{
    connections::http::Answer,
    session::keep::replayed::{CENTER, report_of},
    target::select::{Patterns, recorded::choose},
};
use ctrace_core::{
    recording::{Recording, replay::Query},
    report::Extras,
    stop::Stop,
    timeline::{RowKey, Timeline},
    units::{Nanos, ThreadId},
};
use serde::Serialize;
use std::ops::Range;

/// Said to nobody.
const STOPPED: &str = "the page does not wait for it any more";

pub(super) type Result<T> = std::result::Result<T, String>;

#[derive(Serialize)]
struct HitsJson {
    functions: Vec<usize>,
    count: u64,
    columns: Vec<u64>,
    longest: Vec<CallJson>,
}

/// A question. If it is stopped, the answer is worth nothing.
pub(super) struct Asked<'a> {
    pub(super) recording: &'a Recording,
    pub(super) timeline: &'a Timeline,
    pub(super) params: Params<'a>,
    pub(super) stop: &'a Stop,
}

impl Asked<'_> {
    fn start(&self) -> Nanos {
        self.recording.period().0
    }

    fn stretch(&self) -> Result<Range<Nanos>> {
        stretch(&self.params, self.start())
    }

    fn columns(&self) -> Result<usize> {
        self.params.number("columns")
    }

    fn thread(&self) -> Result<ThreadId> {
        self.params.number("thread").map(ThreadId)
    }

    pub(super) fn picture(&self) -> Result<Answer> {
        let view = view(&self.params, self.start())?;
        let picture = self.timeline.picture(self.recording, &view, self.stop).ok_or(STOPPED)?;
        Ok(answer(BINARY, encode(&picture, &view, self.start(), self.recording)))
    }

    pub(super) fn call(&self) -> Result<Answer> {
        let row = RowKey { thread: self.thread()?, depth: self.params.number("depth")? };
        let at = time(&self.params, "time", self.start())?;
        let slack = self.params.number("slack")?;
        let near = self.timeline.near(self.recording, row, at, slack, self.stop);
        Ok(as_json(&near.map(|near| NearJson::new(self.recording, near))))
    }

    /// Answers with the messages of some threads, the plots and the frame marks of a stretch of time.
    pub(super) fn points(&self) -> Result<Answer> {
        let threads = self.params.text("threads")?;
        let threads = threads.split(',').filter(|part| !part.is_empty()).map(|part| {
            part.parse().map(ThreadId).map_err(|_| "threads has no numbers".to_owned())
        });
        let threads: Vec<ThreadId> = threads.collect::<Result<_>>()?;
        let (time, columns) = (self.stretch()?, self.columns()?);
        let points = self.timeline.points(self.recording, &threads, time, columns, self.stop);
        Ok(as_json(&PointsJson::new(self.recording, points)))
    }

    /// Answers with the texts of a thread's messages.
    pub(super) fn messages(&self) -> Result<Answer> {
        let (thread, time) = (self.thread()?, self.stretch()?);
        Ok(as_json(&self.timeline.messages(self.recording, thread, time, self.stop)))
    }

    /// Answers with the report of a range: that of `ctrace report --time`.
    pub(super) fn report(&self) -> Result<Answer> {
        let (start, end) = self.recording.period();
        let window = self.stretch()?;
        if window.start >= end || window.end <= start {
            return Err("the range is outside of the recording".to_owned());
        }
        let window = window.start.max(start)..window.end.min(end);
        let query = Query { window: Some(window), stop: self.stop.clone(), ..Query::default() };
        let report = report_of(self.recording, &query, CENTER, Extras::default());
        Ok(as_json(&RangeJson::new(&report)))
    }

    pub(super) fn find(&self) -> Result<Answer> {
        let texts = [self.params.text("text")?];
        let patterns = Patterns { functions: &texts, ..Patterns::default() };
        let chosen = choose(self.recording.functions(), &patterns);
        let chosen = chosen.map_err(|error| format!("{error:#}"))?;
        let (time, columns) = (self.stretch()?, self.columns()?);
        let hits = self.timeline.hits(self.recording, &chosen, time, columns, self.stop);
        let longest = hits.longest.iter();
        Ok(as_json(&HitsJson {
            functions: (0..chosen.len()).filter(|id| chosen[*id]).collect(),
            count: hits.count,
            columns: hits.columns,
            longest: longest.map(|(row, span)| CallJson::new(self.recording, *row, span)).collect(),
        }))
    }
}
