//! The way of a session's calls into the recording, the spill, or the stream of lines.

use super::Session;
use crate::{
    session::keep::{output::Output, recording::RecordingSummary, spill::stopped_early},
    ui::{self, notes::untraced_children},
    writing,
};
use ctrace_core::{
    function::qualified,
    recording::{Block, End, Host, Start},
    units::Nanos,
};

impl Session {
    /// Returns the first block of a recording, when tracing is armed.
    pub(super) fn start_record(&self) -> Start {
        Start {
            ctrace: env!("CARGO_PKG_VERSION").to_owned(),
            host: host(),
            epoch_offset_ns: ui::output::wall::unix_offset_ns(),
            zone_ns: ui::output::wall::zone_ns(),
            start_ns: self.progress.start,
            target: self.target.report.clone(),
            arguments: std::env::args_os()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            daemon_target: None,
        }
    }

    /// Records everything before `settled`, all of which has been seen. Returns `false` if there is
    /// no room for more calls, or no reader.
    pub(super) fn record(&mut self, settled: Nanos) -> anyhow::Result<bool> {
        let ends = self.delivery.ends_chunk(settled);
        if ends {
            self.count_left_out();
            if let Output::Stream(_) = self.delivery.output {
                // A line says when they were lost.
                self.count_losses()?;
            }
            self.engine.end_chunk(settled);
        }
        let goes_on = self.write_blocks()?;
        if ends
            && let Output::Calls(calls) = &self.delivery.output
            && calls.is_wanted()
        {
            self.count_losses()?;
            self.show_calls(settled);
        }
        Ok(goes_on)
    }

    /// Shows the newest calls as a recording that ends here.
    fn show_calls(&mut self, end: Nanos) {
        let end = self.end_record(end);
        if let Output::Calls(calls) = &mut self.delivery.output {
            calls.show(end);
        }
    }

    fn end_record(&self, end: Nanos) -> End {
        let notes = self.notes(end);
        End {
            end_ns: end,
            target: self.target.reported(),
            notes,
            unarmed: self.arming.unarmed.ids(),
        }
    }

    /// Counts as a long write, because a disk may be slow.
    pub(super) fn write_blocks(&mut self) -> anyhow::Result<bool> {
        writing::during(|| self.write_blocks_now())
    }

    fn write_blocks_now(&mut self) -> anyhow::Result<bool> {
        let blocks = self.engine.take_blocks();
        match &mut self.delivery.output {
            Output::Recording(recording) => {
                recording.write(blocks)?;
                recording.take_remarks().iter().for_each(|remark| self.warn(remark));
            }
            Output::Live(_) => self.keep(blocks),
            Output::Calls(calls) => calls.take(blocks),
            Output::Stream(stream) => return stream.write(blocks),
            Output::Reports(reports) => {
                if let Some(spill) = &mut reports.spill
                    && let Err(error) = spill.write(blocks)
                {
                    let note = stopped_early(&error);
                    self.warn(&note);
                    self.notes.add_in_any_case(note);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Has the values and plots in blocks counted, hands the blocks to the flight recorder, and then tells
    /// of slow calls in them.
    fn keep(&mut self, blocks: Vec<Block>) {
        self.delivery.splits.take(&blocks);
        let Some(flight) = &mut self.delivery.flight else { return };
        flight.take(blocks);
        if let Some((slow, function)) = self.engine.take_slow() {
            let group = function.group.as_deref();
            let name = qualified(function.kind, group, &function.name).into_owned();
            flight.tell(slow, &name, self.arming.unarmed.ids());
        }
    }

    /// Ends the last chunk at `end`: nothing more will come.
    pub(super) fn end_chunks(&mut self, end: Nanos) -> anyhow::Result<()> {
        self.engine.end_chunk(end);
        self.write_blocks().map(drop)
    }

    /// Ends the recording or the stream at `end`, and prints its summary.
    pub(super) fn end_recording(&mut self, end: Nanos) -> anyhow::Result<()> {
        if let Output::Calls(_) = &self.delivery.output {
            self.show_calls(end);
            let calls = ui::text::units::count(self.engine.counters().calls);
            ui::say(&format!(
                "{calls} calls in {}, {}",
                seconds(self.progress.start, end),
                self.told_losses()
            ));
            return Ok(());
        }
        let end_record = self.end_record(end);
        if let Output::Stream(stream) = &mut self.delivery.output {
            let took = end.since(self.progress.start);
            if let Some(lines) = writing::during(|| stream.finish(end, took))? {
                let children = untraced_children(self.target.report.untraced_children);
                let said = end_record.notes.iter().chain(&children).chain(&lines);
                said.for_each(|line| ui::say(line));
            }
            return Ok(());
        }
        let Output::Recording(recording) = &mut self.delivery.output else { return Ok(()) };
        let kept = writing::during(|| recording.finish(end_record))?;
        let remarks = recording.take_remarks();
        remarks.iter().for_each(|remark| self.warn(remark));
        let (calls, lost) = (self.engine.counters().calls, self.told_losses());
        let said = summary(&kept, calls, (self.progress.start, end), &lost);
        ui::say(&said);
        Ok(())
    }

    fn told_losses(&self) -> String {
        let lost = match self.engine.lost() {
            0 => "nothing lost".to_owned(),
            lost => format!(
                "{} EVENTS LOST: --ring-size helps, or fewer functions",
                ui::text::units::count(lost)
            ),
        };
        match self.engine.ended_unseen() {
            0 => lost,
            calls => {
                format!("{lost}, {} ended unseen", ui::text::units::counted(calls, "call", "calls"))
            }
        }
    }
}

/// Returns lines on the contents of the recording, and on how to view it.
fn summary(
    kept: &RecordingSummary,
    calls: u64,
    (start, end): (Nanos, Nanos),
    lost: &str,
) -> String {
    let (calls, all, bytes) =
        (ui::text::units::count(calls), seconds(start, end), ui::text::units::bytes(kept.bytes));
    let of = match kept.newest_from {
        Some(from) => {
            format!("the newest {} of {all} with {calls} calls in all", seconds(from, end))
        }
        None => format!("{calls} calls in {all}"),
    };
    let names: Vec<_> = kept.files.iter().map(|file| file.display().to_string()).collect();
    match &names[..] {
        [only] => format!("{only}: {of}, {bytes}, {lost}; `ctrace report {only}` shows them"),
        [first, .., last] => format!(
            "{first} to {last}, {} files: {of}, {bytes}, {lost}; `ctrace report` with the \
             names of all shows them, with {last} the newest of them",
            names.len()
        ),
        [] => format!("{of}, {bytes}, {lost}"),
    }
}

fn seconds(from: Nanos, to: Nanos) -> String {
    format!("{:.1} s", to.since(from).0 as f64 / 1e9)
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
