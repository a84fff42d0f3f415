//! Answers the requests of programs for CTRACK's tables.
//!
//! A thread of its own does that: to make tables takes as long as to make a report. A program can ask as
//! often as it likes, so the thread rests in between, and requests that come meanwhile get no tables.
//! `limits` keeps one program from taking all that others should have.

mod limits;

pub(crate) use self::limits::Refused;
use self::limits::{Limits, Place};
use super::spill::SoFar;
use crate::bpf::AnswerFile;
use anyhow::Context;
use ctrace_core::{
    engine::ReportMeta,
    marker::Request,
    recording::{Recording, replay::report_with},
    report::Extras,
    tables::{self, MOST_WAITING, Reason, State, TablesRequest},
};
use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel},
    thread,
    time::{Duration, Instant},
};

/// The rest after an answer, in multiples of the time that it took.
const REST: u32 = 3;
/// A request waits at most so long for the end of a rest.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time that the last answers have when the session ends.
const LAST: Duration = Duration::from_secs(1);

/// A request, and the calls so far, if all are there.
struct Asked {
    request: Request,
    calls: Option<SoFar>,
    _place: Place,
}

/// The thread that answers.
pub(crate) struct Answers {
    asked: Option<SyncSender<Asked>>,
    done: Receiver<()>,
    limits: Limits,
}

impl Answers {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let (asked, requests) = sync_channel::<Asked>(MOST_WAITING);
        let (doing, done) = channel();
        let limits = Limits::default();
        let of_thread = limits.clone();
        let run = move || {
            let mut rested = Instant::now();
            for Asked { request, calls, _place } in requests {
                let left = rested.saturating_duration_since(Instant::now());
                if left <= PATIENCE {
                    thread::sleep(left);
                }
                let begun = Instant::now();
                if let Err(error) = answer(request, calls, left > PATIENCE, &of_thread) {
                    tracing::debug!("request of process {}: {error:#}", request.pid.0);
                }
                rested = rested.max(Instant::now() + begun.elapsed() * REST);
            }
            drop(doing);
        };
        thread::Builder::new()
            .name("answers".into())
            .spawn(run)
            .context("cannot start a thread")?;
        Ok(Self { asked: Some(asked), done, limits })
    }

    /// Returns what is to be called with the calls so far. `None` if too many requests wait: this one gets no
    /// answer.
    pub(crate) fn to(
        &self,
        request: Request,
    ) -> Option<impl FnOnce(Option<SoFar>) + Send + 'static> {
        let (asked, place) = (self.asked.clone()?, self.limits.enter(request.pid)?);
        Some(move |calls| {
            // There is room for all that have a place.
            let _ = asked.try_send(Asked { request, calls, _place: place });
        })
    }

    /// Returns the number of requests that got no tables because of limits.
    pub(crate) fn refused(&self) -> Refused {
        self.limits.refused()
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.asked = None;
        if self.done.recv_timeout(LAST) == Err(RecvTimeoutError::Timeout) {
            tracing::debug!("a program gets no tables any more");
        }
    }
}

/// Answers a request, unless it is none.
fn answer(
    request: Request,
    calls: Option<SoFar>,
    is_too_often: bool,
    limits: &Limits,
) -> anyhow::Result<()> {
    let sizes = tables::LEAST_LEN..=tables::MOST_LEN;
    let Some(file) = AnswerFile::open(request.pid, request.file, sizes)? else { return Ok(()) };
    let Some(asked) = TablesRequest::read(&file.read()?) else { return Ok(()) };
    let (state, bytes) = match calls {
        _ if is_too_often => (State::Nothing, tables::nothing(Reason::TooOften)),
        None => (State::Nothing, tables::nothing(Reason::NoCalls)),
        Some(calls) => {
            tell(&file, State::Making)?;
            let made = made(request, &asked, calls, file.len() - tables::ANSWER_AT);
            if !tables::holds(&file.read()?, State::Making) {
                return Ok(());
            }
            match made {
                Ok(bytes) if limits.may_write(request.pid, bytes.len()) => (State::Tables, bytes),
                Ok(_) => (State::Nothing, tables::nothing(Reason::TooMuch)),
                Err(error) => {
                    tracing::warn!("no tables for process {}: {error:#}", request.pid.0);
                    (State::Nothing, tables::nothing(Reason::NoCalls))
                }
            }
        }
    };
    file.write(tables::ANSWER_AT, &bytes)?;
    tell(&file, state)
}

fn tell(file: &AnswerFile, state: State) -> anyhow::Result<()> {
    Ok(file.write(tables::STATE_AT, &(state as u64).to_le_bytes())?)
}

fn made(
    request: Request,
    asked: &TablesRequest,
    calls: SoFar,
    room: usize,
) -> anyhow::Result<Vec<u8>> {
    let recording = Recording::open(calls)?;
    let query = asked.query(&recording, &request);
    let extras = Extras { ctrack: true, ..Extras::default() };
    let meta = ReportMeta { center_cut: asked.center_cut, extras, ..ReportMeta::default() };
    let report = report_with(&recording, &query, meta);
    Ok(tables::tables(&report, request.time, room))
}
