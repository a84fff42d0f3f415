//! The starts, changes and ends of threads and processes.

use crate::engine::tracker::Tracker;
use crate::ingest::change::ProcessEvent;
use crate::units::{Nanos, Pid, Tid};
use ctrace_common::{Change, Comm};

/// The most that the kernel may not have counted of a thread's work when that ends: the time between two ticks.
const UNCOUNTED: Nanos = Nanos::from_millis(10);

/// A change that concerns the session: new code to trace, or a process to follow or to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessChange {
    /// A new process, begun at that time.
    Fork { parent: Pid, child: Pid, at: Nanos },
    /// The process runs another program, so its mappings are new. `by`: the former id of the thread
    /// that called exec.
    Exec { pid: Pid, name: String, by: Tid },
    /// The process's last thread is gone. The status is that of `wait`.
    Exit { pid: Pid, status: u32 },
}

impl Tracker {
    pub(crate) fn process_changed(&mut self, event: &ProcessEvent) {
        let ProcessEvent { time, pid, tid, .. } = *event;
        let (threads, ledger) = (&mut self.threads, &mut self.ledger);
        match event.change {
            Change::Fork { comm, child, child_tid } => {
                let (child, child_tid) = (Pid(child), Tid(child_tid));
                if child != pid && !self.follow {
                    self.changes.push(ProcessChange::Fork { parent: pid, child, at: time });
                    return;
                }
                let inherited = threads.get(pid, tid, ledger).name.clone();
                threads.end(child, child_tid, ledger);
                let name = name_of(&comm);
                let name = if name.is_empty() { &inherited } else { name.as_str() };
                threads.rename(child, child_tid, name, ledger);
                if child != pid {
                    threads.programs.inherit(pid, child);
                    threads.groups.inherit(pid, child);
                    self.regions.copy(pid, child);
                    self.changes.push(ProcessChange::Fork { parent: pid, child, at: time });
                }
            }
            Change::Exec { comm, by, .. } => {
                let name = name_of(&comm);
                threads.end_all(pid, Some(tid), ledger);
                self.async_calls.end_process(pid);
                threads.close(pid, tid, ledger);
                threads.rename(pid, tid, &name, ledger);
                threads.execute((pid, tid, Tid(by)), time, &name, ledger);
                self.regions.forget(pid);
                self.addresses.leave(pid, false);
                self.changes.push(ProcessChange::Exec { pid, name, by: Tid(by) });
            }
            Change::ThreadExit { work, .. } => {
                let work = (work > 0).then(|| Nanos(work).saturating_add(UNCOUNTED));
                threads.exit(pid, tid, work, ledger);
                self.async_calls.end_thread(pid, tid, time.0);
            }
            Change::ProcessExit { status, .. } => {
                threads.end_all(pid, None, ledger);
                self.async_calls.end_process(pid);
                threads.programs.end(pid);
                threads.groups.end(pid);
                self.regions.forget(pid);
                self.addresses.leave(pid, true);
                self.changes.push(ProcessChange::Exit { pid, status });
            }
            Change::Rename { comm } => threads.rename(pid, tid, &name_of(&comm), ledger),
            Change::Buffer { .. } | Change::Wake { .. } => {}
            Change::Restored { sp } => {
                if let Some(thread) = threads.known(pid, tid) {
                    thread.stacks.end_untold_wait(time.0, ledger);
                    thread.stacks.restore(time, sp, ledger);
                }
            }
        }
    }
}

/// Returns the text of a name from the kernel.
pub(super) fn name_of(bytes: &Comm) -> String {
    let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}
