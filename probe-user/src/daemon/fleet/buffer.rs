//! Rows that wait for their file.

use ctrace_core::fleet::{
    Table, encode,
    partition::{Partition, day_of},
    rows::{FunctionRow, Interval, PathRow, TargetRow},
    slow::SlowRow,
};
use std::{collections::BTreeMap, sync::Arc, time::Instant};

/// The memory of rows that is worth a file, in bytes.
const WORTH: usize = 16 << 20;

/// The rows of a unit and a day.
pub(super) struct Buffer {
    pub(super) since: Instant,
    /// The wall clock's time at which the first interval began.
    pub(super) first_ns: i64,
    pub(super) bytes: usize,
    functions: Vec<FunctionRow>,
    paths: Vec<PathRow>,
    slow_calls: Vec<SlowRow>,
    targets: Vec<TargetRow>,
}

/// All that wait, by day and unit.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) all: BTreeMap<(i64, Arc<str>), Buffer>,
}

impl Buffers {
    pub(super) fn bytes(&self) -> usize {
        self.all.values().map(|buffer| buffer.bytes).sum()
    }

    pub(super) fn add(&mut self, unit: Arc<str>, rows: Interval) {
        let first_ns = rows.target.origin.start_ns;
        let buffer = self.all.entry((day_of(first_ns), unit)).or_insert_with(|| Buffer {
            since: Instant::now(),
            first_ns,
            bytes: 0,
            functions: Vec::new(),
            paths: Vec::new(),
            slow_calls: Vec::new(),
            targets: Vec::new(),
        });
        buffer.bytes += rows.bytes();
        buffer.functions.extend(rows.functions);
        buffer.paths.extend(rows.paths);
        buffer.slow_calls.extend(rows.slow_calls);
        buffer.targets.push(rows.target);
    }
}

impl Buffer {
    pub(super) fn is_large(&self) -> bool {
        self.bytes >= WORTH
    }

    pub(super) fn rows(&self) -> u64 {
        let Self { functions, paths, slow_calls, targets, .. } = self;
        (functions.len() + paths.len() + slow_calls.len() + targets.len()) as u64
    }

    /// Writes the rows of each table that has any by `write`. Tables that are written are empty then.
    pub(super) fn write<E: From<encode::EncodeError>>(
        &mut self,
        (day, unit): &(i64, Arc<str>),
        host: &str,
        mut write: impl FnMut(&Partition, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (host, unit, day) = (host.to_owned(), unit.to_string(), *day);
        let place = |table| Partition { table, host: host.clone(), day, unit: unit.clone() };
        if !self.functions.is_empty() {
            write(&place(Table::Functions), &encode::functions(&mut self.functions)?)?;
            self.functions.clear();
        }
        if !self.paths.is_empty() {
            write(&place(Table::Paths), &encode::paths(&mut self.paths)?)?;
            self.paths.clear();
        }
        if !self.slow_calls.is_empty() {
            let file = encode::slow_calls(&mut self.slow_calls)?;
            write(&place(Table::SlowCalls), &file)?;
            self.slow_calls.clear();
        }
        if !self.targets.is_empty() {
            write(&place(Table::Targets), &encode::targets(&self.targets)?)?;
            self.targets.clear();
        }
        Ok(())
    }
}
