//! Joins the spans of calls that cross the edges of chunks.

use super::lens::Lens;
use super::walk::{Span, counts_at};
use crate::calls::paths::Node;
use crate::units::ThreadId;
use crate::waits::Waits;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// The identity of a call in all chunks: its thread, start and recorded node.
pub(crate) type CallKey = (ThreadId, u64, u32);

/// A finished call that crossed the edge of a chunk.
pub(crate) struct Joined {
    pub(crate) key: CallKey,
    pub(crate) duration: u64,
    pub(crate) timed: bool,
    pub(crate) counts_at: Option<u32>,
    pub(crate) own: u64,
    /// The waits inside it. A wait is inside itself.
    pub(crate) waits: Waits,
}

/// The state after the last chunk.
pub(crate) struct AtEnd {
    /// Open calls that count, with the query's nodes.
    pub(crate) open: Vec<(CallKey, u32)>,
    /// The time of counted calls that ended inside each of these, counted at the innermost only.
    pub(crate) inside_open: HashMap<CallKey, u64>,
    pub(crate) left_out: HashSet<CallKey>,
}

/// A call that is open at the end of a chunk.
#[derive(Clone, Copy, Default)]
struct Open {
    callees: u64,
    waits: Waits,
    has: bool,
    chunk: usize,
}

/// The least number of open calls that are pruned.
const PRUNE_FROM: usize = 4_096;

/// The calls that are open after the chunks so far.
#[derive(Default)]
pub(crate) struct Spans {
    open: HashMap<CallKey, Open>,
    /// The last chunk that had spans.
    chunk: usize,
    /// The number of open calls above which they are pruned.
    prune_at: usize,
    /// Calls that do not count although their path does.
    left_out: HashSet<CallKey>,
}

impl Spans {
    /// Adds the spans of a thread in the chunk of this number, and shows the calls that ended.
    pub(crate) fn join(
        &mut self,
        lens: &Lens<'_>,
        chunk: usize,
        thread: ThreadId,
        mut spans: Vec<Span>,
        mut see: impl FnMut(Joined),
    ) {
        if chunk != self.chunk {
            self.prune();
            self.chunk = chunk;
        }
        // Backward, because inner calls come behind those around them.
        for index in (0..spans.len()).rev() {
            let Span { start, recorded, ended, parent, .. } = spans[index];
            let key = (thread, start, recorded);
            let earlier = self.open.remove(&key).unwrap_or_default();
            let callees = spans[index].callees.saturating_add(earlier.callees);
            let mut waits = spans[index].waits;
            waits.add(earlier.waits);
            let mut has = spans[index].has || earlier.has;
            let Some((duration, timed)) = ended else {
                self.open.insert(key, Open { callees, waits, has, chunk });
                continue;
            };
            if let Some(class) = lens.wait(recorded) {
                waits.add(Waits::one(class, duration));
            }
            let counts_at = counts_at(lens, key, ended, &mut has);
            if counts_at.is_none() && lens.node(recorded).is_some() {
                self.left_out.insert(key);
            }
            if let Some(caller) = parent.and_then(|parent| spans.get_mut(parent)) {
                let spent = if counts_at.is_some() { duration } else { callees };
                caller.callees = caller.callees.saturating_add(spent);
                caller.waits.add(waits);
                caller.has |= has;
            }
            let own = duration.saturating_sub(callees);
            see(Joined { key, duration, timed, counts_at, own, waits });
        }
    }

    /// Forgets open calls that the last chunk does not mention: they ended in an unreadable chunk.
    fn prune(&mut self) {
        if self.open.len() > self.prune_at {
            let last = self.chunk;
            self.open.retain(|_, open| open.chunk >= last);
            self.prune_at = 2 * self.open.len() + PRUNE_FROM;
        }
    }

    /// Returns which open calls count, and where, after chunk `last`. Calls that are not open there
    /// are dropped: they ended in a chunk that cannot be read.
    pub(crate) fn end(mut self, lens: &Lens<'_>, nodes: &[Node], last: usize) -> AtEnd {
        let (mut open, mut inside_open) = (Vec::new(), HashMap::new());
        let mut at_end: Vec<_> = self.open.into_iter().filter(|(_, o)| o.chunk == last).collect();
        // Innermost first: calls inside it are also inside those around it.
        let depth = |recorded: u32| nodes[recorded as usize].depth;
        at_end.sort_by_key(|((thread, start, recorded), _)| {
            (*thread, Reverse(*start), Reverse(depth(*recorded)))
        });
        let (mut inside, mut ended, mut of) = (false, 0_u64, None);
        for (key, Open { mut has, callees, .. }) in at_end {
            if of != Some(key.0) {
                (inside, ended, of) = (false, 0, Some(key.0));
            }
            has |= inside;
            ended = ended.saturating_add(callees);
            let counts_at = counts_at(lens, key, None, &mut has);
            inside |= has;
            match counts_at {
                Some(node) => {
                    open.push((key, node));
                    inside_open.insert(key, std::mem::take(&mut ended));
                }
                None if lens.node(key.2).is_some() => _ = self.left_out.insert(key),
                None => {}
            }
        }
        AtEnd { open, inside_open, left_out: self.left_out }
    }
}
