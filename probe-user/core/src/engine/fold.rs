//! Folds calls that no longer fit into the spool into lengths of unions and into histograms, which
//! add up.
//!
//! Events wait meanwhile. If the whole spool were folded at once, more events would wait than there
//! is room for. So the spool is cut into pieces as it fills, and the oldest piece is folded first.
//! The first fold ends exactness. From then on the rest is folded little by little, which leaves
//! less work for a report.

use crate::calls::spool::Cut;
use crate::engine::tracker::Tracker;
use crate::stats::histogram::Histogram;
use crate::stats::unions::{OpenCall, Window, unions, with_open};

/// The number of pieces of a full spool.
const PIECES: usize = 64;
/// The number of pieces that are folded for each new one, once folding has begun.
const AT_ONCE: usize = 2;

/// The spooled calls up to some moment, since the end of the previous piece.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    to: u64,
    cut: Cut,
    /// The open calls by thread, with the index of the thread's log.
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
        let mixed = self.ledger.mixed.as_ref();
        let spool = &mut self.ledger.spool;
        if let Some(slow) = &mut self.slow {
            let logs = spool.before(&cut).zip(spool.logs());
            let logs = logs.map(|(calls, log)| (log.owner(), calls));
            slow.read(to, logs, &open, nodes, mixed);
        }
        let window = Window { start: self.period.folded_to, end: to };
        let keep = vec![Default::default(); self.functions.len()];
        let unions = unions(window, with_open(spool.before(&cut), open), nodes, &keep, false);
        self.period.fold(to, &unions);
        let histograms = &mut self.period.histograms;
        histograms.resize(nodes.len(), Histogram::default());
        let timed = spool.before(&cut).flatten().filter(|call| call.timed);
        self.counter.count(histograms, timed.map(|call| (call.node as usize, call.duration)));
        drop(spool.take_before(&cut));
    }
}
