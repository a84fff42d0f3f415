//! A control group in which no thread and no process can be started once it is told so.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the controller of the old and of the new kind is.
const PLACES: [&str; 2] = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];

/// Removed when dropped; who is in it must have ended by then.
#[derive(Debug)]
pub struct Crowd(PathBuf);

impl Crowd {
    /// A new one, or the reason to skip the test.
    pub fn new() -> Result<Crowd, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ctrace-crowd-{}-{number}", std::process::id());
        let made = PLACES.into_iter().find_map(|place| {
            let crowd = PathBuf::from(place).join(&name);
            fs::create_dir(&crowd).ok()?;
            // Dropped, so removed, where it counts no threads.
            Some(Crowd(crowd)).filter(|it| it.0.join("pids.max").exists())
        });
        made.ok_or_else(|| "no control group here counts threads".into())
    }

    /// Has a shell enter it and run `command`.
    pub fn enter(&self, command: &str) -> Command {
        let mut shell = Command::new("sh");
        let entry = self.0.join("cgroup.procs");
        shell.arg("-c").arg(format!("set -f; echo $$ > {}; exec {command}", entry.display()));
        shell
    }

    /// From now on nobody in it starts a thread.
    pub fn close(&self) -> std::io::Result<()> {
        fs::write(self.0.join("pids.max"), "0")
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // Where somebody is still in it, it stays, and disturbs nobody.
        let _ = fs::remove_dir(&self.0);
    }
}
