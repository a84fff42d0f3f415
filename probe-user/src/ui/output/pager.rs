//! Shows long output through the user's pager, as git does. What fits the screen goes by.

use signal_hook::{consts::SIGINT, flag};
use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, Write},
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, atomic::AtomicBool},
};

/// A running pager. Dropping it waits until the reader has left it.
pub(crate) struct Pager(Child);

impl Pager {
    /// Starts the pager if stdout is a terminal, the user wants one, and it is a program.
    pub(crate) fn start(is_program: fn(&Path) -> bool) -> Option<Self> {
        if !rustix::termios::isatty(io::stdout()) {
            return None;
        }
        let chosen =
            chosen(|name| env::var_os(name)).filter(|chosen| is_there(chosen, is_program))?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(chosen).stdin(Stdio::piped());
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

/// Returns whether the program of a command is there. The shell would start without it, and show
/// nothing.
fn is_there(command: &OsStr, is_program: fn(&Path) -> bool) -> bool {
    let bytes = command.as_bytes();
    let program = bytes.split(u8::is_ascii_whitespace).find(|word| !word.is_empty());
    is_program(Path::new(OsStr::from_bytes(program.unwrap_or_default())))
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
    use crate::target::launch::is_program;

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

    #[test]
    fn a_pager_that_is_not_there_is_not_started() {
        let there = |command: &str| is_there(command.as_ref(), is_program);
        assert!(there("sh -c less") && there(" /bin/sh"));
        assert!(!there("/no/such/pager") && !there("no-such-pager -S") && !there(" "));
    }
}
