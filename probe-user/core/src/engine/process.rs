//! Threads and processes that come, change and go.

use crate::engine::tracker::Tracker;
use crate::units::{Pid, Tid};
use ctrace_common::{Control, Kind};

/// What the session must know: other code to trace, other processes to follow or to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessChange {
    /// A new process.
    Fork { parent: Pid, child: Pid },
    /// The process runs another program: its mappings are new. `by`: the thread that called exec, by
    /// the id it had before.
    Exec { pid: Pid, name: String, by: Tid },
    /// The process's last thread is gone; the status is `wait`'s.
    Exit { pid: Pid, status: u32 },
}

impl Tracker {
    pub(crate) fn process_changed(&mut self, control: &Control) {
        let (pid, tid) = (Pid(control.record.pid), Tid(control.record.tid));
        let name = comm(&control.comm);
        let (threads, ledger) = (&mut self.threads, &mut self.ledger);
        match Kind::from_wire(control.record.kind) {
            Some(Kind::Fork) => {
                let (child, child_tid) = (Pid(control.arg0 as u32), Tid(control.arg1 as u32));
                if child != pid && !self.follow {
                    self.changes.push(ProcessChange::Fork { parent: pid, child });
                    return;
                }
                let inherited = threads.get(pid, tid, ledger).name.clone();
                threads.end(child, child_tid, ledger);
                let name = if name.is_empty() { &inherited } else { name.as_str() };
                threads.rename(child, child_tid, name, ledger);
                if child != pid {
                    self.regions.copy(pid, child);
                    self.changes.push(ProcessChange::Fork { parent: pid, child });
                }
            }
            Some(Kind::Exec) => {
                threads.end_all(pid, Some(tid), ledger);
                let survivor = threads.get(pid, tid, ledger);
                survivor.stacks.close(ledger);
                threads.rename(pid, tid, &name, ledger);
                self.regions.forget(pid);
                let by = Tid(control.arg0 as u32);
                self.changes.push(ProcessChange::Exec { pid, name, by });
            }
            Some(Kind::ThreadExit) => threads.end(pid, tid, ledger),
            Some(Kind::ProcessExit) => {
                threads.end_all(pid, None, ledger);
                self.regions.forget(pid);
                let status = control.arg0 as u32;
                self.changes.push(ProcessChange::Exit { pid, status });
            }
            Some(Kind::Rename) => threads.rename(pid, tid, &name, ledger),
            _ => {}
        }
    }
}

/// A kernel name: zero-padded bytes of no certain encoding.
fn comm(bytes: &[u8; 16]) -> String {
    let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}
