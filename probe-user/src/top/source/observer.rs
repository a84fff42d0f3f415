//! The thread that looks at a daemon repeatedly, and computes what happened between two looks.

use crate::session::keep::live::Snapshot;
use crate::top::{
    data::catalogue::Catalogue,
    run::ScreenEvent,
    source::{
        Update, daemon,
        stretch::{self, Look},
    },
};
use ctrace_core::units::Nanos;
use std::{
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender},
    time::{Duration, Instant},
};

/// The pause between looks, as a multiple of a look's time, since the daemon makes a report for
/// each.
const REST: u32 = 4;

/// Looks at the chosen process, or at the list of all, until the screen is gone.
pub(crate) fn look_again(
    socket: &Path,
    interval: Duration,
    choices: &Receiver<Option<u32>>,
    events: &SyncSender<ScreenEvent>,
) -> anyhow::Result<()> {
    let tell = |update| events.send(ScreenEvent::Update(update));
    let (mut chosen, mut series) = (None, Series::default());
    let mut has_begun = false;
    loop {
        let asked = Instant::now();
        let update = match chosen {
            None => daemon::processes(socket).map(Update::Processes),
            Some(pid) => {
                daemon::look(socket, pid, series.known_to()).map(|looks| series.add(looks))
            }
        };
        match update {
            Ok(update) => {
                if !std::mem::replace(&mut has_begun, true) {
                    tell(Update::Begun { cpu: None })?;
                }
                tell(update)?;
            }
            Err(error) if !has_begun => {
                return Ok(tell(Update::Ended { result: Err(error), missed: 0 })?);
            }
            Err(error) => events.send(ScreenEvent::Said(format!("{error:#}")))?,
        }
        match choices.recv_timeout(interval.max(asked.elapsed() * REST)) {
            Ok(choice) => (chosen, series) = (choice, Series::default()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// The series of looks at one process.
#[derive(Default)]
pub(crate) struct Series {
    catalogue: Catalogue,
    last: Option<Look>,
}

impl Series {
    /// Returns the end of the last look.
    pub(crate) fn known_to(&self) -> Option<Nanos> {
        self.last.as_ref().map(|last| last.snapshot.report.end_ns)
    }

    /// Returns what happened since the last look. The first look is only the start.
    pub(crate) fn add(&mut self, looks: Vec<Snapshot>) -> Update {
        let (mut parts, mut missed) = (Vec::new(), 0);
        for snapshot in looks {
            let look = Look { ids: self.catalogue.ids_of(&snapshot.report), snapshot };
            let Some(last) = &self.last else {
                let cpu = look.snapshot.cpu;
                self.last = Some(look);
                return Update::Begun { cpu };
            };
            let (before, now) = (&last.snapshot.report, &look.snapshot.report);
            if now.end_ns <= before.end_ns {
                continue;
            }
            parts.push(match now.start_ns == before.start_ns {
                true => stretch::between(last, &look),
                false => stretch::since_start(&look),
            });
            missed += u64::from(now.start_ns > before.end_ns);
            self.last = Some(look);
        }
        Update::Interval { parts, missed }
    }
}
