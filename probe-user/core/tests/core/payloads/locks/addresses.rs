//! Names of locks and of the code that takes them.

use super::*;
use ctrace_core::engine::NewAddresses;
use ctrace_core::recording::AddressRecord;

impl Trace {
    fn make(&mut self, of: &LockCall) -> &mut Self {
        self.begin(of);
        self.finish(of);
        self
    }

    fn new_addresses(&mut self) -> Vec<u64> {
        let NewAddresses { running, left } = self.engine.take_new_addresses();
        assert!(
            left.is_empty() && running.keys().all(|pid| *pid == Pid(PID)),
            "{running:?} {left:?}"
        );
        running.into_values().flatten().collect()
    }

    fn name(&mut self, names: &[(u64, &str)]) {
        let record = |&(address, name): &(u64, &str)| AddressRecord {
            pid: Pid(PID),
            address,
            name: name.into(),
        };
        self.engine.name_addresses(names.iter().map(record).collect());
    }
}

#[test]
fn addresses_have_the_names_that_a_recording_gives_them() {
    let mut trace = lock_trace();
    trace.make(&call(1, LOCK_IT, 100, 110)).chunk(150);
    assert_eq!(trace.new_addresses(), [A, 0x4001]);
    trace.name(&[(A, "table_lock"), (0x4001, "insert")]);
    trace.make(&call(1, UNLOCK, 500, 530)).chunk(600);
    assert_eq!(trace.new_addresses(), [0; 0]);
    let lock = only_lock(report_of(&open(trace.end(100_000))));
    assert_eq!((&*lock.name, &*lock.address), ("table_lock", "0x5000"));
}

/// Something else is at an address then: the row, which has the calls of both, has both names.
#[test]
fn a_process_that_executes_another_program_has_new_names() {
    let mut trace = lock_trace();
    trace.make(&call(PID, LOCK_IT, 100, 110)).make(&call(PID, UNLOCK, 120, 130)).chunk(150);
    let caller = 0x4000 + u64::from(PID);
    assert_eq!(trace.new_addresses(), [A, caller]);
    trace.name(&[(A, "table_lock")]);
    // One address is new, and so are both in the new program.
    trace.make(&LockCall { lock: B, ..call(PID, LOCK_IT, 200, 210) });
    trace.engine.push(0, &control(Kind::Exec, 300, PID, "other", [u64::from(PID), 0]));
    trace.make(&call(PID, LOCK_IT, 400, 410)).make(&call(PID, UNLOCK, 420, 430)).chunk(450);
    let NewAddresses { running, left } = trace.engine.take_new_addresses();
    assert_eq!(running[&Pid(PID)], [A, caller]);
    let former = &left[&Pid(PID)];
    assert_eq!((former.former.as_deref(), former.last.as_deref()), (Some(&[B][..]), None));
    trace.name(&[(A, "queue_lock"), (A, "third")]);
    trace.engine.push(0, &control(Kind::ProcessExit, 500, PID, "other", [0, 0]));
    trace.chunk(600);
    let left = trace.engine.take_new_addresses().left;
    assert_eq!((&left[&Pid(PID)].former, left[&Pid(PID)].last.as_deref()), (&None, Some(&[][..])));
    let report = report_of(&open(trace.end(100_000)));
    let names: Vec<_> = report.locks.iter().map(|lock| (&*lock.name, lock.acquisitions)).collect();
    assert_eq!(names, [("table_lock, later queue_lock and others", 2), ("0x6000", 1)]);
}

/// Processes that end make room for the names of others.
#[test]
fn names_are_limited_by_what_is_there_at_once() {
    let mut trace = lock_trace();
    let locks = |from: u64, number: u64| (from..from + number).map(|nth| A + 64 * nth);
    let mut time = 100;
    for (first, many) in [(0, 65_536), (70_000, 10)] {
        for lock in locks(first, many) {
            trace.begin(&LockCall { lock, ..call(PID, TRY, time, time + 1) });
            trace.finish(&failing(BUSY, LockCall { lock, ..call(PID, TRY, time, time + 1) }));
            time += 2;
        }
        trace.chunk(time);
        assert_eq!(trace.new_addresses().len(), many as usize + 1);
        assert!(!trace.engine.has_too_many_addresses());
        trace.engine.push(0, &control(Kind::ProcessExit, time + 1, PID, "gone", [0, 0]));
        trace.chunk(time + 2);
        trace.engine.take_new_addresses();
        time += 10;
    }
    for lock in locks(0, 65_537) {
        trace.begin(&LockCall { lock, ..call(PID, TRY, time, 0) });
        trace.finish(&failing(BUSY, LockCall { lock, ..call(PID, TRY, time, time + 1) }));
        time += 2;
    }
    trace.chunk(time);
    assert!(trace.engine.has_too_many_addresses());
}
