//! The questions about a recording whose calls were all read, and their answers.

use super::{
    answer::{BINARY, answer, as_json},
    call::{CallJson, NearJson},
    params::Params,
    picture::{Next, encode, stretch, time, view},
    points::PointsJson,
    range::RangeJson,
};
use crate::{
    connections::http::Answer,
    session::keep::replayed::{CENTER, report_of},
    target::select::{Patterns, recorded::choose},
};
use ctrace_core::{
    recording::{
        Recording,
        replay::{Query, frame_times},
    },
    report::{Extras, FramesAsked},
    stop::Stop,
    timeline::{Chosen, Picture, RowKey, Timeline, View},
    units::{FuncId, Nanos, ThreadId},
};
use serde::Serialize;
use serde_json::json;
use std::ops::Range;

/// Said to nobody.
pub(super) const STOPPED: &str = "the page does not wait for it any more";

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

    /// Answers with a picture. `quick=1`: with a coarser one if this one takes long.
    pub(super) fn picture(&self) -> Result<Answer> {
        let asked = view(&self.params, self.start())?;
        let view =
            if self.params.has("quick") { self.timeline.quick(&asked) } else { asked.clone() };
        let picture = self.timeline.picture(self.recording, &view, self.stop);
        let next = if view == asked { Next::None } else { Next::Finer };
        self.drawn(&view, next, picture)
    }

    fn drawn(&self, view: &View, next: Next, picture: Option<Picture>) -> Result<Answer> {
        let picture = picture.ok_or(STOPPED)?;
        Ok(answer(BINARY, encode(&picture, view, next, self.start(), self.recording)))
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
        let threads: Vec<ThreadId> =
            self.params.numbers("threads")?.into_iter().map(ThreadId).collect();
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

    /// Chooses the calls of `functions`, or of those that `text` fits: all, or those of known durations from
    /// `least` to `most`.
    fn chosen(&self) -> Result<Chosen> {
        let functions = self.recording.functions();
        let chosen = if self.params.has("functions") {
            let ids: Vec<usize> = self.params.numbers("functions")?;
            let mut chosen = vec![false; functions.len()];
            for id in ids {
                *chosen.get_mut(id).ok_or("there is no such function")? = true;
            }
            chosen
        } else {
            let texts = [self.params.text("text")?];
            let patterns = Patterns { functions: &texts, ..Patterns::default() };
            choose(functions, &patterns).map_err(|error| format!("{error:#}"))?
        };
        let (least, most) = (self.params.maybe("least")?, self.params.maybe("most")?);
        Ok(match (least, most) {
            (None, None) => Chosen::of(chosen),
            (least, most) => Chosen::of(chosen)
                .lasting(Nanos(least.unwrap_or(0))..=Nanos(most.unwrap_or(u64::MAX))),
        })
    }

    pub(super) fn find(&self) -> Result<Answer> {
        let (chosen, time, columns) = (self.chosen()?, self.stretch()?, self.columns()?);
        let hits = self.timeline.hits(self.recording, &chosen, time, columns, self.stop);
        let longest = hits.longest.iter();
        let is_chosen = |id: &usize| chosen.functions()[*id];
        Ok(as_json(&HitsJson {
            functions: (0..chosen.functions().len()).filter(is_chosen).collect(),
            count: hits.count,
            columns: hits.columns,
            longest: longest.map(|(row, span)| CallJson::new(self.recording, *row, span)).collect(),
        }))
    }

    /// Answers with the picture of chosen calls alone.
    pub(super) fn lit(&self) -> Result<Answer> {
        let (view, chosen) = (view(&self.params, self.start())?, self.chosen()?);
        let picture = self.timeline.picture_of(self.recording, &view, &chosen, self.stop);
        self.drawn(&view, Next::None, picture)
    }

    /// Answers with how long chosen calls took.
    pub(super) fn durations(&self) -> Result<Answer> {
        let (chosen, time) = (self.chosen()?, self.stretch()?);
        Ok(as_json(&self.timeline.durations(self.recording, &chosen, time, self.stop)))
    }

    /// Answers with the time at which one of the chosen calls began, by its number.
    pub(super) fn nth(&self) -> Result<Answer> {
        let (chosen, n) = (self.chosen()?, self.params.number("n")?);
        let found = self.timeline.nth(self.recording, &chosen, n, self.stop);
        let time = found.map_err(|count| match count {
            0 => "there is no such call".to_owned(),
            1 => "there is only one such call".to_owned(),
            count => format!("there are only {count} such calls"),
        })?;
        Ok(as_json(&json!({ "start_ns": time.since(self.start()) })))
    }

    /// Answers with the durations of frames over the whole time.
    pub(super) fn frames(&self) -> Result<Answer> {
        let function = FuncId(self.params.number("function")?);
        let asked = FramesAsked { function, budget: self.params.maybe("budget")?.map(Nanos) };
        let query = Query { stop: self.stop.clone(), ..Query::default() };
        let times = frame_times(self.recording, &query, asked, self.columns()?);
        Ok(as_json(&times.map_err(|error| error.to_string())?))
    }
}
