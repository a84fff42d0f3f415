//! The calls of a session told apart by a value of theirs, for whoever counts them.

use ctrace_core::recording::{Block, ValueSums};

/// Takes the sums since the last time. It must not wait.
pub(crate) type Deliver = Box<dyn FnMut(&mut ValueSums) + Send>;

/// The way of a session's calls to their sums.
pub(crate) struct Split {
    /// `None` after blocks that cannot be read.
    sums: Option<ValueSums>,
    deliver: Deliver,
}

impl Split {
    pub(crate) fn new(sums: ValueSums, deliver: Deliver) -> Self {
        Self { sums: Some(sums), deliver }
    }

    pub(crate) fn take(&mut self, blocks: &[Block]) {
        let Some(sums) = &mut self.sums else { return };
        if let Err(error) = blocks.iter().try_for_each(|block| sums.take(block)) {
            tracing::warn!("calls are no longer told apart by their values: {error}");
            self.sums = None;
        } else if blocks.iter().any(|block| block.calls() > 0) {
            (self.deliver)(sums);
        }
    }
}
