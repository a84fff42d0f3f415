//! Answers slow requests when they are done: an attach when the probes are in place or cannot be, a
//! detach when they are gone.

use super::{
    control::{ControlAnswer, Reply},
    ids::SessionId,
};
use serde_json::Value;
use std::sync::mpsc::Sender;

#[derive(Default)]
pub(super) struct Waiting(Vec<Asker>);

struct Asker {
    goal: Goal,
    /// The later answer.
    told: Value,
    answer: Sender<ControlAnswer>,
}

enum Goal {
    Armed(SessionId),
    Gone(Vec<SessionId>),
}

impl Waiting {
    pub(super) fn until_armed(
        &mut self,
        id: SessionId,
        told: Value,
        answer: Sender<ControlAnswer>,
    ) {
        self.0.push(Asker { goal: Goal::Armed(id), told, answer });
    }

    pub(super) fn until_gone(
        &mut self,
        ids: Vec<SessionId>,
        told: Value,
        answer: Sender<ControlAnswer>,
    ) {
        self.0.push(Asker { goal: Goal::Gone(ids), told, answer });
        self.settle(|_| None);
    }

    pub(super) fn armed(&mut self, id: SessionId) {
        self.settle(|goal| match goal {
            Goal::Armed(of) if *of == id => Some(Ok(())),
            _ => None,
        });
    }

    /// Returns whether somebody waited for it to be armed.
    pub(super) fn ended(&mut self, id: SessionId, result: &Result<(), String>) -> bool {
        let is_told = self.0.iter().any(|asker| matches!(asker.goal, Goal::Armed(of) if of == id));
        self.settle(|goal| match goal {
            Goal::Armed(of) if *of == id => Some(Err(match result {
                Err(why) => why.clone(),
                Ok(()) => "it ended before its probes were in place".to_owned(),
            })),
            Goal::Gone(ids) => {
                ids.retain(|other| *other != id);
                None
            }
            Goal::Armed(_) => None,
        });
        is_told
    }

    /// Answers requests whose goal is reached, or cannot be any more.
    fn settle(&mut self, mut came: impl FnMut(&mut Goal) -> Option<Result<(), String>>) {
        self.0.retain_mut(|asker| {
            let result = match (came(&mut asker.goal), &asker.goal) {
                (None, Goal::Gone(ids)) if ids.is_empty() => Ok(()),
                (None, _) => return true,
                (Some(result), _) => result,
            };
            let told = asker.told.take();
            // The client may have gone.
            let _ = asker
                .answer
                .send(ControlAnswer::Now(result.map_or_else(Reply::error, |()| Reply::ok(told))));
            false
        });
    }
}
