//! Who ends the waits of threads: a value of each wait for something else than a processor.
//!
//! The kernel says who wakes a thread before it says that the thread is woken. A wake is a change in a
//! process, so it comes after all earlier events of all threads: the innermost call of the waker is the
//! one that its stack has now.

use crate::calls::paths::ROOT;
use crate::engine::Engine;
use crate::engine::process::name_of;
use crate::engine::threads::Thread;
use crate::engine::tracker::Tracker;
use crate::function::qualified;
use crate::ingest::change::ProcessEvent;
use crate::ingest::event::Event;
use crate::recording::payloads::OfThread;
use crate::report::INTERRUPT;
use crate::units::{Nanos, Pid, Tid};
use crate::values::RingPayload;
use ctrace_common::{Change, Kind, WokenFrom};

/// The waker of threads where the record of it is missing, or could not tell.
const UNKNOWN: &str = "[unknown]";
/// The function of a waker that is in no traced call.
const NO_FUNCTION: &str = "-";
/// The function of a waker of which events were lost.
const UNKNOWN_FUNCTION: &str = "?";

/// The part of a function's name that is kept, in bytes.
const LONGEST_NAME: usize = 900;

/// The wakes of a trace.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    /// The number of waits of which it is not known who has ended them.
    pub(super) unknown: u64,
}

impl Engine {
    /// Returns of how many waits it is not known who has ended them.
    pub fn unknown_wakers(&self) -> u64 {
        self.tracker.wakers.as_ref().map_or(0, |wakers| wakers.unknown)
    }
}

impl Tracker {
    /// Notes who wakes a thread. One that is `late` is lost: the stack of the waker may be another one by
    /// now.
    pub(super) fn note_wake(&mut self, event: &ProcessEvent, late: bool) {
        let Change::Wake { comm, woken, woken_tid, from } = event.change else { return };
        let (woken, woken_tid) = (Pid(woken), Tid(woken_tid));
        if self.wakers.is_none() || late || self.threads.known(woken, woken_tid).is_none() {
            return;
        }
        let waker = match from {
            WokenFrom::Interrupt => INTERRUPT.to_owned(),
            WokenFrom::Unknown => UNKNOWN.to_owned(),
            WokenFrom::Thread => {
                let function = self.innermost(event.pid, event.tid);
                let (name, process) = (name_of(&comm), event.pid);
                match process == woken {
                    true => format!("{function} ({name})"),
                    false => format!("{function} ({name}, process {})", process.0),
                }
            }
        };
        if let Some(thread) = self.threads.known(woken, woken_tid) {
            thread.woken_by = Some(waker);
        }
    }

    /// Returns the name of the innermost traced function that a thread is in.
    fn innermost(&mut self, pid: Pid, tid: Tid) -> String {
        let Some(thread) = self.threads.known(pid, tid) else { return NO_FUNCTION.to_owned() };
        let Some(mut path) = thread.stacks.innermost_path() else {
            return UNKNOWN_FUNCTION.to_owned();
        };
        let nodes = self.ledger.paths.nodes();
        // The end of an earlier wait of the waker was lost: it runs.
        while path != ROOT && self.ledger.waits[nodes[path as usize].func.index()] {
            path = nodes[path as usize].parent;
        }
        if path == ROOT {
            return NO_FUNCTION.to_owned();
        }
        let info = &self.functions[nodes[path as usize].func.index()];
        let name = qualified(info.kind, info.group.as_deref(), &info.name);
        let ends = name.char_indices().map(|(at, c)| at + c.len_utf8());
        match ends.take_while(|end| *end <= LONGEST_NAME).last() {
            Some(end) if end < name.len() => format!("{}…", &name[..end]),
            _ => name.into_owned(),
        }
    }

    /// Gives the wait that this event ends, if there is one, the waker that was noted last.
    #[cold]
    pub(super) fn note_waker(&mut self, event: &Event) {
        let (Some(wakers), Some(_)) = (&mut self.wakers, &self.recorder) else { return };
        let (pid, tid) = (event.pid(), event.tid());
        let Some(thread) = self.threads.known(pid, tid) else { return };
        let Some(payload) = waker(thread, event) else { return };
        wakers.unknown += u64::from(payload.is_unknown);
        self.payloads.hold_for(payload.of);
    }
}

struct Noted {
    of: OfThread,
    is_unknown: bool,
}

/// Returns the value of the wait that the thread ends. What was noted is used up.
fn waker(thread: &mut Thread, event: &Event) -> Option<Noted> {
    // After a loss it may be that of another wait.
    let noted = thread.woken_by.take().filter(|_| event.lost_before() == 0);
    let (function, start) = thread.stacks.blocked()?;
    let waker = noted.as_deref().unwrap_or(UNKNOWN);
    let (who, place) = (Event::who_is(thread.pid, thread.tid), Event::place(function, 0));
    let wait = Event::of_scope(Kind::WaitBegin, start, 0, who, place);
    let payload = RingPayload::of_marks(&wait, &[], Some(waker.as_bytes()))?;
    let (thread, start) = (thread.stacks.account.thread(), Nanos(start));
    Some(Noted { of: OfThread { thread, start, payload }, is_unknown: waker == UNKNOWN })
}
