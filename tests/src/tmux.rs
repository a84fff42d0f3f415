//! A real terminal for programs with a screen: tmux on its own socket, with a readable screen.

use crate::look::wait_until;
use crate::process::{Finished, run};
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(30);

/// Returns the reason to skip if there is no tmux.
pub fn installed() -> Result<(), String> {
    let version = run(Command::new("tmux").arg("-V"), LIMIT);
    version.map(drop).map_err(|_| "tmux is not installed: run `cargo xtask setup`".into())
}

/// A terminal that runs a shell script. Dropping it ends all that runs in it.
pub struct Terminal {
    folder: TempDir,
}

impl Terminal {
    /// Runs the script in [`Self::folder`]. The terminal outlives the script.
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

    /// Returns the screen, without spaces at the ends of lines.
    pub fn screen(&self) -> Result<String> {
        Ok(self.tmux(&["capture-pane", "-p"])?.stdout)
    }

    /// Presses keys by tmux's names.
    pub fn press(&self, keys: &[&str]) -> Result<()> {
        self.tmux(&[&["send-keys"], keys].concat()).map(drop)
    }

    pub fn resize(&self, width: u16, height: u16) -> Result<()> {
        let (width, height) = (width.to_string(), height.to_string());
        self.tmux(&["resize-window", "-x", &width, "-y", &height]).map(drop)
    }

    /// Returns the shell's pid.
    pub fn pid(&self) -> Result<i32> {
        Ok(self.ask("#{pane_pid}")?.parse()?)
    }

    /// Returns whether a program has taken the screen, or hidden the cursor.
    pub fn is_taken(&self) -> Result<bool> {
        Ok(self.ask("#{alternate_on} #{cursor_flag}")? != "0 1")
    }

    /// Returns the title of the window.
    pub fn title(&self) -> Result<String> {
        self.ask("#{pane_title}")
    }

    fn ask(&self, format: &str) -> Result<String> {
        Ok(self.tmux(&["display-message", "-p", format])?.stdout.trim().to_owned())
    }

    /// Waits for the wanted screen, and fails with the last one if it never comes.
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

    /// Waits until the screen has all of these texts.
    #[track_caller]
    pub fn shows(&self, texts: &[&str]) -> String {
        let what = format!("the screen shows {texts:?}");
        self.when(&what, |screen| texts.iter().all(|text| screen.contains(text)))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may already be gone.
        let _ = self.tmux(&["kill-server"]);
    }
}
