//! Puts the files of finished days together, a pass at a time. Rows that come meanwhile wait.

use crate::{
    bpf,
    tables::compact::{Due, Outcome, compact, due},
    ui,
};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The pause between two passes, so that they take little of a processor at a time.
const BETWEEN: Duration = Duration::from_secs(1);
/// Limit of damaged files that are told once.
const MOST_TOLD: usize = 1_000;

#[derive(Default)]
pub(super) struct Compactor {
    waiting: VecDeque<Due>,
    /// Folders in which nothing is left to do until their files are others, by the state of these.
    settled: HashMap<PathBuf, u64>,
    /// Folders that failed, and why. They are tried again, and told once.
    failing: HashMap<PathBuf, String>,
    /// Damaged files that were told.
    told: HashSet<PathBuf>,
    /// The end of the last pass.
    last: Option<Instant>,
}

impl Compactor {
    /// Looks for folders of this machine, of days before this one.
    pub(super) fn look(&mut self, root: &Path, host: &str, today: i64) {
        let mut begun: HashMap<PathBuf, Due> = HashMap::new();
        for folder in self.waiting.drain(..).filter(|folder| folder.after.is_some()) {
            begun.insert(folder.path.clone(), folder);
        }
        let all = due(root, |name| name == host, today);
        let there: HashSet<&Path> = all.iter().map(|folder| &*folder.path).collect();
        self.settled.retain(|path, _| there.contains(&**path));
        self.failing.retain(|path, _| there.contains(&**path));
        let open = all.into_iter().filter(|it| self.settled.get(&it.path) != Some(&it.state));
        // What has begun goes on where it is.
        self.waiting = open.map(|it| begun.remove(&it.path).unwrap_or(it)).collect();
    }

    /// Returns the time until the next pass, if there is one.
    pub(super) fn pause(&self) -> Option<Duration> {
        let since = self.last.map_or(BETWEEN, |last| last.elapsed());
        (!self.waiting.is_empty()).then(|| BETWEEN.saturating_sub(since))
    }

    /// Does the next pass, if it is time.
    pub(super) fn work(&mut self) {
        if self.pause() == Some(Duration::ZERO) {
            self.pass();
            bpf::give_back();
            self.last = Some(Instant::now());
        }
    }

    fn pass(&mut self) {
        let Some(folder) = self.waiting.pop_front() else { return };
        match compact(&folder) {
            Ok(outcome) => self.done(folder, outcome),
            Err(error) => self.failed(folder, &error),
        }
    }

    fn done(&mut self, mut folder: Due, outcome: Outcome) {
        self.failing.remove(&folder.path);
        for (file, why) in outcome.damaged {
            if self.told.len() < MOST_TOLD && !self.told.contains(&file) {
                ui::say(&format!("{} {why}; it stays as it is", file.display()));
                self.told.insert(file);
            }
        }
        folder.after = outcome.next;
        if folder.after.is_some() {
            self.waiting.push_front(folder);
        } else {
            // If something was done, the files are others by now.
            self.settled.insert(folder.path, folder.state);
        }
    }

    fn failed(&mut self, folder: Due, error: &io::Error) {
        let why = error.to_string();
        if !self.failing.values().any(|told| *told == why) {
            let path = folder.path.display();
            ui::say(&format!("cannot put the files of {path} together: {why}"));
        }
        self.failing.insert(folder.path, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::samples;
    use ctrace_core::fleet::encode;
    use std::fs;

    const TODAY: i64 = 20_785;

    /// Makes the folder of a unit on 2026-11-27, with files of one row each.
    fn folder(root: &Path, files: u64) -> PathBuf {
        let folder = root.join("targets/host=h/day=2026-11-27/unit=u");
        fs::create_dir_all(&folder).expect("a folder");
        let content = encode::targets(&[samples::target(1, 1)]).expect("a file");
        for file in 0..files {
            fs::write(folder.join(format!("part-{file}-0000000a.parquet")), &content)
                .expect("written");
        }
        folder
    }

    /// Works until nothing waits.
    fn look_and_work(compactor: &mut Compactor, root: &Path) -> usize {
        compactor.look(root, "h", TODAY);
        let mut passes = 0;
        while !compactor.waiting.is_empty() {
            compactor.pass();
            passes += 1;
        }
        passes
    }

    fn files(folder: &Path) -> usize {
        folder.read_dir().expect("a folder").count()
    }

    #[test]
    fn finished_days_are_put_together_and_then_left_alone() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = folder(root.path(), 600);
        let mut compactor = Compactor::default();
        assert_eq!(look_and_work(&mut compactor, root.path()), 3);
        assert_eq!(files(&folder), 3);
        assert_eq!(look_and_work(&mut compactor, root.path()), 1);
        assert_eq!((files(&folder), look_and_work(&mut compactor, root.path())), (1, 0));
        // Today is not over.
        compactor.look(root.path(), "h", TODAY - 1);
        assert!(compactor.waiting.is_empty());
    }

    #[test]
    fn damaged_files_are_tried_once_and_errors_again() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = folder(root.path(), 2);
        let mut compactor = Compactor::default();
        compactor.look(root.path(), "h", TODAY);
        let away = root.path().join("away");
        fs::rename(&folder, &away).expect("moved");
        compactor.pass();
        assert_eq!(compactor.failing.len(), 1);
        fs::rename(&away, &folder).expect("moved");
        assert_eq!(look_and_work(&mut compactor, root.path()), 1);
        assert_eq!((files(&folder), compactor.failing.len()), (1, 0));
        fs::write(folder.join("part-9-0000000a.parquet"), "PAR1 half").expect("written");
        assert_eq!(look_and_work(&mut compactor, root.path()), 1);
        assert_eq!((compactor.told.len(), look_and_work(&mut compactor, root.path())), (1, 0));
    }
}
