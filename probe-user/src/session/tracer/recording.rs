//! A session that records: what goes into the file, and when.

use super::Tracer;
use crate::{session::output::Output, ui};
use ctrace_core::{
    record::{End, Host, Start},
    units::Nanos,
};

/// What a crash may lose.
const CHUNK: Nanos = Nanos::from_millis(1_000);

impl Tracer {
    /// Tracing is armed.
    pub(super) fn begin_recording(&mut self) -> anyhow::Result<()> {
        let Output::Recording(recording) = &mut self.parts.output else { return Ok(()) };
        self.chunk_end = self.start;
        recording.begin(Start {
            ctrace: env!("CARGO_PKG_VERSION").to_owned(),
            host: host(),
            epoch_offset_ns: ui::wall::epoch_offset_ns(),
            start_ns: self.start,
            target: self.parts.target.clone(),
            arguments: std::env::args_os()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
        })
    }

    /// Everything up to `settled` has been seen.
    pub(super) fn record(&mut self, settled: Nanos) -> anyhow::Result<()> {
        let Output::Recording(recording) = &mut self.parts.output else { return Ok(()) };
        if settled.since(self.chunk_end) >= CHUNK {
            self.parts.engine.end_chunk(settled);
            self.chunk_end = settled;
        }
        recording.write(self.parts.engine.take_blocks())
    }

    /// The recording ends at `end`; says what is in it.
    pub(super) fn end_recording(&mut self, end: Nanos) -> anyhow::Result<()> {
        let notes = self.notes.clone();
        let Output::Recording(recording) = &mut self.parts.output else { return Ok(()) };
        self.parts.engine.end_chunk(end);
        recording.write(self.parts.engine.take_blocks())?;
        let target = self.parts.target.clone();
        let bytes = recording.finish(&End { end_ns: end, target, notes })?;
        let (calls, lost) = (self.parts.engine.counters().calls, self.parts.engine.lost());
        let seconds = end.since(self.start).0 as f64 / 1e9;
        let lost = match lost {
            0 => "nothing lost".to_owned(),
            lost => format!(
                "{} EVENTS LOST: --ring-size helps, or fewer functions",
                ui::units::count(lost)
            ),
        };
        let path = recording.path().display().to_string();
        self.parts.status.suspend(|| {
            ui::say(&format!(
                "{path}: {} calls in {seconds:.1} s, {}, {lost}; `ctrace report {path}` shows them",
                ui::units::count(calls),
                ui::units::bytes(bytes),
            ));
        });
        Ok(())
    }
}

fn host() -> Host {
    let name = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    Host {
        name: text(name.nodename()),
        kernel: text(name.release()),
        machine: text(name.machine()),
        cpus: cpus as u32,
    }
}
