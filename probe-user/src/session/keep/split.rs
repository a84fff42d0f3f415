//! Sums of a session's calls and plots while they happen, for whoever counts them.

use ctrace_core::recording::{Block, PlotSums, RecordError, ValueSums};

/// Sums that are made of blocks.
pub(crate) trait Sums {
    fn take(&mut self, block: &Block) -> Result<(), RecordError>;
}

impl Sums for ValueSums {
    fn take(&mut self, block: &Block) -> Result<(), RecordError> {
        self.take(block)
    }
}

impl Sums for PlotSums {
    fn take(&mut self, block: &Block) -> Result<(), RecordError> {
        self.take(block)
    }
}

/// Takes the sums since the last time; `None`: no more come, as calls could not be read. It must not wait.
pub(crate) type Deliver<S> = Box<dyn FnMut(Option<&mut S>) + Send>;

/// The way of a session's calls to their sums.
pub(crate) struct Split<S> {
    /// `None` after blocks that cannot be read.
    sums: Option<S>,
    deliver: Deliver<S>,
}

impl<S: Sums> Split<S> {
    pub(crate) fn new(sums: S, deliver: Deliver<S>) -> Self {
        Self { sums: Some(sums), deliver }
    }

    pub(crate) fn take(&mut self, blocks: &[Block]) {
        let Some(sums) = &mut self.sums else { return };
        if let Err(error) = blocks.iter().try_for_each(|block| sums.take(block)) {
            tracing::warn!("values of calls, or plots, are no longer counted: {error}");
            (self.deliver)(Some(sums));
            (self.deliver)(None);
            self.sums = None;
        } else if blocks.iter().any(|block| block.calls() > 0) {
            (self.deliver)(Some(sums));
        }
    }
}

/// All sums that a session makes beside its reports.
#[derive(Default)]
pub(crate) struct Splits {
    pub(crate) values: Option<Split<ValueSums>>,
    pub(crate) plots: Option<Split<PlotSums>>,
}

impl Splits {
    /// True if somebody counts.
    pub(crate) fn are_wanted(&self) -> bool {
        self.values.is_some() || self.plots.is_some()
    }

    pub(crate) fn take(&mut self, blocks: &[Block]) {
        self.values.iter_mut().for_each(|split| split.take(blocks));
        self.plots.iter_mut().for_each(|split| split.take(blocks));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_common::{Kind, Record};
    use ctrace_core::{
        engine::{Engine, EngineConfig},
        function::{FunctionInfo, ValueInfo, ValueKind},
        units::Nanos,
    };
    use std::sync::{Arc, Mutex};

    /// Returns the blocks of calls of these functions, one of each.
    fn blocks(functions: &[&str]) -> Vec<Block> {
        let mut engine = Engine::new(EngineConfig { record: true, ..EngineConfig::default() });
        for (probe, name) in (0..).zip(functions) {
            let values = vec![ValueInfo::new("key", ValueKind::Unsigned)];
            engine.add_function(FunctionInfo { values, ..FunctionInfo::new(*name, "program") });
            for (kind, after) in [(Kind::Enter, 10), (Kind::Return, 17)] {
                let ts_ns = u64::from(20 * probe + after);
                let record = Record { ts_ns, probe, sp: 900, pid: 1, tid: 1, ..Record::default() };
                engine.push_events(0, &[Record { kind: kind as u8, ..record }.into()]);
            }
        }
        engine.advance(Nanos(100));
        engine.end_chunk(Nanos(100));
        engine.take_blocks()
    }

    /// Whoever counts the calls learns that from then on they are in no sum.
    #[test]
    fn calls_that_cannot_be_read_are_told_once() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tells = Arc::clone(&told);
        let deliver = move |sums: Option<&mut ValueSums>| {
            let calls = sums.map(|sums| sums.drain().map(|(_, _, sum)| sum.calls).sum::<u64>());
            tells.lock().expect("alone").push(calls);
        };
        let mut split = Split::new(ValueSums::new("key", |_| true), Box::new(deliver));
        split.take(&blocks(&["load"]));
        // Nothing says what the paths of its calls are.
        let mut broken = blocks(&["load", "store", "drop"]);
        broken.retain(|block| block.calls() > 0);
        split.take(&broken);
        split.take(&broken);
        assert_eq!(*told.lock().expect("alone"), [Some(1), Some(0), None]);
    }
}
