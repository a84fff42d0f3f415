//! Shows long output through the user's pager, as git does. What fits the screen goes by.

use signal_hook::{consts::SIGINT, flag};
use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    process::{Child, Command, Stdio},
    sync::{Arc, atomic::AtomicBool},
};

/// A running pager. Dropping it waits until the reader has left it.
pub(crate) struct Pager(Child);

impl Pager {
    /// Starts the pager if stdout is a terminal and the user wants one.
    pub(crate) fn start() -> Option<Self> {
        if !rustix::termios::isatty(io::stdout()) {
            return None;
        }
        let mut command = Command::new("sh");
        command.arg("-c").arg(chosen(|name| env::var_os(name))?).stdin(Stdio::piped());
        // As git has it: leave at once if all fits, keep colours and the screen.
        if env::var_os("LESS").is_none() {
            command.env("LESS", "FRX");
        }
        // Who may run ctrace by sudo may not run all else.
        if rustix::process::geteuid().is_root() {
            command.env("LESSSECURE", "1");
        }
        let child = command.spawn().ok()?;
        // Ctrl-C is the pager's.
        let _ = flag::register(SIGINT, Arc::new(AtomicBool::new(false)));
        Some(Self(child))
    }
}

/// Returns the user's pager; none if there shall be none.
fn chosen(variable: impl Fn(&str) -> Option<OsString>) -> Option<OsString> {
    let chosen = variable("CTRACE_PAGER").or_else(|| variable("PAGER"));
    let chosen = chosen.unwrap_or_else(|| "less".into());
    (!chosen.is_empty() && chosen != "cat").then_some(chosen)
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.stdin.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // There is nothing to do if it fails.
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Option<OsString> {
        chosen(|name| Some(set.iter().find(|(known, _)| *known == name)?.1.into()))
    }

    #[test]
    fn the_user_chooses_the_pager() {
        assert_eq!(of(&[]), Some("less".into()));
        assert_eq!(of(&[("PAGER", "most -w")]), Some("most -w".into()));
        assert_eq!(of(&[("PAGER", "most"), ("CTRACE_PAGER", "less -S")]), Some("less -S".into()));
        assert_eq!(of(&[("PAGER", "most"), ("CTRACE_PAGER", "")]), None);
        assert_eq!(of(&[("PAGER", "cat")]), None);
    }
}
