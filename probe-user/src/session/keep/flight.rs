//! The flight recorder of a session: its newest calls in memory. They become a recording when a
//! call was slow. Reports go on meanwhile.

use super::newest::{Held, Newest};
use crate::{
    files::{Owner, Place},
    target::select::pattern::Pattern,
};
use anyhow::Context;
use ctrace_core::{
    function::FunctionInfo,
    recording::{
        Block, End, Recording, Slow, Start, Writer,
        replay::{self, SlowCallCriteria, Tree},
    },
    units::{FuncId, Nanos},
};
use rustix::fs::OFlags;
use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

/// Takes slow calls, the function name of the longest, and the calls before them. It must not wait
/// for a disk.
pub(crate) type Deliver = Box<dyn FnMut(Slow, &str, Flown) + Send>;

/// The calls that are too slow.
#[derive(Clone)]
pub(crate) struct TooSlow {
    pub threshold: Nanos,
    /// None: all functions.
    pub functions: Vec<Pattern>,
}

impl TooSlow {
    fn is_watched(&self, function: &FunctionInfo) -> bool {
        let patterns = &self.functions;
        patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches_recorded(function))
    }
}

/// The specification of a flight recorder: its slow calls, its size, and their receiver.
pub(crate) struct FlightSpec {
    pub too_slow: TooSlow,
    /// The time for which calls are kept.
    pub keep: Nanos,
    /// The size of the kept calls in bytes.
    pub memory: usize,
    pub deliver: Deliver,
}

/// The flight recorder of a session.
pub(crate) struct Flight {
    too_slow: TooSlow,
    deliver: Deliver,
    newest: Newest,
    /// Slow calls that ended before this were told.
    told_to: Nanos,
}

/// The contents of the recorder at some moment.
#[derive(Clone)]
pub(crate) struct Flown {
    held: Held,
    unarmed: Vec<FuncId>,
    too_slow: TooSlow,
    /// The slow calls ended after this.
    since: Nanos,
}

impl Flight {
    pub(crate) fn new(asked: FlightSpec) -> Self {
        let FlightSpec { too_slow, keep, memory, deliver } = asked;
        Self { too_slow, deliver, newest: Newest::new(keep, memory), told_to: Nanos::ZERO }
    }

    pub(crate) fn begin(&mut self, start: Start) {
        self.newest.begin(start);
    }

    pub(crate) fn threshold(&self) -> Nanos {
        self.too_slow.threshold
    }

    pub(crate) fn is_watched(&self, function: &FunctionInfo) -> bool {
        self.too_slow.is_watched(function)
    }

    pub(crate) fn take(&mut self, blocks: Vec<Block>) {
        self.newest.take(blocks);
    }

    /// Hands slow calls on: they are in the last chunks.
    pub(crate) fn tell(&mut self, slow: Slow, name: &str, unarmed: Vec<FuncId>) {
        let mut held = self.newest.held();
        if let Some(from) = held.from() {
            held.start.start_ns = from;
        }
        let newest = held.to().unwrap_or(self.told_to);
        let since = std::mem::replace(&mut self.told_to, newest);
        let flown = Flown { held, unarmed, too_slow: self.too_slow.clone(), since };
        (self.deliver)(slow, name, flown);
    }
}

impl Flown {
    /// Writes a recording like any other, of this target of the daemon.
    pub(crate) fn write(&self, path: &Path, target: &str, note: String) -> anyhow::Result<()> {
        let place = Place::find(path, Owner::Ours)?;
        let file = place.create_new(OFlags::WRONLY)?;
        let start = Start { daemon_target: Some(target.to_owned()), ..self.held.start.clone() };
        let written = Writer::new(BufWriter::new(file), &start)
            .and_then(|writer| self.write_to(writer, note))
            .and_then(|out| out.into_inner().map_err(|error| error.into_error()));
        if written.is_err() {
            // Half of a recording is of no use, and takes room.
            let _ = place.remove();
        }
        written.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(())
    }

    /// Returns the slow calls, at most `most`, each with at most `inside` calls inside it, and a
    /// recording of the meanings of their ids.
    pub(crate) fn slow_calls(
        &self,
        most: usize,
        inside: usize,
    ) -> anyhow::Result<(Recording, Vec<Tree>)> {
        let writer = Writer::uncompressed(Vec::new(), &self.held.start)?;
        let recording = Recording::open(self.write_to(writer, String::new())?)?;
        let functions = recording.functions().iter();
        let wanted = SlowCallCriteria {
            threshold: self.too_slow.threshold,
            functions: functions.map(|function| self.too_slow.is_watched(function)).collect(),
            since: self.since,
            most,
            inside,
        };
        let trees = replay::trees(&recording, &wanted)?;
        Ok((recording, trees))
    }

    fn write_to<W: Write>(&self, writer: Writer<W>, note: String) -> io::Result<W> {
        let start = &self.held.start;
        let end_ns = self.held.to().unwrap_or(start.start_ns);
        let (target, unarmed) = (start.target.clone(), self.unarmed.clone());
        self.held.write_to(writer, &End { end_ns, target, notes: vec![note], unarmed })
    }
}
