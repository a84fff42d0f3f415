//! The threads that live, by process and thread id, and a row for each that is gone.

use crate::hash::{IntMap, pair};
use crate::ledger::Ledger;
use crate::report::ThreadReport;
use crate::stack::Stacks;
use crate::units::{Nanos, Pid, Tid};
use std::sync::Arc;

/// Rows of dead threads that are kept for a report.
const MAX_ROWS: usize = 65_536;
/// Slots of the look-up cache: more than the threads that run at one time.
const CACHE: usize = 256;

#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    pub(crate) name: Arc<str>,
    /// First event in this period.
    pub(crate) first: Option<u64>,
    pub(crate) stacks: Stacks,
}

impl Thread {
    pub(crate) fn rename(&mut self, name: &str, ledger: &Ledger) {
        if *self.name != *name {
            self.name = name.into();
            self.stacks.selected = ledger.filter.selects_thread(self.tid, name);
        }
    }

    /// A row for the report, if the thread made calls.
    pub(crate) fn row(&self) -> Option<ThreadReport> {
        let calls = self.stacks.account.calls + self.stacks.open().len() as u64;
        (calls > 0).then(|| ThreadReport {
            pid: self.pid,
            tid: self.tid,
            name: self.name.clone(),
            calls,
            first_ns: Nanos(self.first.unwrap_or(self.stacks.last)),
            last_ns: Nanos(self.stacks.last),
        })
    }
}

#[derive(Debug)]
pub(crate) struct Threads {
    slots: Vec<Option<Thread>>,
    free: Vec<usize>,
    ids: IntMap<usize>,
    cache: Vec<(u64, usize)>,
    /// Threads that are gone, and how many more there were.
    rows: Vec<ThreadReport>,
    more_rows: u64,
}

impl Threads {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            ids: IntMap::default(),
            cache: vec![(u64::MAX, usize::MAX); CACHE],
            rows: Vec::new(),
            more_rows: 0,
        }
    }

    /// The thread, which begins here if it is not known.
    #[inline]
    pub(crate) fn get(&mut self, pid: Pid, tid: Tid, ledger: &Ledger) -> &mut Thread {
        let key = pair(pid.0, tid.0);
        let cached = self.cache[tid.0 as usize % CACHE];
        let slot = if cached.0 == key { cached.1 } else { self.find(pid, tid, ledger) };
        self.slots[slot].get_or_insert_with(|| Self::begin(pid, tid, ledger))
    }

    #[inline(never)]
    fn find(&mut self, pid: Pid, tid: Tid, ledger: &Ledger) -> usize {
        let key = pair(pid.0, tid.0);
        let slot = *self.ids.entry(key).or_insert_with(|| {
            self.free.pop().unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            })
        });
        self.slots[slot].get_or_insert_with(|| Self::begin(pid, tid, ledger));
        self.cache[tid.0 as usize % CACHE] = (key, slot);
        slot
    }

    #[cold]
    fn begin(pid: Pid, tid: Tid, ledger: &Ledger) -> Thread {
        let selected = ledger.filter.selects_thread(tid, "");
        Thread { pid, tid, name: "".into(), first: None, stacks: Stacks::new(selected) }
    }

    /// Those that live.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Thread> {
        self.slots.iter().flatten()
    }

    /// The thread is gone; its calls end.
    pub(crate) fn end(&mut self, pid: Pid, tid: Tid, ledger: &mut Ledger) {
        let key = pair(pid.0, tid.0);
        let Some(slot) = self.ids.remove(&key) else { return };
        let cached = &mut self.cache[tid.0 as usize % CACHE];
        if cached.0 == key {
            *cached = (u64::MAX, usize::MAX);
        }
        self.free.push(slot);
        let Some(mut thread) = self.slots[slot].take() else { return };
        thread.stacks.close(ledger);
        match thread.row() {
            Some(row) if self.rows.len() < MAX_ROWS => self.rows.push(row),
            Some(_) => self.more_rows += 1,
            None => {}
        }
    }

    /// All threads of the process but `survivor` are gone.
    pub(crate) fn end_all(&mut self, pid: Pid, survivor: Option<Tid>, ledger: &mut Ledger) {
        let gone = self.iter().filter(|t| t.pid == pid && Some(t.tid) != survivor);
        for tid in gone.map(|thread| thread.tid).collect::<Vec<_>>() {
            self.end(pid, tid, ledger);
        }
    }

    /// Threads that made calls, by their first event, and how many are left out.
    pub(crate) fn rows(&self) -> (Vec<ThreadReport>, u64) {
        let mut rows = self.rows.clone();
        rows.extend(self.iter().filter_map(Thread::row));
        rows.sort_by_key(|row| (row.first_ns, row.pid, row.tid));
        (rows, self.more_rows)
    }

    /// A new period begins.
    pub(crate) fn reset(&mut self) {
        for thread in self.slots.iter_mut().flatten() {
            thread.first = None;
            thread.stacks.account.reset();
        }
        self.rows = Vec::new();
        self.more_rows = 0;
    }
}
