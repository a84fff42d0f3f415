//! A real terminal for programs with a screen: tmux on a socket of its own, whose screen can be
//! read.

use crate::look::wait_until;
use crate::process::{Finished, run};
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(30);

/// Whether there is a tmux, or the reason to skip.
pub fn installed() -> Result<(), String> {
    let version = run(Command::new("tmux").arg("-V"), LIMIT);
    version.map(drop).map_err(|_| "tmux is not installed: run `cargo xtask setup`".into())
}

/// A terminal in which a shell script runs; gone with all that runs in it when dropped.
pub struct Terminal {
    folder: TempDir,
}

impl Terminal {
    /// The script runs in [`Self::folder`]; when it is done, the terminal stays.
    pub fn start(script: &str, width: u16, height: u16) -> Result<Terminal> {
        let terminal = Terminal { folder: tempfile::tempdir()? };
        let file = terminal.folder().join("script.sh");
        std::fs::write(&file, format!("{script}\nexec sleep 1000\n"))?;
        let (width, height) = (width.to_string(), height.to_string());
        let file = file.display().to_string();
        let folder = terminal.folder().display().to_string();
        let new = ["new-session", "-d", "-x", &width, "-y", &height, "-c", &folder, "sh", &file];
        terminal.tmux(&new)?;
        Ok(terminal)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn tmux(&self, arguments: &[&str]) -> Result<Finished> {
        let mut command = Command::new("tmux");
        command.env("TMUX_TMPDIR", self.folder()).env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        command.args(["-u", "-f", "/dev/null", "-L", "ctrace"]).args(arguments);
        let finished = run(&mut command, LIMIT)?;
        ensure!(finished.shell_code() == 0, "tmux {arguments:?}: {}", finished.stderr);
        Ok(finished)
    }

    /// What is on the screen, without spaces at the ends of lines.
    pub fn screen(&self) -> Result<String> {
        Ok(self.tmux(&["capture-pane", "-p"])?.stdout)
    }

    /// Presses keys, by the names that tmux gives them.
    pub fn press(&self, keys: &[&str]) -> Result<()> {
        self.tmux(&[&["send-keys"], keys].concat()).map(drop)
    }

    pub fn resize(&self, width: u16, height: u16) -> Result<()> {
        let (width, height) = (width.to_string(), height.to_string());
        self.tmux(&["resize-window", "-x", &width, "-y", &height]).map(drop)
    }

    /// Of the shell.
    pub fn pid(&self) -> Result<i32> {
        Ok(self.ask("#{pane_pid}")?.parse()?)
    }

    /// Whether a program has taken the screen, or hidden the cursor.
    pub fn is_taken(&self) -> Result<bool> {
        Ok(self.ask("#{alternate_on} #{cursor_flag}")? != "0 1")
    }

    fn ask(&self, format: &str) -> Result<String> {
        Ok(self.tmux(&["display-message", "-p", format])?.stdout.trim().to_owned())
    }

    /// The screen, once it is as wanted; fails with the last one when it never is.
    #[track_caller]
    pub fn when(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let waited = wait_until(what, || {
            last = self.screen().unwrap_or_else(|error| format!("{error:#}"));
            is_so(&last)
        });
        waited.unwrap_or_else(|error| panic!("{error}:\n{last}"));
        last
    }

    /// The screen, once it has all of these texts.
    #[track_caller]
    pub fn shows(&self, texts: &[&str]) -> String {
        let what = format!("the screen shows {texts:?}");
        self.when(&what, |screen| texts.iter().all(|text| screen.contains(text)))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.tmux(&["kill-server"]);
    }
}
