//! The stream of calls that happen now: blocks of the engine in, lines out.

use super::order::{CallOrder, MOST_WAITING};
use super::{Lines, LostSoFar, Scene};
use crate::formats::{Coverage, ExportError};
use crate::recording::{Block, Recording, Start};
use crate::units::{Nanos, ThreadId};
use std::collections::VecDeque;

/// A call that is open for so long is announced: a reader should not wait longer for the lines
/// behind it.
const PATIENCE: Nanos = Nanos::from_millis(500);

/// The lines of a session. See the module.
pub struct Live {
    pub(super) recording: Recording,
    pub(super) order: CallOrder,
    told: Coverage,
    lost: LostSoFar,
    /// True if the receiver knows all names.
    is_defined: bool,
    /// Threads that have ended, which lines that wait may still mention, and the end of the chunk in
    /// which each did: none of its calls began later. The oldest is the first.
    ended: VecDeque<(Nanos, ThreadId)>,
}

impl Live {
    /// `min_duration`: shorter calls are left out, so a shorter one is not announced.
    pub fn new(start: Start, min_duration: Nanos) -> Self {
        let order = CallOrder::new(PATIENCE.max(min_duration), MOST_WAITING);
        let recording = Recording::begun(start);
        let told = Coverage::default();
        let lost = LostSoFar::default();
        Self { recording, order, told, lost, is_defined: false, ended: VecDeque::new() }
    }

    /// Takes the next block, and emits the lines that are complete.
    pub fn take(&mut self, block: &Block, lines: &mut impl Lines) -> Result<(), ExportError> {
        let Some((chunk, payloads)) = self.recording.grow(block)? else {
            self.is_defined = false;
            return Ok(());
        };
        let scene = Scene { recording: &self.recording, nodes: self.recording.nodes() };
        let nodes = scene.nodes;
        if !self.is_defined {
            lines.define(&scene);
            self.is_defined = true;
        }
        self.told.add(nodes, self.recording.functions(), &chunk);
        self.told.lost.payloads = self.told.lost.payloads.saturating_add(payloads.lost);
        let lost = self.lost.add(chunk.from, chunk.to, &chunk.loss, payloads.lost);
        let values = self.recording.values_by_call(&payloads);
        self.order.add(&chunk, nodes, values, lost, |function| lines.wants(function));
        self.ended.extend(block.ended.iter().map(|thread| (chunk.to, *thread)));
        self.release(lines)?;
        self.forget();
        Ok(())
    }

    /// Ends the stream at `end`. Calls that are open stay so.
    pub fn end(mut self, end: Nanos, lines: &mut impl Lines) -> Result<Coverage, ExportError> {
        self.told.add_open(self.order.open() as u64);
        self.order.end(self.recording.nodes(), end);
        self.release(lines)?;
        Ok(self.told)
    }

    /// Forgets the threads that no line mentions any more.
    fn forget(&mut self) {
        let first = self.order.first_waiting().unwrap_or(Nanos::MAX);
        let unmentioned = self.ended.partition_point(|(end, _)| *end < first);
        self.recording.forget(self.ended.drain(..unmentioned).map(|(_, thread)| thread));
    }

    fn release(&mut self, lines: &mut impl Lines) -> Result<(), ExportError> {
        let scene = Scene { recording: &self.recording, nodes: self.recording.nodes() };
        self.order.release(scene.nodes, |waiting| lines.line(&scene, &waiting.line()))?;
        Ok(lines.flush()?)
    }
}
