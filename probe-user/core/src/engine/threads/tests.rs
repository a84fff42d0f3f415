//! Tests that threads are found by their ids.

use super::*;
use crate::calls::paths::Paths;
use crate::calls::spool::Spool;
use crate::filter::Filter;

#[test]
fn any_ids_are_those_of_a_thread() {
    let mut ledger = Ledger::new(Paths::new(9, 9), Spool::new(999), Filter::default());
    let mut threads = Threads::new();
    for pid in [0, 1, u32::MAX] {
        for tid in [0, 255, 256, u32::MAX - 1, u32::MAX] {
            let ids = (Pid(pid), Tid(tid));
            for _ in 0..2 {
                let thread = threads.get(ids.0, ids.1, &ledger);
                assert_eq!((thread.pid, thread.tid), ids);
            }
            threads.end(ids.0, ids.1, &mut ledger);
            assert_eq!(threads.get(ids.0, ids.1, &ledger).tid, ids.1);
        }
    }
}
