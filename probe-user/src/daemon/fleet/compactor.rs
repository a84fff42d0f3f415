//! Puts the files of finished days together, a folder at a time. Rows that come meanwhile wait.

use crate::{
    bpf,
    tables::compact::{Due, compact, due},
    ui,
};
use std::{
    collections::VecDeque,
    path::Path,
    time::{Duration, Instant},
};

/// The pause between two folders, so that it takes little of a processor at a time.
const BETWEEN: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Compactor {
    waiting: VecDeque<Due>,
    /// Folders with files that cannot be read: they would be tried again and again.
    given_up: Vec<Due>,
    /// The end of the last folder.
    last: Option<Instant>,
}

impl Compactor {
    /// Looks for folders of this machine, of days before this one.
    pub(super) fn look(&mut self, root: &Path, host: &str, today: i64) {
        let mut all = due(root, |name| name == host, today);
        self.given_up.retain(|folder| all.contains(folder));
        all.retain(|folder| !self.given_up.contains(folder));
        self.waiting = all.into();
    }

    /// Returns the time until the next folder, if there is one.
    pub(super) fn pause(&self) -> Option<Duration> {
        let since = self.last.map_or(BETWEEN, |last| last.elapsed());
        (!self.waiting.is_empty()).then(|| BETWEEN.saturating_sub(since))
    }

    /// Does the next folder, if it is time.
    pub(super) fn work(&mut self) {
        if self.pause() != Some(Duration::ZERO) {
            return;
        }
        let Some(folder) = self.waiting.pop_front() else { return };
        match compact(&folder) {
            Ok(outcome) => {
                for (file, why) in &outcome.damaged {
                    ui::say(&format!("{} {why}; it stays as it is", file.display()));
                }
                if !outcome.damaged.is_empty() {
                    self.given_up.push(folder);
                }
            }
            Err(error) => {
                let path = folder.path.display();
                ui::say(&format!("cannot put the files of {path} together: {error}"));
                self.given_up.push(folder);
            }
        }
        bpf::give_back();
        self.last = Some(Instant::now());
    }
}
