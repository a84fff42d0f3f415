//! The line that shows a running trace: on a terminal only, and removed before a report.

use crate::ui::units;
use ctrace_core::engine::Counters;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A line on stderr, or nothing if that is no terminal.
pub(crate) struct Status(ProgressBar);

impl Status {
    /// Creates the line for `attach`. The command of `run` has the terminal to itself.
    pub(crate) fn visible() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    pub(crate) fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// Shows the state. `written`: bytes of a recording.
    pub(crate) fn show(&self, counters: Counters<'_>, lost: u64, written: Option<u64>) {
        let calls = units::count(counters.calls);
        let elapsed = self.0.elapsed().as_secs_f64().max(0.001);
        let rate = units::count((counters.events as f64 / elapsed) as u64);
        let lost =
            if lost == 0 { String::new() } else { format!(" · {} lost", units::count(lost)) };
        self.0.set_message(match written {
            None => format!("tracing · {calls} calls{lost} · Ctrl-C ends and reports"),
            Some(bytes) => format!(
                "recording · {calls} calls · {rate} events/s{lost} · {} · Ctrl-C ends",
                units::bytes(bytes)
            ),
        });
    }

    /// Hides the line during a write.
    pub(crate) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.suspend(write)
    }

    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
