//! Applies the beginnings and ends of waits to the calls of their threads.
//!
//! Records of waits also come from threads that are in no traced call, and from threads that are about
//! to end. So a wait begins no thread: only calls do.

use crate::engine::Engine;
use crate::engine::tracker::Tracker;
use crate::ingest::event::Event;
use crate::units::FuncId;
use crate::waits::{Wait, WaitClass};
use ctrace_common::{Cause, Kind, WaitState};

/// Switches of threads inside traced calls that the kernel told nobody, although nothing was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HiddenSwitches {
    /// Switches away from a thread: its wait lacks the beginning, so its time counts as running.
    pub away: u64,
    /// Switches back to a thread: its wait lacks the end, so it lasts until the thread's next event.
    pub back: u64,
}

impl Engine {
    /// Returns the switches inside traced calls that the kernel did not tell.
    pub fn hidden_switches(&self) -> HiddenSwitches {
        self.tracker.ledger.hidden_switches
    }
}

impl Tracker {
    /// Returns true if it is the beginning or the end of a wait, or makes no sense. No other event has a
    /// function that is not known.
    #[inline]
    pub(super) fn is_of_wait(&self, event: &Event) -> bool {
        event.func().index() >= self.hits.len()
    }

    #[cold]
    pub(super) fn apply_wait(&mut self, event: &Event, late_before: u64) {
        let ts = event.ts();
        if ts < self.armed {
            return;
        }
        self.events += 1;
        self.period.late += u64::from(ts < late_before);
        let (pid, tid) = (event.pid(), event.tid());
        let known = self.threads.known(pid, tid);
        let is_late = known.as_ref().is_some_and(|thread| ts < thread.stacks.last);
        if let Some(thread) = known
            && (event.lost_before() > 0 || is_late)
        {
            thread.stacks.damage();
            self.threads.damage_beside(pid, tid);
        }
        let cause = Cause(event.func().0);
        match (event.kind(), cause.state()) {
            (Some(Kind::WaitBegin | Kind::WaitEnd), Some(_)) if is_late => {}
            (Some(Kind::WaitBegin), Some(state)) => self.begin_wait(event, state, cause.syscall()),
            (Some(Kind::WaitEnd), Some(_)) => {
                self.note_waker(event);
                if let Some(thread) = self.threads.known(pid, tid) {
                    // A thread that was forked inside a call begins without a wait.
                    let is_unbegun = thread.has_had_events()
                        && thread.stacks.is_inside()
                        && thread.stacks.wait().is_none()
                        && event.lost_before() == 0;
                    self.ledger.hidden_switches.away += u64::from(is_unbegun);
                    thread.stacks.end_wait(ts, &mut self.ledger);
                }
                self.now = self.now.max(ts);
            }
            _ => self.period.decode_errors += 1,
        }
    }

    fn begin_wait(&mut self, event: &Event, state: WaitState, syscall: u16) {
        let (pid, tid, ts) = (event.pid(), event.tid(), event.ts());
        if state == WaitState::Woken {
            self.note_waker(event);
        }
        let Some(thread) = self.threads.known(pid, tid) else { return };
        // A thread can be woken just before it waits.
        let is_blocked = thread.stacks.wait() == Some(WaitClass::Blocked);
        if !thread.stacks.is_inside() || state == WaitState::Woken && !is_blocked {
            return;
        }
        let is_running = state != WaitState::Woken;
        let is_unended = is_running && thread.stacks.wait().is_some() && event.lost_before() == 0;
        self.ledger.hidden_switches.back += u64::from(is_unended);
        let wait = Wait::of(state, syscall);
        let func = self.wait(wait);
        let Some(thread) = self.threads.known(pid, tid) else { return };
        thread.stacks.begin_wait((func, wait.class()), ts, &mut self.ledger);
        self.now = self.now.max(ts);
    }

    /// Returns the function that stands for these waits.
    pub(crate) fn wait(&mut self, wait: Wait) -> FuncId {
        match self.waits[wait as usize] {
            Some(known) => known,
            None => {
                let new = self.add_function(wait.info(self.wakers.is_some()));
                self.waits[wait as usize] = Some(new);
                new
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::{Engine, EngineConfig};
    use crate::function::FunctionInfo;
    use crate::ingest::change::ProcessEvent;
    use crate::units::{Nanos, Pid, Tid};
    use ctrace_common::{Cause, Change, Kind, NO_SYSCALL, Record, WaitState};

    /// A thread switches a last time after the record of its end, and most threads are in no traced call.
    #[test]
    fn waits_begin_no_threads() {
        let mut engine = Engine::new(EngineConfig::default());
        engine.add_function(FunctionInfo::new("f", "app"));
        let cause = Cause::new(WaitState::Preempted, NO_SYSCALL).0;
        let event = |ts_ns, tid, kind: Kind, probe| {
            let (kind, sp) = (kind as u8, if probe == 0 { 800 } else { 0 });
            Record { ts_ns, sp, pid: 1, tid, probe, kind, ..Record::default() }.into()
        };
        for tid in 1..=100 {
            let at = u64::from(tid) * 10;
            engine.push_events(0, &[event(at, tid, Kind::WaitBegin, cause)]);
            engine.push_events(0, &[event(at + 1, tid, Kind::WaitEnd, cause)]);
        }
        let live = |engine: &Engine| engine.tracker.threads.iter().count();
        engine.advance(Nanos(2_000));
        assert_eq!(live(&engine), 0);
        engine.push_events(0, &[event(3_000, 7, Kind::Enter, 0)]);
        engine.advance(Nanos(3_000));
        assert_eq!(live(&engine), 1);
        engine.push_change(ProcessEvent {
            pid: Pid(1),
            tid: Tid(7),
            time: Nanos(3_001),
            lost_before: 0,
            change: Change::ThreadExit { comm: [0; 16], work: 0 },
        });
        engine.push_events(0, &[event(3_002, 7, Kind::WaitBegin, cause)]);
        engine.push_events(0, &[event(3_003, 7, Kind::WaitEnd, cause)]);
        engine.advance(Nanos(4_000));
        assert_eq!(live(&engine), 0);
    }
}
