//! Prints the calls, or the messages, of a session while they happen. A thread does it: a terminal or a pipe may be
//! slow. The session is held up only when the thread is far behind; what the rings lose then is
//! counted.

use super::{behind::Behind, lines::Printer};
use anyhow::bail;
use ctrace_core::{
    formats::stream::Live,
    recording::{Block, Start},
    units::Nanos,
};

/// The time after which calls that have ended are printed.
pub(crate) const DELAY: Nanos = Nanos::from_millis(100);

pub(crate) struct Stream {
    stage: Stage,
    min_duration: Nanos,
}

enum Stage {
    /// Calls do not count yet.
    Idle(Printer),
    Running(Behind<Printing>),
    /// Nobody reads any more.
    Over,
}

/// The stream in its thread.
struct Printing {
    live: Live,
    printer: Printer,
    is_read: bool,
}

impl Stream {
    /// `min_duration`: shorter calls are left out.
    pub(crate) fn new(printer: Printer, min_duration: Nanos) -> Self {
        Self { stage: Stage::Idle(printer), min_duration }
    }

    pub(crate) fn begin(&mut self, start: Start) -> anyhow::Result<()> {
        let Stage::Idle(printer) = std::mem::replace(&mut self.stage, Stage::Over) else {
            bail!("the stream has begun already");
        };
        let live = Live::new(start, self.min_duration);
        let open = move || Ok(Printing { live, printer, is_read: true });
        let write = |printing: &mut Printing, block: Block| printing.take(&block);
        self.stage = Stage::Running(Behind::start("lines", open, write)?);
        Ok(())
    }

    /// Returns `false` if nobody reads any more.
    pub(crate) fn write(&mut self, blocks: Vec<Block>) -> anyhow::Result<bool> {
        let Stage::Running(thread) = &self.stage else { return Ok(false) };
        if thread.write(blocks).is_ok() {
            return Ok(true);
        }
        self.join().map(|_| false)
    }

    /// Prints the rest. Returns the summary of a stream that took so long; `None` if nobody reads any
    /// more.
    pub(crate) fn finish(
        &mut self,
        end: Nanos,
        took: Nanos,
    ) -> anyhow::Result<Option<Vec<String>>> {
        match self.join()? {
            Some(Printing { live, mut printer, is_read: true }) => {
                let told = live.end(end, &mut printer);
                let told = printer.is_read_after(told)?;
                Ok(told.map(|told| printer.summary(&told, took)))
            }
            _ => Ok(None),
        }
    }

    fn join(&mut self) -> anyhow::Result<Option<Printing>> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Running(thread) => thread.join().map(Some),
            Stage::Idle(_) | Stage::Over => Ok(None),
        }
    }
}

impl Printing {
    fn take(&mut self, block: &Block) -> anyhow::Result<bool> {
        let taken = self.live.take(block, &mut self.printer);
        self.is_read = self.printer.is_read_after(taken)?.is_some();
        Ok(self.is_read)
    }
}
