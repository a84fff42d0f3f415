//! A text about each process, remembered for a while after its end.

use crate::units::Pid;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The ended processes that are remembered, as some of their events may be still to come.
const MOST_ENDED: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct ByProcess {
    texts: HashMap<Pid, Arc<str>>,
    ended: VecDeque<Pid>,
}

impl ByProcess {
    pub(crate) fn set(&mut self, pid: Pid, text: Arc<str>) {
        self.ended.retain(|ended| *ended != pid);
        self.texts.insert(pid, text);
    }

    /// Gives a new process the text of its parent.
    pub(crate) fn inherit(&mut self, parent: Pid, child: Pid) {
        match self.of(parent) {
            Some(text) => self.set(child, text),
            None => drop(self.texts.remove(&child)),
        }
    }

    pub(crate) fn end(&mut self, pid: Pid) {
        if !self.texts.contains_key(&pid) || self.ended.contains(&pid) {
            return;
        }
        self.ended.push_back(pid);
        if self.ended.len() > MOST_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.texts.remove(&oldest);
        }
    }

    pub(crate) fn of(&self, pid: Pid) -> Option<Arc<str>> {
        self.texts.get(&pid).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_processes_that_ended_are_remembered() {
        let mut texts = ByProcess::default();
        texts.set(Pid(1), "shop".into());
        for pid in 2..=MOST_ENDED as u32 + 2 {
            texts.inherit(Pid(1), Pid(pid));
            texts.end(Pid(pid));
        }
        let of = |pid| texts.of(Pid(pid));
        assert_eq!([of(1), of(3)], [Some("shop".into()), Some("shop".into())]);
        assert_eq!(of(2), None);
        assert_eq!((texts.texts.len(), texts.ended.len()), (MOST_ENDED + 1, MOST_ENDED));
        // An id that is used again is of a process that runs.
        texts.set(Pid(3), "cart".into());
        texts.inherit(Pid(1), Pid(4));
        assert_eq!((texts.of(Pid(3)), texts.ended.len()), (Some("cart".into()), MOST_ENDED - 2));
        texts.inherit(Pid(2), Pid(4));
        assert_eq!(texts.of(Pid(4)), None);
    }
}
