//! What the spool has no room for is folded: into lengths of unions and into histograms, which add
//! up.
//!
//! Events wait meanwhile, and more of them than there is room for if the whole spool were folded at
//! once. So it is cut into pieces as it fills, and folded one piece after the other, the oldest
//! first. As soon as something was folded, exactness is gone, and the rest follows little by
//! little: a report has less to do then.

use crate::calls::spool::Cut;
use crate::engine::tracker::Tracker;
use crate::stats::histogram::Histogram;
use crate::stats::unions::{OpenCall, Window, unions, with_open};

/// Of a full spool.
const PIECES: usize = 64;
/// Pieces that are folded for each new one, once folding has begun.
const AT_ONCE: usize = 2;

/// What was spooled up to some moment, from where the piece before ends.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    to: u64,
    cut: Cut,
    /// The calls that were open, by thread, and the place of its log.
    open: Vec<(Option<usize>, Vec<OpenCall>)>,
}

impl Tracker {
    /// Keeps the spool within its bound.
    #[inline]
    pub(crate) fn bound_spool(&mut self) {
        if self.ledger.spool.is_due(PIECES) {
            self.cut();
            if self.period.folded {
                (0..AT_ONCE).for_each(|_| self.fold());
            }
        }
        while self.ledger.spool.is_full() {
            if self.period.pieces.is_empty() {
                self.cut();
            }
            self.fold();
        }
    }

    #[cold]
    fn cut(&mut self) {
        let open = self.open_calls();
        let calls: usize = open.iter().map(|(_, calls)| calls.len()).sum();
        let bytes = size_of_val(&open[..]) + calls * size_of::<OpenCall>();
        let cut = self.ledger.spool.cut(bytes);
        self.period.pieces.push_back(Piece { to: self.now, cut, open });
    }

    /// Folds the oldest piece.
    #[cold]
    fn fold(&mut self) {
        let Some(Piece { to, cut, open }) = self.period.pieces.pop_front() else { return };
        let nodes = self.ledger.paths.nodes();
        let spool = &mut self.ledger.spool;
        let window = Window { start: self.period.folded_to, end: to };
        let keep = vec![Default::default(); self.functions.len()];
        let unions = unions(window, with_open(spool.before(&cut), open), nodes, &keep);
        self.period.fold(to, &unions);
        let histograms = &mut self.period.histograms;
        histograms.resize(nodes.len(), Histogram::default());
        let timed = spool.before(&cut).flatten().filter(|call| call.timed);
        self.counter.count(histograms, timed.map(|call| (call.node as usize, call.duration)));
        drop(spool.take_before(&cut));
    }
}
