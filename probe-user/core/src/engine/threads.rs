//! The live threads, by process and thread id, and a row for each that is gone.
//!
//! A pair of USDT probes that the order of events joins overlaps with the thread's other calls in
//! any way. So it has a thread of its own here, beside that one: calls of one thread are inside each
//! other.

mod goroutines;

use crate::engine::by_process::ByProcess;
use crate::engine::ledger::Ledger;
use crate::engine::programs::Programs;
use crate::engine::stack::Stacks;
use crate::goroutines::first_name;
use crate::hash::{IntMap, pair};
use crate::report::ThreadReport;
use crate::units::{FuncId, Nanos, Pid, ThreadId, Tid};
use ctrace_common::is_goroutine;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The number of rows of dead threads that are kept for a report.
const MAX_ROWS: usize = 65_536;
/// The slots of the look-up cache: more than the threads that run at one time.
const CACHE: usize = 256;

#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    pub(crate) name: Arc<str>,
    /// The time of the first event in this period.
    pub(crate) first: Option<u64>,
    /// It has had an event of its own in an earlier period.
    had_events: bool,
    pub(crate) stacks: Stacks,
    /// Who has woken it, until its wait is seen to end.
    pub(super) woken_by: Option<String>,
    /// For a pair of USDT probes, the thread with these ids, and the pair.
    beside: Option<(ThreadId, FuncId)>,
    /// It has taken over the id of another thread by an exec, and that one's calls.
    has_taken_over: bool,
}

impl Thread {
    #[cold]
    fn begin(id: ThreadId, pid: Pid, tid: Tid, ledger: &Ledger) -> Self {
        let name = first_name(tid);
        let selected = ledger.filter.selects_thread(tid, &name);
        let stacks = Stacks::new(id, selected);
        Self {
            pid,
            tid,
            name,
            first: None,
            had_events: false,
            stacks,
            woken_by: None,
            beside: None,
            has_taken_over: false,
        }
    }

    /// Returns false for one that was forked inside a call and has had no event of its own.
    pub(super) fn has_had_events(&self) -> bool {
        self.had_events || self.first.is_some()
    }

    fn take_name(&mut self, name: Arc<str>, selected: bool) {
        self.name = name;
        self.stacks.selected = selected;
    }

    fn named(&self) -> ThreadName {
        let &Self { pid, tid, ref name, .. } = self;
        let beside = self.beside.map(|(thread, _)| thread);
        let (id, name) = (self.stacks.account.thread(), Arc::clone(name));
        ThreadName { id, pid, tid, name, beside, end: None }
    }

    /// Returns a row for the report, if the thread made calls.
    fn row(&self) -> Option<ThreadReport> {
        let open = self.stacks.open().len() as u64;
        let calls = self.stacks.account.calls.saturating_add(open);
        (calls > 0).then(|| ThreadReport {
            pid: self.pid,
            tid: self.tid,
            name: self.name.clone(),
            calls,
            open,
            first_ns: Nanos(self.first.unwrap_or(self.stacks.last)),
            last_ns: Nanos(self.stacks.last),
        })
    }
}

/// A thread that began, was renamed or ended.
#[derive(Clone, Debug)]
pub(crate) struct ThreadName {
    pub(crate) id: ThreadId,
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    pub(crate) name: Arc<str>,
    pub(crate) beside: Option<ThreadId>,
    /// Its end, if it has ended and its work is known.
    pub(crate) end: Option<ThreadEnd>,
}

/// The facts that are known of a thread when it ends: its process may execute another program right after.
#[derive(Clone, Debug)]
pub(crate) struct ThreadEnd {
    /// The most that it may have worked.
    pub(crate) work: Nanos,
    pub(crate) program: Option<Arc<str>>,
    pub(crate) cgroup: Option<Arc<str>>,
}

/// Returns the key of a pair beside a thread. No process has such an id.
fn key_beside(tid: Tid, func: FuncId) -> u64 {
    pair(1 << 31 | func.0, tid.0)
}

/// Returns an empty cache entry: a key that no thread looked up at this place has.
fn empty(place: usize) -> (u64, usize) {
    (pair(u32::MAX, place as u32 + 1), usize::MAX)
}

#[derive(Debug)]
pub(crate) struct Threads {
    slots: Vec<Option<Thread>>,
    free: Vec<usize>,
    ids: IntMap<usize>,
    cache: Vec<(u64, usize)>,
    /// The rows of threads that are gone, and the number of further ones.
    rows: Vec<ThreadReport>,
    more_rows: u64,
    /// The number of threads so far.
    begun: u32,
    /// The number of goroutines that are kept.
    goroutines: usize,
    /// By thread: the pairs of USDT probes that have stacks of their own beside its stacks. In
    /// reports they are part of the thread.
    beside: HashMap<(Pid, Tid), Vec<FuncId>>,
    /// For a recording: names since they were last taken, and ended threads.
    names: Option<Vec<ThreadName>>,
    ended: Vec<ThreadId>,
    /// Threads that made calls in this period and are gone, if somebody asks for them.
    gone: Option<Vec<ThreadName>>,
    pub(crate) programs: Programs,
    /// The control groups of the processes.
    pub(crate) groups: ByProcess,
}

impl Threads {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            ids: IntMap::default(),
            cache: (0..CACHE).map(empty).collect(),
            rows: Vec::new(),
            more_rows: 0,
            begun: 0,
            goroutines: 0,
            beside: HashMap::new(),
            names: None,
            ended: Vec::new(),
            gone: None,
            programs: Programs::default(),
            groups: ByProcess::default(),
        }
    }

    /// Starts to keep names until they are taken.
    pub(crate) fn keep_names(&mut self) {
        self.names = Some(Vec::new());
    }

    /// Keeps threads that are gone until the end of the period, or no longer.
    pub(crate) fn keep_the_gone(&mut self, is_asked: bool) {
        self.gone = is_asked.then(|| self.gone.take().unwrap_or_default());
    }

    /// Returns all threads of the period that are there or kept.
    pub(crate) fn all_named(&self) -> HashMap<ThreadId, ThreadName> {
        let all = self.iter().map(Thread::named).chain(self.gone.iter().flatten().cloned());
        all.map(|thread| (thread.id, thread)).collect()
    }

    /// Returns the threads that began, were renamed or ended since the last time; the last name counts.
    pub(crate) fn take_names(&mut self) -> Vec<ThreadName> {
        self.names.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns the threads that ended since the last time, if names are kept.
    pub(crate) fn take_ended(&mut self) -> Vec<ThreadId> {
        std::mem::take(&mut self.ended)
    }

    /// Returns the thread, which begins here if it is not known.
    #[inline]
    pub(crate) fn get(&mut self, pid: Pid, tid: Tid, ledger: &Ledger) -> &mut Thread {
        let key = pair(pid.0, tid.0);
        let cached = self.cache[tid.0 as usize % CACHE];
        let slot = if cached.0 == key { cached.1 } else { self.find(pid, tid, ledger) };
        self.occupied(slot, pid, tid, ledger)
    }

    /// Returns the thread if it is known.
    pub(crate) fn known(&mut self, pid: Pid, tid: Tid) -> Option<&mut Thread> {
        let slot = *self.ids.get(&pair(pid.0, tid.0))?;
        self.slots[slot].as_mut()
    }

    #[inline(never)]
    fn find(&mut self, pid: Pid, tid: Tid, ledger: &Ledger) -> usize {
        let key = pair(pid.0, tid.0);
        let slot = self.slot(key);
        self.occupied(slot, pid, tid, ledger);
        self.cache[tid.0 as usize % CACHE] = (key, slot);
        slot
    }

    /// Returns the slot of a thread, or a free one for it.
    fn slot(&mut self, key: u64) -> usize {
        *self.ids.entry(key).or_insert_with(|| {
            self.free.pop().unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            })
        })
    }

    /// Returns the thread of a pair beside this one.
    pub(crate) fn beside(
        &mut self,
        pid: Pid,
        tid: Tid,
        func: FuncId,
        ledger: &mut Ledger,
    ) -> &mut Thread {
        let key = key_beside(tid, func);
        // The end of another process's thread of this id was lost.
        let known = self.ids.get(&key).and_then(|slot| self.slots[*slot].as_ref());
        if let Some(stale) = known.map(|thread| thread.pid).filter(|of| *of != pid) {
            self.end(stale, tid, ledger);
        }
        if !self.ids.contains_key(&key) {
            let thread = self.get(pid, tid, ledger);
            let (name, selected) = (Arc::clone(&thread.name), thread.stacks.selected);
            let id = thread.stacks.account.thread();
            self.beside.entry((pid, tid)).or_default().push(func);
            let slot = self.slot(key);
            let beside = self.occupied(slot, pid, tid, ledger);
            beside.beside = Some((id, func));
            beside.take_name(name, selected);
            let named = beside.named();
            if let Some(names) = &mut self.names {
                names.push(named);
            }
        }
        let slot = self.slot(key);
        self.occupied(slot, pid, tid, ledger)
    }

    /// Returns the slots of the pairs beside a thread.
    fn slots_beside(&self, pid: Pid, tid: Tid) -> Vec<usize> {
        let pairs = self.beside.get(&(pid, tid)).into_iter().flatten();
        pairs.filter_map(|&func| self.ids.get(&key_beside(tid, func)).copied()).collect()
    }

    /// Notes that events of this thread were lost, for the pairs beside it.
    #[cold]
    pub(crate) fn damage_beside(&mut self, pid: Pid, tid: Tid) {
        for slot in self.slots_beside(pid, tid) {
            self.slots[slot].iter_mut().for_each(|thread| thread.stacks.damage());
        }
    }

    #[inline]
    fn occupied(&mut self, slot: usize, pid: Pid, tid: Tid, ledger: &Ledger) -> &mut Thread {
        let (begun, goroutines) = (&mut self.begun, &mut self.goroutines);
        let names = &mut self.names;
        self.slots[slot].get_or_insert_with(|| {
            *begun += 1;
            *goroutines += usize::from(is_goroutine(tid.0));
            let thread = Thread::begin(ThreadId(*begun), pid, tid, ledger);
            if let Some(names) = names {
                names.push(thread.named());
            }
            thread
        })
    }

    /// Renames the thread from here on.
    pub(crate) fn rename(&mut self, pid: Pid, tid: Tid, name: &str, ledger: &Ledger) {
        let thread = self.get(pid, tid, ledger);
        if *thread.name == *name {
            return;
        }
        let selected = ledger.filter.selects_thread(tid, name);
        thread.take_name(name.into(), selected);
        let mut named = vec![thread.named()];
        for slot in self.slots_beside(pid, tid) {
            let Some(thread) = &mut self.slots[slot] else { continue };
            thread.take_name(name.into(), selected);
            named.push(thread.named());
        }
        if let Some(names) = &mut self.names {
            names.extend(named);
        }
    }

    /// Notes that a thread, which had the id `by`, has executed a program. `name` is what the kernel's record
    /// has of it. The thread is named again, as a recording has the program along with the name.
    pub(crate) fn execute(
        &mut self,
        (pid, tid, by): (Pid, Tid, Tid),
        at: Nanos,
        name: &str,
        ledger: &Ledger,
    ) {
        self.programs.execute(pid, at, name);
        let thread = self.get(pid, tid, ledger);
        thread.has_taken_over |= by != tid;
        let named = thread.named();
        if let Some(names) = &mut self.names {
            names.push(named);
        }
    }

    /// Returns the live threads.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Thread> {
        self.slots.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.slots.iter_mut().flatten()
    }

    /// Ends the open calls of these functions: their ends are not seen from `at` on.
    pub(crate) fn forsake(&mut self, functions: &HashSet<FuncId>, at: u64, ledger: &mut Ledger) {
        for thread in self.iter_mut() {
            thread.stacks.forsake(functions, at, ledger);
            if thread.beside.is_some_and(|(_, pair)| functions.contains(&pair)) {
                thread.stacks.owe_nothing();
            }
        }
    }

    /// Ends the calls of a thread that runs on with another program.
    pub(crate) fn close(&mut self, pid: Pid, tid: Tid, ledger: &mut Ledger) {
        self.get(pid, tid, ledger).stacks.close(ledger);
        for slot in self.slots_beside(pid, tid) {
            self.slots[slot].iter_mut().for_each(|thread| thread.stacks.close(ledger));
        }
    }

    /// Ends a thread that is gone, and its calls.
    pub(crate) fn end(&mut self, pid: Pid, tid: Tid, ledger: &mut Ledger) {
        self.exit(pid, tid, None, ledger);
    }

    /// Does so, knowing the most that it may have worked in its life.
    pub(crate) fn exit(&mut self, pid: Pid, tid: Tid, work: Option<Nanos>, ledger: &mut Ledger) {
        let has_taken_over = self.known(pid, tid).is_some_and(|thread| thread.has_taken_over);
        let work = work.filter(|_| !has_taken_over);
        let pairs = self.beside.remove(&(pid, tid)).unwrap_or_default();
        let keys = pairs.into_iter().map(|func| key_beside(tid, func));
        let keys = std::iter::once(pair(pid.0, tid.0)).chain(keys);
        let rows: Vec<_> = keys.filter_map(|key| self.remove(key, tid, work, ledger)).collect();
        match rows.into_iter().filter_map(|thread| thread.row()).reduce(ThreadReport::with_beside) {
            Some(row) if self.rows.len() < MAX_ROWS => self.rows.push(row),
            Some(_) => self.more_rows += 1,
            None => {}
        }
    }

    /// Removes a thread, or a pair beside it, and ends its calls.
    fn remove(
        &mut self,
        key: u64,
        tid: Tid,
        work: Option<Nanos>,
        ledger: &mut Ledger,
    ) -> Option<Thread> {
        let slot = self.ids.remove(&key)?;
        let cached = &mut self.cache[tid.0 as usize % CACHE];
        if cached.0 == key {
            *cached = empty(tid.0 as usize % CACHE);
        }
        self.free.push(slot);
        let mut thread = self.slots[slot].take()?;
        self.goroutines -= usize::from(is_goroutine(thread.tid.0));
        thread.stacks.close(ledger);
        if let Some(gone) = &mut self.gone
            && thread.stacks.account.calls > 0
            && gone.len() < MAX_ROWS
        {
            gone.push(thread.named());
        }
        if let Some(most) = work {
            ledger.know_work(&thread.stacks.account, most);
        }
        if let Some(names) = &mut self.names {
            let (program, cgroup) = (self.programs.of(thread.pid), self.groups.of(thread.pid));
            let end = work.map(|work| ThreadEnd { work, program, cgroup });
            names.extend(end.map(|end| ThreadName { end: Some(end), ..thread.named() }));
            self.ended.push(thread.stacks.account.thread());
        }
        Some(thread)
    }

    /// Ends all threads of the process except `survivor`.
    pub(crate) fn end_all(&mut self, pid: Pid, survivor: Option<Tid>, ledger: &mut Ledger) {
        let gone = self.iter().filter(|t| t.pid == pid && Some(t.tid) != survivor);
        for tid in gone.map(|thread| thread.tid).collect::<Vec<_>>() {
            self.end(pid, tid, ledger);
        }
    }

    /// Returns the rows of threads that made calls, by their first event, and the number of rows
    /// left out.
    pub(crate) fn rows(&self) -> (Vec<ThreadReport>, u64) {
        let mut rows = self.rows.clone();
        rows.extend(self.iter().filter(|thread| thread.beside.is_none()).filter_map(|thread| {
            let beside = self.slots_beside(thread.pid, thread.tid).into_iter();
            let beside = beside.filter_map(|slot| self.slots[slot].as_ref()?.row());
            thread.row().into_iter().chain(beside).reduce(ThreadReport::with_beside)
        }));
        rows.sort_by_key(|row| (row.first_ns, row.pid, row.tid));
        (rows, self.more_rows)
    }

    /// Begins a new period.
    pub(crate) fn reset(&mut self) {
        for thread in self.slots.iter_mut().flatten() {
            thread.had_events = thread.has_had_events();
            thread.first = None;
            thread.stacks.account.reset();
        }
        self.rows = Vec::new();
        self.gone.iter_mut().for_each(Vec::clear);
        self.more_rows = 0;
    }
}

#[cfg(test)]
mod tests;
