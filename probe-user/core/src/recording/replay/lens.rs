//! Maps the recorded tree of call paths to a query's own tree.

use super::Query;
use crate::calls::paths::{Node, Paths, ROOT};
use crate::filter::Filter;
use crate::function::FunctionInfo;
use crate::recording::{Chunk, ChunkEntry, RecordError, Recording, ThreadRecord};
use crate::units::{FuncId, Nanos, ThreadId};
use crate::waits::WaitClass;
use std::collections::BTreeSet;
use std::ops::Range;

/// Decides which calls count, and at which nodes of the query's tree.
#[derive(Debug)]
pub(crate) struct Lens<'a> {
    query: &'a Query,
    /// The node at which calls count, by recorded node.
    map: Vec<Option<u32>>,
    /// The waits among the recorded nodes. Empty if there are none.
    waits: Vec<Option<WaitClass>>,
    pub(crate) paths: Paths,
    /// The functions whose recursion was folded.
    pub(crate) folded: BTreeSet<FuncId>,
    min_duration: u64,
    pub(crate) window: Range<u64>,
}

fn is_in(functions: Option<&Vec<bool>>, function: FuncId) -> bool {
    functions.is_none_or(|functions| functions.get(function.index()).copied().unwrap_or(false))
}

impl<'a> Lens<'a> {
    pub(crate) fn new(query: &'a Query, nodes: &[Node], functions: &[FunctionInfo]) -> Self {
        let wait = |node: &Node| functions.get(node.func.index())?.wait;
        let mut waits: Vec<_> = nodes.iter().map(wait).collect();
        if waits.iter().all(Option::is_none) {
            waits.clear();
        }
        let mut paths = Paths::new(usize::MAX, usize::MAX);
        let (mut map, mut folded) = (vec![None; nodes.len()], BTreeSet::new());
        // By recorded node: the children's parent, and whether a root and a caller are on the path.
        let mut places = vec![(ROOT, query.roots.is_none(), query.callers.is_none()); nodes.len()];
        for (id, node) in nodes.iter().enumerate().skip(1) {
            let (above, rooted, called) = places[node.parent as usize];
            let function = node.func;
            let rooted = rooted || is_in(query.roots.as_ref(), function);
            let called = called || is_in(query.callers.as_ref(), function);
            // A wait divides the time of the call around it, so it counts wherever that does, or where
            // just it is asked for.
            let is_chosen = match waits.get(id) {
                Some(Some(_)) => {
                    let is_caller =
                        query.callers.is_some() && is_in(query.callers.as_ref(), function);
                    above != ROOT || node.other || is_caller
                }
                _ => {
                    is_in(query.functions.as_ref(), function)
                        && query.filter.selects_depth(paths.nodes()[above as usize].depth)
                }
            };
            let counts = rooted && called && is_chosen;
            let place = match counts {
                false => above,
                true if node.other => paths.other(function),
                true => match Self::outer(query, &paths, above, function) {
                    Some(outer) => {
                        folded.insert(function);
                        outer
                    }
                    None => paths.child(above, function),
                },
            };
            map[id] = counts.then_some(place);
            places[id] = (place, rooted, called);
        }
        let window = query.window.as_ref().map_or(0..u64::MAX, |w| w.start.0..w.end.0);
        Self { query, map, waits, paths, folded, min_duration: query.filter.min_duration.0, window }
    }

    /// Returns the node of a call of the same function around this one, if recursion is folded.
    fn outer(query: &Query, paths: &Paths, above: u32, function: FuncId) -> Option<u32> {
        let mut at = above;
        while query.fold_recursion && at != ROOT {
            let node = paths.nodes()[at as usize];
            if node.func == function {
                return Some(at);
            }
            at = node.parent;
        }
        None
    }

    /// Returns the query for all calls of the same threads, from the beginning on.
    pub(super) fn query_of_threads(&self) -> Query {
        let Query { filter, threads, within, stop, .. } = self.query;
        Query {
            filter: Filter { threads: filter.threads.clone(), ..Filter::default() },
            threads: threads.clone(),
            within: within.clone(),
            stop: stop.clone(),
            ..Query::default()
        }
    }

    /// True if every call of a chosen thread counts, but for functions and times.
    pub(super) fn keeps_all_calls(&self) -> bool {
        self.query.within.is_none()
    }

    /// True if nobody waits for the answer any more.
    pub(super) fn is_stopped(&self) -> bool {
        self.query.stop.is_stopped()
    }

    /// Reads a chunk, unless the query was stopped.
    pub(crate) fn read(
        &self,
        recording: &Recording,
        entry: &ChunkEntry,
    ) -> Result<Chunk, RecordError> {
        match self.is_stopped() {
            true => Err(RecordError::Stopped),
            false => recording.chunk(entry),
        }
    }

    /// Returns the chunks that begin before the window ends.
    pub(crate) fn chunks<'c>(&self, chunks: &'c [ChunkEntry]) -> &'c [ChunkEntry] {
        &chunks[..chunks.partition_point(|chunk| chunk.from.0 < self.window.end)]
    }

    /// Returns those of the same that tell which calls ended in the window, and which are open at its end.
    /// What ran inside these before the window is not in them.
    pub(super) fn chunks_of_window<'c>(&self, chunks: &'c [ChunkEntry]) -> &'c [ChunkEntry] {
        let chunks = self.chunks(chunks);
        // Whether a call counts may depend on what ran inside it.
        if self.asks_for_callees() {
            return chunks;
        }
        let before = chunks.partition_point(|chunk| chunk.to.0 <= self.window.start);
        &chunks[before.min(chunks.len().saturating_sub(1))..]
    }

    pub(crate) fn selects_function(&self, function: FuncId) -> bool {
        is_in(self.query.functions.as_ref(), function)
    }

    /// True if the query is about some threads, and not all of them.
    fn asks_for_threads(&self) -> bool {
        self.query.threads.is_some()
    }

    /// True if the query is about a part of what was traced.
    pub(crate) fn asks_for_a_part(&self) -> bool {
        self.asks_for_threads() || self.query.within.is_some()
    }

    /// True if the query is about this thread. Its filter may leave it out.
    pub(crate) fn has_thread(&self, thread: ThreadId) -> bool {
        self.query.threads.as_ref().is_none_or(|some| some.contains(&thread))
    }

    pub(crate) fn selects_thread(&self, thread: Option<&ThreadRecord>) -> bool {
        let filter = &self.query.filter;
        match thread {
            Some(thread) => {
                self.has_thread(thread.id) && filter.selects_thread(thread.tid, &thread.name)
            }
            None => !self.asks_for_threads() && filter.threads.is_empty(),
        }
    }

    /// Returns the class of the waits of a recorded node, if it is one of waits.
    #[inline]
    pub(crate) fn wait(&self, recorded: u32) -> Option<WaitClass> {
        self.waits.get(recorded as usize).copied().flatten()
    }

    /// Returns the node at which calls of a recorded node count.
    #[inline]
    pub(crate) fn node(&self, recorded: u32) -> Option<u32> {
        self.map[recorded as usize]
    }

    /// True if a call of this thread that begins then is in one that the query asks for.
    #[inline]
    pub(crate) fn is_within(&self, thread: ThreadId, start: u64) -> bool {
        self.query.within.as_ref().is_none_or(|within| within.holds(thread, start))
    }

    /// True if a call of this recorded node that ended is long enough. A wait always is.
    #[inline]
    pub(crate) fn is_long_enough(&self, recorded: u32, duration: u64, timed: bool) -> bool {
        !timed || duration >= self.min_duration || self.wait(recorded).is_some()
    }

    /// True if `end` is after the window's start. Calls that end later are clipped before.
    #[inline]
    pub(crate) fn is_in_window(&self, end: u64) -> bool {
        end > self.window.start || self.window.start == 0
    }

    /// True if only calls of some functions and the calls around them count.
    pub(crate) fn asks_for_callees(&self) -> bool {
        self.query.callees.is_some()
    }

    /// True if the function at this node of the query's is one that the query asks for.
    pub(crate) fn is_callee(&self, node: Option<u32>) -> bool {
        node.is_some_and(|node| {
            is_in(self.query.callees.as_ref(), self.paths.nodes()[node as usize].func)
        })
    }

    /// True if chunks after the one in which a call is open may decide whether it counts.
    pub(crate) fn looks_ahead(&self) -> bool {
        self.asks_for_callees() || self.min_duration > 0
    }

    /// Returns the part of a stretch of time that is within the window.
    pub(crate) fn clip(&self, from: Nanos, to: Nanos) -> Range<u64> {
        from.0.max(self.window.start)..to.0.min(self.window.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the paths that nodes a, ab, abc, abb and c are mapped to; `-` for none.
    #[track_caller]
    fn check(query: Query, expected: [&str; 5]) {
        let mut paths = Paths::new(9, 9);
        let a = paths.child(ROOT, FuncId(0));
        let ab = paths.child(a, FuncId(1));
        let (abc, abb) = (paths.child(ab, FuncId(2)), paths.child(ab, FuncId(1)));
        let c = paths.child(ROOT, FuncId(2));
        let lens = Lens::new(&query, paths.nodes(), &[]);
        let path = |recorded| {
            let Some(mut node) = lens.node(recorded) else { return "-".to_owned() };
            let mut names = String::new();
            while node != ROOT {
                let at = lens.paths.nodes()[node as usize];
                names.insert(0, char::from(b'a' + at.func.0 as u8));
                node = at.parent;
            }
            names
        };
        assert_eq!([a, ab, abc, abb, c].map(path), expected, "{query:?}");
    }

    #[test]
    fn paths_are_seen_as_asked_for() {
        let only = |functions: &[usize]| Some((0..3).map(|f| functions.contains(&f)).collect());
        check(Query::default(), ["a", "ab", "abc", "abb", "c"]);
        check(Query { functions: only(&[0, 2]), ..Query::default() }, ["a", "-", "ac", "-", "c"]);
        check(Query { callers: only(&[1]), ..Query::default() }, ["-", "b", "bc", "bb", "-"]);
        check(Query { roots: only(&[2]), ..Query::default() }, ["-", "-", "c", "-", "c"]);
        check(Query { fold_recursion: true, ..Query::default() }, ["a", "ab", "abc", "ab", "c"]);
        let filter = Filter { max_depth: Some(2), ..Filter::default() };
        check(Query { filter, ..Query::default() }, ["a", "ab", "-", "-", "c"]);
    }
}
