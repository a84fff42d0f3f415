//! What is summed up for one report period besides the ledger: counts of lost things, and what
//! folds of the spool left behind.

use crate::engine::fold::Piece;
use crate::stats::histogram::Histogram;
use crate::stats::unions::Unions;
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(crate) struct Period {
    pub(crate) start: u64,
    pub(crate) late: u64,
    pub(crate) decode_errors: u64,
    /// The kernel's count of lost events when the period began.
    pub(crate) lost_before: u64,
    /// How many payloads were lost when the period began.
    pub(crate) payloads_before: u64,
    /// Unions up to here are in `unions`; the spool holds what came later.
    pub(crate) folded_to: u64,
    pub(crate) unions: Unions,
    /// By path node: the durations of calls that the spool no longer holds.
    pub(crate) histograms: Vec<Histogram>,
    /// Something was folded, so single calls are no longer known.
    pub(crate) folded: bool,
    /// What the spool holds, oldest first, but for the latest.
    pub(crate) pieces: VecDeque<Piece>,
}

impl Period {
    pub(crate) fn new(start: u64) -> Self {
        Self { start, folded_to: start, ..Self::default() }
    }

    /// Takes over the window up to `to`, whose durations are in the histograms already.
    pub(crate) fn fold(&mut self, to: u64, unions: &Unions) {
        self.unions.add(unions);
        self.folded_to = to;
        self.folded = true;
    }
}
