//! Writes the flight recorder's calls after a slow one beside the other recordings, at a limited
//! rate, and passes them on for export as spans.

use super::{config::Target, hub::Hub, recordings::Recordings, spans};
use crate::{
    session::keep::flight::{FlightSpec, Flown},
    ui,
};
use ctrace_core::{
    recording::Slow as SlowCall,
    units::{Nanos, Pid},
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Instant,
};

/// Returns the flight recorder's options for a session of the target.
pub(super) fn asked(
    target: &Arc<Target>,
    pid: Pid,
    recordings: &Arc<Mutex<Recordings>>,
    hub: &Arc<Hub>,
) -> Option<FlightSpec> {
    let too_slow = target.flight.too_slow().ok()??;
    let mut keeper = Keeper {
        target: Arc::clone(target),
        pid,
        recordings: Arc::clone(recordings),
        hub: Arc::clone(hub),
        last: None,
        writer: None,
    };
    Some(FlightSpec {
        too_slow,
        keep: Nanos(target.flight.keep.as_nanos() as u64),
        memory: usize::try_from(target.flight.memory).unwrap_or(usize::MAX),
        deliver: Box::new(move |slow, name, flown| keeper.keep(slow, name, flown)),
    })
}

struct Keeper {
    target: Arc<Target>,
    pid: Pid,
    recordings: Arc<Mutex<Recordings>>,
    hub: Arc<Hub>,
    last: Option<Instant>,
    /// The writer of the last kept calls.
    writer: Option<JoinHandle<()>>,
}

impl Drop for Keeper {
    /// Waits until the kept calls are complete.
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            // It has reported its errors.
            let _ = writer.join();
        }
    }
}

impl Keeper {
    fn keep(&mut self, slow: SlowCall, name: &str, flown: Flown) {
        if let Some(spans) = self.hub.spans() {
            let target = self.target.id.clone();
            spans.enqueue(spans::Job { target, calls: slow.calls, flown: flown.clone() });
        }
        if self.last.is_some_and(|last| last.elapsed() < self.target.flight.pause) {
            return;
        }
        if self.writer.as_ref().is_some_and(|writer| !writer.is_finished()) {
            return;
        }
        self.last = Some(Instant::now());
        let (target, pid) = (self.target.id.clone(), self.pid);
        let recordings = Arc::clone(&self.recordings);
        let budget = match self.target.what.probes.budget {
            Some(_) => {
                "; with a budget: calls of functions while they were not armed are missing, and their \
                 time is their callers' own"
            }
            None => "",
        };
        let what = format!(
            "{name} took {}",
            ui::text::units::time(slow.duration, ui::text::units::Digits::Short)
        );
        // A session cannot wait for a disk.
        let spawned = std::thread::Builder::new().name("keeper".into()).spawn(move || {
            let recordings = || recordings.lock().unwrap_or_else(PoisonError::into_inner);
            let place = recordings().next(&target, pid, "slow");
            let written = place.and_then(|place| {
                let note = format!("kept because {what}{budget}");
                flown.write(&place.path, &target.0, note)?;
                Ok(place.path)
            });
            recordings().prune(&target);
            match written {
                Ok(path) => {
                    ui::say(&format!("target {target}: {what}: {} tells more", path.display()))
                }
                Err(error) => {
                    ui::say(&format!("target {target}: {what}, and nothing is kept: {error:#}"))
                }
            }
        });
        match spawned {
            Ok(writer) => self.writer = Some(writer),
            Err(error) => {
                ui::say(&format!("target {}: nothing is kept: {error}", self.target.id));
            }
        }
    }
}
