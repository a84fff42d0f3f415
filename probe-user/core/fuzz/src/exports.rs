//! Any recording can be turned into each format, looked at in stretches of time and with everything
//! that a view may ask for, in bounded memory. Check sums are not checked in this build.

use ctrace_core::formats::{Export, ExportTable, Format, Options};
use ctrace_core::recording::Recording;
use ctrace_core::recording::replay::{Query, meta_of, report_with};
use ctrace_core::report::{Extras, FramesAsked, SlowAsked, TrendAsked};
use ctrace_core::units::{FuncId, Nanos};
use std::io::{self, ErrorKind, Write};

/// Takes what a file of a few kilobytes may become.
struct Bounded(usize);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(ErrorKind::QuotaExceeded)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn check(bytes: &[u8]) {
    // Less than a file may have, or the slowest inputs would be all that is tried.
    let Ok(recording) = Recording::open_up_to(bytes.to_vec(), 20_000) else { return };
    let query = Query::default();
    for format in Format::ALL {
        for table in [ExportTable::Calls, ExportTable::Functions] {
            let options = Options { table, ..Options::default() };
            let export =
                Export { recording: &recording, query: &query, options, progress: &|_| {} };
            // What cannot be written is told.
            let _ = format.write(&export, &mut Bounded(32 << 20));
        }
    }
    let extras = Extras {
        histograms: true,
        path_histograms: true,
        latencies: true,
        path_latencies: true,
        ctrack: true,
        slices: 60,
        slowest_calls: Some(3),
        timeline_lanes: Some(3),
        frames: Some(FramesAsked { function: FuncId(0), budget: Some(Nanos(1_000)) }),
        values: Some(2),
        wakers: Some(2),
        plots: true,
        locks: true,
        trend: Some(TrendAsked::default()),
        slow_calls: SlowAsked::NONE,
    };
    let (start, end) = recording.period();
    let middle = Nanos(start.0.midpoint(end.0));
    for window in [None, Some(start..middle), Some(middle..end)] {
        let query = Query { window, ..Query::default() };
        let mut meta = meta_of(&recording, 1.0);
        meta.extras = extras;
        let report = report_with(&recording, &query, meta);
        for function in &report.functions {
            assert_eq!(function.calls, function.timed + function.untimed + function.open);
        }
    }
}
