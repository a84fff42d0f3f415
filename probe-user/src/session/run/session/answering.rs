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
        requests.into_iter().for_each(|request| match is_whole {
            true => spill.look(answers.to(request)),
            false => answers.to(request)(None),
        });
        Ok(goes_on)
    }

    /// Returns a note if programs have asked for their tables: they have waited for them.
    pub(super) fn answered(&self) -> Option<String> {
        let times = self.answering.count;
        (times > 0).then(|| {
            format!(
                "the target asked {} for its own results (CTRACK's tables): the times of scopes include \
                 that in which threads waited for them",
                counted(times, "time", "times")
            )
        })
    }
}
