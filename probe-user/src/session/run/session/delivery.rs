//! Where calls and reports of a session go, and how far they have come.

use super::nanos;
use crate::session::{
    collect::timetable::Intervals,
    keep::{flight::Flight, output::Output},
};
use ctrace_core::{function::FunctionInfo, recording::Start, report::Extras, units::Nanos};

/// What a crash may lose of a recording.
const CHUNK: Nanos = Nanos::from_millis(1_000);

pub(crate) struct Delivery {
    pub(super) output: Output,
    /// Beside reports.
    pub(super) flight: Option<Flight>,
    /// When the next report is due, and up to when the last one told.
    next: Option<Nanos>,
    pub(super) last: Option<Nanos>,
    /// Events of each function up to then.
    pub(super) hits: Vec<u64>,
    /// Of a recording.
    chunk_end: Nanos,
}

impl Delivery {
    pub(crate) fn new(output: Output, flight: Option<Flight>) -> Self {
        let (next, last, hits, chunk_end) = (None, None, Vec::new(), Nanos::ZERO);
        Self { output, flight, next, last, hits, chunk_end }
    }

    fn interval(&self) -> Option<Nanos> {
        self.output.interval().map(nanos)
    }

    /// Tracing is armed.
    pub(super) fn begin(&mut self, start: Start) -> anyhow::Result<()> {
        let time = start.start_ns;
        self.next = self.interval().map(|interval| time.saturating_add(interval));
        self.chunk_end = time;
        if let Some(flight) = &mut self.flight {
            flight.begin(start.clone());
        }
        match &mut self.output {
            Output::Recording(recording) => recording.begin(start),
            Output::Reports(reports) => {
                reports.spill.as_mut().map_or(Ok(()), |spill| spill.begin(time))
            }
            Output::Live(_) => Ok(()),
        }
    }

    /// When reports are made.
    pub(super) fn intervals(&self) -> Option<Intervals> {
        self.next.zip(self.interval()).map(|(end, each)| Intervals { end, each })
    }

    /// When the next report is to be made, if it is complete.
    pub(super) fn due(&self, settled: Nanos) -> Option<Nanos> {
        self.next.filter(|due| *due <= settled)
    }

    /// The report due at that time is made.
    pub(super) fn made(&mut self, due: Nanos) {
        self.next = self.interval().map(|interval| due.saturating_add(interval));
    }

    /// Whether a chunk of calls ends at `settled`.
    pub(super) fn ends_chunk(&mut self, settled: Nanos) -> bool {
        let ends = settled.since(self.chunk_end) >= CHUNK;
        if ends {
            self.chunk_end = settled;
        }
        ends
    }

    /// How reports are made, and with what besides the sums; none of a recording.
    pub(super) fn content(&self) -> Option<(f64, Extras)> {
        match &self.output {
            Output::Recording(_) => None,
            Output::Reports(reports) => Some((reports.center_cut, reports.sink.extras())),
            Output::Live(live) => Some((live.center_cut, (live.extras)())),
        }
    }

    /// Whether the flight recorder waits for slow calls of functions that are not traced.
    pub(super) fn watches_in_vain(&self, functions: &[FunctionInfo]) -> bool {
        let flight = self.flight.as_ref();
        flight.is_some_and(|flight| !functions.iter().any(|f| flight.is_watched(f)))
    }
}
