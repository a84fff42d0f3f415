//! The bound on goroutines: ids of Go never come again, and nothing tells when a goroutine ends.

use super::{Thread, Threads};
use crate::engine::ledger::Ledger;
use ctrace_common::{goroutine_id, is_goroutine};

/// The number of goroutines that are kept: nothing tells when one ends, and a program may claim to have any.
const MOST_GOROUTINES: usize = 65_536;
/// The goroutine that runs `main`. The program ends with it.
const MAIN_GOROUTINE: u32 = 1;

impl Threads {
    /// Ends goroutines if there are too many: first those that are in no call, last the one that cannot have
    /// ended, and of the same kind those that were seen last the longest time ago.
    #[inline]
    pub(crate) fn bound_goroutines(&mut self, ledger: &mut Ledger) {
        if self.goroutines > MOST_GOROUTINES {
            self.end_goroutines(self.goroutines - MOST_GOROUTINES / 2, ledger);
        }
    }

    #[cold]
    fn end_goroutines(&mut self, number: usize, ledger: &mut Ledger) {
        let goroutines = self.iter().filter(|thread| is_goroutine(thread.tid.0));
        let order = |it: &Thread| {
            let is_main = goroutine_id(it.tid.0) == Some(MAIN_GOROUTINE);
            (!it.stacks.open().is_empty(), is_main, it.stacks.last, it.pid, it.tid)
        };
        let mut order: Vec<_> = goroutines.map(order).collect();
        order.sort_unstable();
        order.iter().take(number).for_each(|&(.., pid, tid)| self.end(pid, tid, ledger));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::paths::Paths;
    use crate::calls::spool::Spool;
    use crate::filter::Filter;
    use crate::units::{FuncId, Pid, Tid};

    /// A process may claim to have any number of goroutines.
    #[test]
    fn goroutines_without_end_take_bounded_memory() {
        let mut ledger = Ledger::new(Paths::new(9, 9), Spool::new(999), Filter::default());
        let mut threads = Threads::new();
        for number in 0..3 * MOST_GOROUTINES as u32 {
            threads.get(Pid(1), Tid(1 << 30 | number), &ledger).stacks.last = u64::from(number);
            threads.get(Pid(1), Tid(7), &ledger);
            threads.bound_goroutines(&mut ledger);
            assert!(threads.goroutines <= MOST_GOROUTINES);
        }
        assert!(threads.slots.len() <= MOST_GOROUTINES + 2, "{}", threads.slots.len());
        assert!(threads.known(Pid(1), Tid(1 << 30)).is_none(), "it was seen first");
        assert!(threads.known(Pid(1), Tid(1 << 30 | (3 * MOST_GOROUTINES as u32 - 1))).is_some());
        assert!(threads.known(Pid(1), Tid(7)).is_some(), "a thread stays until it ends");
    }

    /// Ids of Go never come again: those of goroutines that ended inside a call would stay for ever.
    #[test]
    fn goroutines_that_ended_inside_calls_are_forgotten_before_the_first_one() {
        let mut ledger = Ledger::new(Paths::new(9, 9), Spool::new(999), Filter::default());
        ledger.functions.push(Default::default());
        let mut threads = Threads::new();
        let last = 2 * MOST_GOROUTINES as u32;
        for id in 1..=last {
            let time = u64::from(id);
            let stacks = &mut threads.get(Pid(1), Tid(1 << 30 | id), &ledger).stacks;
            stacks.enter_by_order(FuncId(0), time, false, &mut ledger);
            stacks.last = time;
            threads.bound_goroutines(&mut ledger);
            assert!(threads.goroutines <= MOST_GOROUTINES);
        }
        let mut is_open = |id: u32| {
            let known = threads.known(Pid(1), Tid(1 << 30 | id));
            known.map(|thread| thread.stacks.open().len())
        };
        assert_eq!((is_open(1), is_open(last)), (Some(1), Some(1)), "main runs on");
        assert_eq!((is_open(2), is_open(last / 4)), (None, None));
    }
}
