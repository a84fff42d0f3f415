//! `ctrace ui` as chores run it: its server, and its page with a script at the end of its own.

use crate::paths;
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server of a recording's timeline. It ends with this.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(ctrace: &Path, recording: &Path, more: &[&OsStr]) -> Result<Self> {
        let mut command = Command::new(ctrace);
        // A chore begins with nothing, and what it leaves ends with its recording.
        let cache = recording.parent().context("a folder")?.join("cache");
        command.arg("ui").arg(recording).args(more).env("XDG_CACHE_HOME", cache);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut server = Self { child, url: String::new() };
        let stdout = server.child.stdout.take().context("a pipe")?;
        BufReader::new(stdout).read_line(&mut server.url)?;
        server.url.truncate(server.url.trim_end().len());
        Ok(server)
    }

    /// The same, with the page's files in a folder.
    pub(crate) fn with_page(ctrace: &Path, recording: &Path, page: &Path) -> Result<Self> {
        Self::start(ctrace, recording, &[OsStr::new("--ui-dir"), page.as_os_str()])
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It only reads. It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Copies the page's files into a folder, with a script at the end of the page's own.
pub(crate) fn page_with(script: &str, folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir(&folder)?;
    for file in fs::read_dir(paths::root().join("probe-user/src/timeline_server/page"))? {
        let file = file?;
        fs::copy(file.path(), folder.join(file.file_name()))?;
    }
    let main = folder.join("main.js");
    fs::write(&main, fs::read_to_string(&main)? + "\n" + script)?;
    Ok(folder)
}
