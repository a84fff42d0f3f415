//! The thread that closes files when they are large or old, and tries again what could not be written.

use super::{
    Job,
    buffer::Buffers,
    compactor::Compactor,
    store::{Store, Unsent},
};
use crate::{
    daemon::{
        config,
        metrics::{catalog::Own, hub::MetricsHub},
    },
    host_name::host_name,
    tables::compact,
    ui,
};
use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

/// The memory of rows that wait while nothing can be written, in bytes.
const MOST_BYTES: usize = 64 << 20;
/// The pause before another try.
const AGAIN: Duration = Duration::from_secs(10);
/// The pause between looks for files that are too old.
const BETWEEN_PRUNES: Duration = Duration::from_secs(600);

pub(super) struct Writer {
    config: config::Fleet,
    host: String,
    metrics: MetricsHub,
    buffers: Buffers,
    /// The memory of intervals that were not taken yet.
    waiting: Arc<AtomicUsize>,
    /// Nothing is written before this time, since it failed.
    not_before: Option<Instant>,
    /// Rows that were lost since it fails.
    lost: u64,
    pruned: Option<Instant>,
    compactor: Compactor,
}

impl Writer {
    pub(super) fn new(
        config: config::Fleet,
        metrics: MetricsHub,
        waiting: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            host: host(&config),
            config,
            metrics,
            buffers: Buffers::default(),
            waiting,
            not_before: None,
            lost: 0,
            pruned: None,
            compactor: Compactor::default(),
        }
    }

    pub(super) fn run(&mut self, jobs: &Receiver<Job>) {
        loop {
            match jobs.recv_timeout(self.pause()) {
                Ok(Job::Rows(unit, rows)) => {
                    self.waiting.fetch_sub(rows.bytes(), Ordering::Relaxed);
                    if self.buffers.bytes() < MOST_BYTES {
                        self.buffers.add(unit, *rows);
                    } else {
                        self.lose(rows.rows());
                    }
                }
                Ok(Job::Configure(config)) => {
                    self.write(|_| true);
                    self.give_up_elsewhere(&config);
                    self.host = host(&config);
                    self.config = config;
                    (self.not_before, self.pruned) = (None, None);
                    self.compactor = Compactor::default();
                }
                Ok(Job::Finish(_done)) => {
                    self.write(|_| true);
                    self.give_up();
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.not_before.is_none_or(|then| then <= Instant::now()) {
                let age = self.config.interval;
                self.write(|buffer| buffer.is_large() || buffer.since.elapsed() >= age);
            }
            if self.may_compact() {
                self.compactor.work();
            }
        }
    }

    /// Returns the time until something may be due.
    fn pause(&self) -> Duration {
        let now = Instant::now();
        let due = self.buffers.all.values().map(|buffer| buffer.since + self.config.interval).min();
        let due = due.map(|due| self.not_before.map_or(due, |then| then.max(due)));
        let pause = due.map_or(BETWEEN_PRUNES, |due| due.saturating_duration_since(now));
        let soon = self.compactor.pause().filter(|_| self.may_compact());
        soon.map_or(pause, |soon| pause.min(soon))
    }

    /// Returns true unless rows wait for a disk that is full or away.
    fn may_compact(&self) -> bool {
        self.not_before.is_none()
    }

    /// Writes the files that are due.
    fn write(&mut self, is_due: impl Fn(&super::buffer::Buffer) -> bool) {
        let Some(root) = self.config.folder.clone() else {
            self.buffers.all.clear();
            return;
        };
        let due = self.buffers.all.iter().filter(|(_, buffer)| is_due(buffer));
        let due: Vec<_> = due.map(|(key, _)| key.clone()).collect();
        let (mut files, mut failed) = (0, None);
        for key in due {
            let Some(mut buffer) = self.buffers.all.remove(&key) else { continue };
            let store = Store { root: &root, host: &self.host };
            let first = buffer.first_ns;
            let written = buffer.write(&key, &self.host, |place, content| {
                store.write(place, first, content).inspect(|()| files += 1)
            });
            if let Err(error) = written {
                self.buffers.all.insert(key, buffer);
                failed = Some(error);
                break;
            }
        }
        self.metrics.count_more(Own::FleetFiles, files);
        match failed {
            Some(error) => {
                self.failed(&root, &error);
                // The disk may be full of old files.
                self.prune(&root);
            }
            None if files > 0 => {
                self.succeeded(&root);
                self.prune(&root);
            }
            None => {}
        }
    }

    fn failed(&mut self, root: &Path, error: &io::Error) {
        self.metrics.count_own(Own::FleetFailures);
        if self.not_before.is_none() {
            ui::say(&format!(
                "cannot write tables to {}: {error}; they wait in memory and are tried again",
                root.display()
            ));
        }
        self.not_before = Some(Instant::now() + AGAIN);
    }

    fn succeeded(&mut self, root: &Path) {
        if self.not_before.take().is_some() {
            let lost = std::mem::take(&mut self.lost);
            let lost =
                if lost == 0 { "no row was".to_owned() } else { format!("{lost} rows were") };
            ui::say(&format!("tables can be written to {} again; {lost} lost", root.display()));
        }
    }

    fn lose(&mut self, rows: u64) {
        if self.lost == 0 {
            ui::say("there is no more memory for tables that wait: rows are lost, and counted");
        }
        self.lost += rows;
        self.metrics.count_more(Own::FleetRowsLost, rows);
    }

    /// Gives up what another configuration would write elsewhere or under another name.
    fn give_up_elsewhere(&mut self, next: &config::Fleet) {
        if next.folder != self.config.folder || host(next) != self.host {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        let rows: u64 = self.buffers.all.values().map(super::buffer::Buffer::rows).sum();
        self.buffers.all.clear();
        if rows > 0 {
            self.metrics.count_more(Own::FleetRowsLost, rows);
            ui::say(&format!("{rows} rows of tables could not be written, and are lost"));
        }
    }

    fn prune(&mut self, root: &Path) {
        if self.pruned.is_some_and(|last| last.elapsed() < BETWEEN_PRUNES) {
            return;
        }
        self.pruned = Some(Instant::now());
        let today = compact::today();
        let store = Store { root, host: &self.host };
        let (Unsent { files, rows }, failed) = store.prune(&self.config, today);
        if files > 0 {
            self.metrics.count_more(Own::FleetRowsLost, rows);
            ui::say(&format!(
                "{rows} rows in {files} files of tables waited for the store beyond `keep_days` or \
                 `keep_bytes`, and are lost"
            ));
        }
        if let Some(error) = failed {
            ui::say(&format!("cannot remove old tables in {}: {error}", root.display()));
        }
        if self.config.compacts() {
            // A day is over when its last rows are in files.
            let first = self.buffers.all.keys().map(|(day, _)| *day).min().unwrap_or(today);
            self.compactor.look(root, &self.host, first.min(today));
        }
    }
}

/// Returns the name of this machine.
pub(super) fn host(config: &config::Fleet) -> String {
    match config.host.is_empty() {
        true => host_name(),
        false => config.host.clone(),
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
