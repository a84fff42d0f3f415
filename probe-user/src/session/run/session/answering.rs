//! Requests of the traced programs for their own tables.

use super::Session;
use crate::{
    session::keep::{answers::Answers, output::Output},
    ui::text::units::counted,
};
use ctrace_core::units::Nanos;

/// The requests of a session. The thread that answers is there from the first one on.
#[derive(Default)]
pub(super) struct Answering {
    answers: Option<Answers>,
    count: u64,
}

impl Session {
    /// Has the requests answered that were made before `settled`. Returns `false` if there is no room for
    /// more calls.
    pub(super) fn answer(&mut self, settled: Nanos) -> anyhow::Result<bool> {
        let requests = self.engine.take_requests(settled);
        if requests.is_empty() {
            return Ok(true);
        }
        self.answering.count += requests.len() as u64;
        self.engine.end_chunk(settled);
        let goes_on = self.write_blocks()?;
        let Output::Reports(reports) = &self.delivery.output else { return Ok(goes_on) };
        let Some(spill) = &reports.spill else { return Ok(goes_on) };
        let answers = match &mut self.answering.answers {
            Some(answers) => answers,
            none => none.insert(Answers::start()?),
        };
        // The tables have no place for losses.
        let is_whole = self.engine.lost() == 0;
        for to in requests.into_iter().filter_map(|request| answers.to(request)) {
            match is_whole {
                true => spill.look(to),
                false => to(None),
            }
        }
        Ok(goes_on)
    }

    /// Returns a note if programs have asked for their tables: they have waited for them.
    pub(super) fn answered(&self) -> Option<String> {
        let unheard = self.engine.refused_requests();
        let times = self.answering.count + unheard;
        if times == 0 {
            return None;
        }
        let note = format!(
            "the target asked {} for its own results (CTRACK's tables): the times of scopes include \
             that in which threads waited for them",
            counted(times, "time", "times")
        );
        let refused = self.answering.answers.as_ref().map(Answers::refused).unwrap_or_default();
        let unanswered = refused.unanswered + unheard;
        let unanswered = (unanswered > 0).then(|| {
            format!(
                "; {} got no answer: too many waited",
                counted(unanswered, "request", "requests")
            )
        });
        let too_much = (refused.too_much > 0).then(|| {
            format!(
                "; {} got no tables: ctrace had reached its limit for a process (256 MiB) or the session \
                 (1 GiB)",
                counted(refused.too_much, "request", "requests")
            )
        });
        Some(note + &unanswered.unwrap_or_default() + &too_much.unwrap_or_default())
    }
}
