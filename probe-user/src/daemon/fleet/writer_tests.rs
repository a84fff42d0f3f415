//! The days whose files the thread puts together, and those that it removes.

use super::*;
use crate::{daemon::metrics::accumulator::Bounds, tables::samples};
use ctrace_core::fleet::{Table, encode, partition::Partition, rows::Interval};

const DAY_NS: i64 = 86_400_000_000_000;

/// The tables of yesterday, and who writes them.
struct Yesterday {
    root: tempfile::TempDir,
    start_ns: i64,
    writer: Writer,
}

impl Yesterday {
    /// Writes two files.
    fn new(store: Option<&str>) -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let config = config::Fleet {
            folder: Some(root.path().to_owned()),
            store: store.map(str::to_owned),
            host: "h".to_owned(),
            keep_days: 1_000,
            keep_bytes: u64::MAX,
            compact: true,
            ..config::Fleet::default()
        };
        let day = compact::today() - 1;
        let place = Partition {
            table: Table::Targets,
            host: "h".to_owned(),
            day,
            unit: "web.service".to_owned(),
        };
        let start_ns = day * DAY_NS;
        for minute in 0..2 {
            let row = samples::target(start_ns + minute * 60_000_000_000, 1);
            let content = encode::targets(std::slice::from_ref(&row)).expect("a file");
            let store = Store { root: root.path(), host: "h" };
            store.write(&place, row.origin.start_ns, &content).expect("written");
        }
        let metrics = MetricsHub::new(Bounds::default());
        let writer = Writer::new(config, metrics, Arc::new(AtomicUsize::new(0)));
        Self { root, start_ns, writer }
    }

    /// Looks for old files, as the daemon does every ten minutes.
    fn prune(&mut self) {
        self.writer.pruned = None;
        let root = self.root.path().to_owned();
        self.writer.prune(&root);
    }

    /// Works until nothing waits, and returns how many files there are.
    fn work(&mut self) -> usize {
        while let Some(pause) = self.writer.compactor.pause() {
            std::thread::sleep(pause);
            self.writer.compactor.work();
        }
        let folder = self.root.path().join("targets/host=h");
        let day = folder.read_dir().expect("a folder").flatten().next().expect("a day");
        day.path().join("unit=web.service").read_dir().expect("a folder").count()
    }
}

/// An interval that began before midnight is written after it.
#[test]
fn a_day_is_over_when_its_last_rows_are_in_files() {
    let mut yesterday = Yesterday::new(None);
    let rows = Interval {
        functions: Vec::new(),
        paths: Vec::new(),
        slow_calls: Vec::new(),
        target: samples::target(yesterday.start_ns + DAY_NS - 1, 1),
    };
    yesterday.writer.buffers.add("web.service".into(), rows);
    yesterday.prune();
    assert_eq!(yesterday.work(), 2, "rows of that day wait");
    yesterday.writer.write(|_| true);
    yesterday.prune();
    assert_eq!(yesterday.work(), 1);
}

/// The store may have one of the files already.
#[test]
fn files_that_wait_for_a_store_stay_as_they_are() {
    let mut yesterday = Yesterday::new(Some("s3://bucket"));
    yesterday.prune();
    assert_eq!(yesterday.work(), 2);
}

/// A full disk may be full of them.
#[test]
fn old_files_are_removed_while_none_can_be_written() {
    let mut yesterday = Yesterday::new(None);
    yesterday.writer.config.keep_days = 1;
    let host = yesterday.root.path().join("targets/host=h");
    let old = host.read_dir().expect("a folder").flatten().next().expect("a day").path();
    let today = yesterday.start_ns + DAY_NS;
    let name = ctrace_core::fleet::partition::day_name(today / DAY_NS);
    std::fs::write(host.join(format!("day={name}")), "in the way").expect("written");
    let rows = Interval {
        functions: Vec::new(),
        paths: Vec::new(),
        slow_calls: Vec::new(),
        target: samples::target(today, 1),
    };
    yesterday.writer.buffers.add("web.service".into(), rows);
    yesterday.writer.write(|_| true);
    assert_eq!((yesterday.writer.buffers.all.len(), old.exists()), (1, false));
}
