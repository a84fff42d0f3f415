//! Writes the live line of a running trace: the time, the calls, and the losses.
//!
//! A command that ctrace launches has the same terminal. It may write there at any time, ask a question
//! on `/dev/tty` and wait for the answer, or draw all over the screen, and ctrace cannot see all of
//! this. So for `run` and `record -- COMMAND` the line moves to the window's title when the command begins.

use crate::ui::{
    output::{live, slow::Slow, title},
    text::units,
};
use ctrace_core::{engine::Counters, units::Nanos};
use std::time::{Duration, Instant};

/// The time between two drawings.
const PAUSE: Duration = Duration::from_millis(400);
/// The time between two titles, which some windows redraw slowly.
const PAUSE_OF_TITLE: Duration = Duration::from_secs(1);

/// The place of the live line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drawn {
    /// The terminal belongs to something else.
    Nowhere,
    /// On the screen until the command begins, which may use that; then in the title.
    UntilStart,
    InTitle,
    OnScreen,
}

/// The live line of a session.
pub(crate) struct Status {
    drawn: Drawn,
    /// The time limit of the trace.
    limit: Option<Duration>,
    last: Option<Instant>,
}

impl Status {
    pub(crate) fn new(drawn: Drawn) -> Self {
        Self { drawn, limit: None, last: None }
    }

    /// Says that probes are being placed, which can take seconds.
    pub(crate) fn begin(&self) {
        if self.drawn != Drawn::Nowhere {
            live::show("placing probes…");
        }
    }

    /// Says what is done from now on until the result is dropped, if that takes long.
    pub(crate) fn slow(&self, what: &str) -> Slow {
        match self.drawn {
            Drawn::OnScreen => Slow::work(what.to_owned()),
            Drawn::Nowhere | Drawn::UntilStart | Drawn::InTitle => Slow::untold(),
        }
    }

    /// Leaves the terminal to the command, which begins now.
    pub(crate) fn make_way(&mut self) {
        if self.drawn == Drawn::UntilStart {
            live::without(|| ());
            (self.drawn, self.last) = (Drawn::InTitle, None);
        }
    }

    pub(crate) fn set_limit(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }

    /// Shows the state, if the last drawing was a while ago. `written`: bytes of a recording.
    pub(crate) fn show(
        &mut self,
        elapsed: Nanos,
        counters: Counters<'_>,
        lost: u64,
        written: Option<u64>,
    ) {
        let pause = if self.drawn == Drawn::InTitle { PAUSE_OF_TITLE } else { PAUSE };
        if self.drawn == Drawn::Nowhere || self.last.is_some_and(|last| last.elapsed() < pause) {
            return;
        }
        self.last = Some(Instant::now());
        let state = text(elapsed, self.limit, counters.calls, lost, written);
        match self.drawn {
            Drawn::InTitle => title::show(&format!("ctrace: {state}")),
            _ => live::show(&format!("{state} (Ctrl-C ends)")),
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        if self.drawn != Drawn::Nowhere {
            live::without(|| ());
            title::put_back();
        }
    }
}

fn text(
    elapsed: Nanos,
    limit: Option<Duration>,
    calls: u64,
    lost: u64,
    written: Option<u64>,
) -> String {
    let limit = limit.map(|limit| format!(" of {}", time(Nanos(limit.as_nanos() as u64))));
    let calls = match calls {
        0..10_000 => units::counted(calls, "call", "calls"),
        many => format!("{} calls", units::rate(many as f64)),
    };
    let lost = match lost {
        0 => "none lost".to_owned(),
        lost => format!("{} lost", units::counted(lost, "event", "events")),
    };
    let written = written.map(|bytes| format!(", {}", units::bytes(bytes)));
    format!(
        "{}{}, {calls}, {lost}{}",
        time(elapsed),
        limit.unwrap_or_default(),
        written.unwrap_or_default()
    )
}

/// Formats a time that grows: its digits stay where they are.
fn time(time: Nanos) -> String {
    let seconds = time.0 as f64 / 1e9;
    if time.0.is_multiple_of(1_000_000_000) && seconds < 600.0 {
        format!("{seconds:.0} s")
    } else if seconds < 600.0 {
        format!("{seconds:.1} s")
    } else {
        units::time(time, units::Digits::Short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_time_calls_and_losses() {
        let seconds = |seconds: f64| Nanos((seconds * 1e9) as u64);
        let ten = Some(Duration::from_secs(10));
        assert_eq!(
            text(seconds(3.21), ten, 1_234_567, 0, None),
            "3.2 s of 10 s, 1.23 M calls, none lost"
        );
        assert_eq!(
            text(seconds(700.5), None, 1, 1_340, Some(3 << 20)),
            "11 min 40 s, 1 call, 1,340 events lost, 3.0 MiB"
        );
    }
}
