//! Lengths of unions of intervals over all threads: active, active-exclusive, tracked.
//!
//! A thread's log, read backwards, gives calls by descending end, parents before children; a small
//! stack (`walk`) turns that into pieces by descending end. The pieces of all threads are merged,
//! by blocks and without branches, as which thread comes next cannot be predicted. A union of
//! intervals that arrive by descending end needs two words: how far down it is covered, and its
//! length.

use crate::hash::{IntMap, pair};
use crate::paths::Node;
use crate::rank::Keep;
use crate::spool::Log;
use crate::walk::{Kept, Piece, Walk};
use std::cmp::Reverse;
use std::hint::select_unpredictable;

/// Pieces of all threads that are held at a time, and the least of one thread.
const BLOCK: usize = 1_024;
const LEAST: usize = 64;

/// A union of intervals that arrive by descending end.
#[derive(Clone, Copy, Debug)]
struct Cover {
    down_to: u64,
    length: u64,
}

impl Cover {
    const EMPTY: Self = Self { down_to: u64::MAX, length: 0 };

    #[inline]
    fn add(&mut self, start: u64, end: u64) {
        self.length += end.min(self.down_to).saturating_sub(start);
        self.down_to = self.down_to.min(start);
    }
}

/// The stretch of time that unions are clipped to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// One thread: its finished calls, and those still open, outermost first.
pub(crate) struct ThreadCalls<'a> {
    pub(crate) log: Option<&'a Log>,
    pub(crate) open: Vec<OpenCall>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenCall {
    pub(crate) start: u64,
    pub(crate) node: u32,
}

/// Lengths for one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FunctionUnions {
    pub(crate) active: u64,
    pub(crate) exclusive: u64,
    pub(crate) center_active: u64,
    pub(crate) center_exclusive: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Unions {
    pub(crate) tracked: u64,
    pub(crate) functions: Vec<FunctionUnions>,
}

impl Unions {
    /// Adds the lengths of another, disjoint window.
    pub(crate) fn add(&mut self, other: &Self) {
        self.tracked += other.tracked;
        self.functions.resize(other.functions.len().max(self.functions.len()), Default::default());
        for (mine, other) in self.functions.iter_mut().zip(&other.functions) {
            mine.active += other.active;
            mine.exclusive += other.exclusive;
            mine.center_active += other.center_active;
            mine.center_exclusive += other.center_exclusive;
        }
    }
}

#[derive(Clone, Copy)]
struct FunctionCovers {
    active: Cover,
    exclusive: Cover,
    /// Of the center, while it is covered otherwise than all: since a call that was cut off.
    center: Option<(Cover, Cover)>,
    /// By how much the center's unions are shorter.
    missing: (u64, u64),
}

impl FunctionCovers {
    const EMPTY: Self =
        Self { active: Cover::EMPTY, exclusive: Cover::EMPTY, center: None, missing: (0, 0) };

    #[inline]
    fn add(&mut self, piece: &Piece) {
        self.active.add(piece.start, piece.end);
        self.exclusive.add(piece.low, piece.end);
    }

    /// The covers of the center.
    fn center(&self) -> (Cover, Cover) {
        let less = |cover: Cover, by| Cover { length: cover.length - by, ..cover };
        let (active, exclusive) = self.missing;
        self.center.unwrap_or((less(self.active, active), less(self.exclusive, exclusive)))
    }

    /// The same where the center's covers differ, or begin to.
    #[inline(never)]
    fn add_apart(&mut self, piece: &Piece, kept: bool) {
        let (mut active, mut exclusive) = self.center();
        if kept {
            active.add(piece.start, piece.end);
            exclusive.add(piece.low, piece.end);
        }
        self.add(piece);
        self.center = Some((active, exclusive));
        if (active.down_to, exclusive.down_to) == (self.active.down_to, self.exclusive.down_to) {
            self.missing.0 = self.active.length - active.length;
            self.missing.1 = self.exclusive.length - exclusive.length;
            self.center = None;
        }
    }
}

struct Covers<'a> {
    tracked: Cover,
    functions: Vec<FunctionCovers>,
    /// Per function: which calls belong to the center.
    keep: &'a mut [Keep],
    /// By thread and depth: what was decided for the latest call there.
    decided: IntMap<bool>,
}

impl Covers<'_> {
    #[inline]
    fn add(&mut self, piece: &Piece) {
        let covers = &mut self.functions[piece.function as usize];
        if piece.kept == Kept::Yes && covers.center.is_none() {
            covers.add(piece);
        } else {
            self.add_rare(piece);
        }
    }

    #[inline(never)]
    fn add_rare(&mut self, piece: &Piece) {
        let kept = match piece.kept {
            Kept::Yes => true,
            Kept::No => false,
            Kept::Open { .. } => self.decide(piece),
        };
        self.functions[piece.function as usize].add_apart(piece, kept);
    }

    /// Whether a call as long as the shortest or longest of the center belongs to it.
    #[cold]
    fn decide(&mut self, piece: &Piece) -> bool {
        let Kept::Open { longest } = piece.kept else { return false };
        let place = pair(piece.thread, piece.depth);
        if piece.is_call {
            let keep = &mut self.keep[piece.function as usize];
            let duration = if longest { keep.longest } else { keep.shortest };
            self.decided.insert(place, keep.keeps(duration));
        }
        self.decided.get(&place).copied().unwrap_or_default()
    }

    /// Adds two descending lists.
    fn add_both(&mut self, a: &[Piece], b: &[Piece]) {
        let (mut i, mut j, mut tracked) = (0, 0, self.tracked);
        let mut add = |piece: &Piece| {
            tracked.add(piece.start, piece.end);
            self.add(piece);
        };
        while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
            let first = x.end >= y.end;
            add(select_unpredictable(first, x, y));
            i += usize::from(first);
            j += usize::from(!first);
        }
        a[i..].iter().for_each(&mut add);
        b[j..].iter().for_each(&mut add);
        self.tracked = tracked;
    }
}

/// A thread that has come into view, and its next pieces.
struct Source<'a> {
    walk: Walk<'a>,
    pieces: Vec<Piece>,
    /// Pieces before this one are done, and those before `until` are of this block.
    from: usize,
    until: usize,
}

impl Source<'_> {
    /// Makes sure that a piece is there unless all are done. Gives the end above which all are.
    fn fill(&mut self, count: usize, nodes: &[Node], keep: &[Keep]) -> u64 {
        if self.from == self.pieces.len() {
            self.pieces.clear();
            self.from = 0;
            self.walk.fill(count, nodes, keep, &mut self.pieces);
        }
        let last = self.pieces.last().filter(|_| !self.walk.is_done());
        last.map_or(0, |piece| piece.end)
    }

    fn take(&mut self, down_to: u64) {
        let rest = &self.pieces[self.from..];
        self.until = self.from + rest.partition_point(|piece| piece.end >= down_to);
    }

    fn block(&self) -> &[Piece] {
        &self.pieces[self.from..self.until]
    }
}

/// The unions within `window`; `keep` says for each function which calls are its center.
pub(crate) fn unions(
    window: Window,
    threads: Vec<ThreadCalls>,
    nodes: &[Node],
    keep: &mut [Keep],
) -> Unions {
    let functions = vec![FunctionCovers::EMPTY; keep.len()];
    let mut covers = Covers { tracked: Cover::EMPTY, functions, keep, decided: IntMap::default() };
    // Threads whose last call is not reached yet; that of the last one is the latest.
    let walks = threads.into_iter().enumerate();
    let mut waiting = walks.map(|(i, t)| Walk::new(window, i, t)).collect::<Vec<_>>();
    waiting.sort_by_key(Walk::end);
    let mut sources = Vec::<Source>::new();
    let mut others = Vec::new();
    loop {
        let count = (BLOCK / (sources.len() + 1)).max(LEAST);
        let mut down_to = 0;
        for source in &mut sources {
            down_to = source.fill(count, nodes, covers.keep).max(down_to);
        }
        while let Some(walk) = waiting.pop_if(|walk| walk.end() >= down_to) {
            let mut source = Source { walk, pieces: Vec::new(), from: 0, until: 0 };
            down_to = source.fill(count, nodes, covers.keep).max(down_to);
            sources.push(source);
        }
        sources.iter_mut().for_each(|source| source.take(down_to));
        match &sources[..] {
            [] => break,
            [only] => covers.add_both(only.block(), &[]),
            [one, other] => covers.add_both(one.block(), other.block()),
            [one, rest @ ..] => {
                others.clear();
                rest.iter().for_each(|source| others.extend_from_slice(source.block()));
                others.sort_by_key(|piece: &Piece| Reverse(piece.end));
                covers.add_both(one.block(), &others);
            }
        }
        sources.iter_mut().for_each(|source| source.from = source.until);
        sources.retain(|source| source.from < source.pieces.len() || !source.walk.is_done());
    }
    let functions = covers.functions.iter().map(|function| FunctionUnions {
        active: function.active.length,
        exclusive: function.exclusive.length,
        center_active: function.center().0.length,
        center_exclusive: function.center().1.length,
    });
    Unions { tracked: covers.tracked.length, functions: functions.collect() }
}
