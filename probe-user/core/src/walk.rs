//! One thread's calls, latest first, cut into pieces for `unions`.

use crate::paths::Node;
use crate::rank::Keep;
use crate::spool::{Backward, Call, Log};
use crate::unions::{OpenCall, ThreadCalls, Window};

/// Whether a call belongs to its function's center.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    No,
    Yes,
    /// It is as long as the longest of the center, or as short as the shortest: decided in the
    /// order of all threads' ends.
    Open {
        longest: bool,
    },
}

/// A call, with the stretch in which it is the innermost one before its end; or, with nothing
/// between `start` and `end`, a further such stretch of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) end: u64,
    pub(crate) start: u64,
    /// Start of the stretch.
    pub(crate) low: u64,
    pub(crate) function: u32,
    pub(crate) thread: u32,
    /// Calls around it.
    pub(crate) depth: u32,
    pub(crate) kept: Kept,
    pub(crate) is_call: bool,
}

/// A call around those that come next.
#[derive(Clone, Copy)]
struct Inside {
    start: u64,
    function: u32,
    kept: Kept,
}

/// A thread on the way back.
pub(crate) struct Walk<'a> {
    window: Window,
    thread: u32,
    /// Still to come before `finished`, outermost first.
    open: std::vec::IntoIter<OpenCall>,
    finished: Option<Backward<'a>>,
    /// The next call, and its end.
    next: Option<(Call, u64)>,
    inside: Vec<Inside>,
    /// Everything after this is done.
    cursor: u64,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(window: Window, index: usize, thread: ThreadCalls<'a>) -> Self {
        let mut walk = Self {
            window,
            thread: index as u32,
            open: thread.open.into_iter(),
            finished: thread.log.map(Log::backward),
            next: None,
            inside: Vec::new(),
            cursor: window.end,
        };
        walk.load();
        walk
    }

    /// End of the next call.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.next.map_or(0, |(_, end)| end)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.next.is_none() && self.inside.is_empty()
    }

    #[inline]
    fn load(&mut self) {
        if let Some(OpenCall { start, node }) = self.open.next() {
            let duration = self.window.end.saturating_sub(start);
            self.next = Some((Call { start, duration, node, timed: false }, self.cursor));
            return;
        }
        let call = self.finished.as_mut().and_then(Iterator::next);
        self.next =
            call.map(|call| (call, call.start.saturating_add(call.duration).min(self.cursor)));
    }

    /// The next pieces, about `count`.
    pub(crate) fn fill(
        &mut self,
        count: usize,
        nodes: &[Node],
        keep: &[Keep],
        pieces: &mut Vec<Piece>,
    ) {
        while pieces.len() < count && !self.is_done() {
            self.go_back(self.end(), pieces);
            let Some((call, end)) = self.next else { return };
            let function = nodes[call.node as usize].func.0;
            let kept =
                if call.timed { keep[function as usize].kept(call.duration) } else { Kept::No };
            let start = call.start.max(self.window.start).min(end);
            self.cursor = end;
            self.load();
            let low = self.end().max(start);
            self.cursor = low;
            let (thread, depth) = (self.thread, self.inside.len() as u32);
            pieces.push(Piece { end, start, low, function, thread, depth, kept, is_call: true });
            if low > start {
                self.inside.push(Inside { start, function, kept });
            }
        }
    }

    /// Back to `end`, through the calls around it.
    #[inline]
    fn go_back(&mut self, end: u64, pieces: &mut Vec<Piece>) {
        while let Some(&Inside { start, function, kept }) = self.inside.last() {
            let low = start.max(end);
            if low < self.cursor {
                let (end, depth) = (self.cursor, self.inside.len() as u32 - 1);
                let thread = self.thread;
                pieces.push(Piece {
                    end,
                    start: end,
                    low,
                    function,
                    thread,
                    depth,
                    kept,
                    is_call: false,
                });
                self.cursor = low;
            }
            if start < end {
                return;
            }
            self.inside.pop();
        }
    }
}
