//! A control group in which, once closed, no thread and no process can start.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The places of the controller, of the old and of the new kind.
const PLACES: [&str; 2] = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];

/// A group that is removed on drop. Its processes must have ended by then.
#[derive(Debug)]
pub struct Crowd(PathBuf);

impl Crowd {
    /// Makes one, or returns the reason to skip the test.
    pub fn new() -> Result<Crowd, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ctrace-crowd-{}-{number}", std::process::id());
        let made = PLACES.into_iter().find_map(|place| {
            let crowd = PathBuf::from(place).join(&name);
            fs::create_dir(&crowd).ok()?;
            // A group that does not count threads is dropped, and so removed.
            Some(Crowd(crowd)).filter(|it| it.0.join("pids.max").exists())
        });
        made.ok_or_else(|| "no control group here counts threads".into())
    }

    /// Returns a shell that enters it and runs `command`.
    pub fn enter(&self, command: &str) -> Command {
        let mut shell = Command::new("sh");
        let entry = self.0.join("cgroup.procs");
        shell.arg("-c").arg(format!("set -f; echo $$ > {}; exec {command}", entry.display()));
        shell
    }

    /// Forbids new threads in it.
    pub fn close(&self) -> std::io::Result<()> {
        fs::write(self.0.join("pids.max"), "0")
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // It stays if it still has a process, and then harms nobody.
        let _ = fs::remove_dir(&self.0);
    }
}
