//! The destination of a session's calls and reports, and the progress there.

use super::nanos;
use crate::session::{
    collect::timetable::Intervals,
    keep::{flight::Flight, output::Output, split::Splits, stream},
};
use ctrace_core::{function::FunctionInfo, recording::Start, report::Extras, units::Nanos};

/// The length of a chunk: a crash may lose this much of a recording.
const CHUNK: Nanos = Nanos::from_millis(1_000);
/// The same where calls are shown as they come.
const LIVE_CHUNK: Nanos = Nanos::from_millis(200);

pub(crate) struct Delivery {
    pub(super) output: Output,
    /// A flight recorder beside the reports.
    pub(super) flight: Option<Flight>,
    /// Sums of calls and plots, beside the reports, too.
    pub(super) splits: Splits,
    /// The time at which the next report is due. `last` is the end of the last one.
    next: Option<Nanos>,
    pub(super) last: Option<Nanos>,
    /// The cost of each function's events up to `last`.
    pub(super) spent: Vec<Nanos>,
    /// The end of the last chunk of a recording.
    chunk_end: Nanos,
}

impl Delivery {
    pub(crate) fn new(output: Output, flight: Option<Flight>, splits: Splits) -> Self {
        let (next, last, spent, chunk_end) = (None, None, Vec::new(), Nanos::ZERO);
        Self { output, flight, splits, next, last, spent, chunk_end }
    }

    fn interval(&self) -> Option<Nanos> {
        self.output.interval().map(nanos)
    }

    /// Begins the delivery, when tracing is armed.
    pub(super) fn begin(&mut self, start: Start) -> anyhow::Result<()> {
        let time = start.start_ns;
        self.next = self.interval().map(|interval| time.saturating_add(interval));
        self.chunk_end = time;
        if let Some(flight) = &mut self.flight {
            flight.begin(start.clone());
        }
        match &mut self.output {
            Output::Recording(recording) => recording.begin(start),
            Output::Calls(calls) => {
                calls.begin(start);
                Ok(())
            }
            Output::Stream(stream) => stream.begin(start),
            Output::Reports(reports) => {
                reports.spill.as_mut().map_or(Ok(()), |spill| spill.begin(time))
            }
            Output::Live(_) => Ok(()),
        }
    }

    /// Returns the times of the reports.
    pub(super) fn intervals(&self) -> Option<Intervals> {
        self.next.zip(self.interval()).map(|(end, each)| Intervals { end, each })
    }

    /// Returns the time of the next report if everything before it is settled.
    pub(super) fn due(&self, settled: Nanos) -> Option<Nanos> {
        self.next.filter(|due| *due <= settled)
    }

    /// Notes that the report due at that time has been made, with everything up to `end`: those that were
    /// due since are not made.
    pub(super) fn made(&mut self, due: Nanos, end: Nanos) {
        self.next = self.interval().map(|interval| {
            let missed = end.since(due).0 / interval.0.max(1);
            due.saturating_add(Nanos(interval.0.saturating_mul(missed + 1)))
        });
    }

    /// True if a chunk of calls ends at `settled`.
    pub(super) fn ends_chunk(&mut self, settled: Nanos) -> bool {
        let length = match self.output {
            Output::Stream(_) => stream::DELAY,
            Output::Calls(_) => LIVE_CHUNK,
            _ => CHUNK,
        };
        let ends = settled.since(self.chunk_end) >= length;
        if ends {
            self.chunk_end = settled;
        }
        ends
    }

    /// Leaves no empty output behind.
    pub(super) fn discard(&mut self) -> anyhow::Result<()> {
        match &mut self.output {
            Output::Recording(recording) => recording.discard(),
            Output::Reports(_) | Output::Live(_) | Output::Calls(_) | Output::Stream(_) => Ok(()),
        }
    }

    /// Returns the center cut and the extras that reports need; `None` if there are none.
    pub(super) fn content(&self) -> Option<(f64, Extras)> {
        match &self.output {
            Output::Recording(_) | Output::Calls(_) | Output::Stream(_) => None,
            Output::Reports(reports) => Some((reports.center_cut, reports.sink.extras())),
            Output::Live(live) => Some((live.center_cut, (live.extras)())),
        }
    }

    /// True if the flight recorder waits for slow calls of functions that are not traced.
    pub(super) fn watches_in_vain(&self, functions: &[FunctionInfo]) -> bool {
        let flight = self.flight.as_ref();
        flight.is_some_and(|flight| !functions.iter().any(|f| flight.is_watched(f)))
    }
}
