//! The data of one report period outside the ledger: counts of losses, and the results of folds of
//! the spool.

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
    /// The number of lost payloads when the period began.
    pub(crate) payloads_before: u64,
    /// The end of the time that `unions` covers; the spool holds later calls.
    pub(crate) folded_to: u64,
    pub(crate) unions: Unions,
    /// The durations of calls that the spool no longer holds, by path node.
    pub(crate) histograms: Vec<Histogram>,
    /// True if something was folded, so that single calls are no longer known.
    pub(crate) folded: bool,
    /// The contents of the spool in pieces, oldest first, except for the latest calls.
    pub(crate) pieces: VecDeque<Piece>,
}

impl Period {
    pub(crate) fn new(start: u64) -> Self {
        Self { start, folded_to: start, ..Self::default() }
    }

    /// Adds the unions up to `to`. The histograms already have the durations.
    pub(crate) fn fold(&mut self, to: u64, unions: &Unions) {
        self.unions.add(unions);
        self.folded_to = to;
        self.folded = true;
    }
}
