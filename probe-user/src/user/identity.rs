//! The user that a command runs as.

use super::{Account, UserError, caller, error::shown, rights};
use rustix::process::{Uid, geteuid, getgid, getuid};
use std::{
    ffi::{OsStr, OsString},
    process::Command,
    thread,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The user that ctrace runs as. Only capabilities are not passed on.
    Ours,
    Other(Box<Account>),
}

/// Variables of sudo, doas and pkexec about their caller. The command runs as the caller, so nobody
/// called sudo for it.
const OF_THE_CALL: [&str; 8] = [
    "SUDO_COMMAND",
    "SUDO_GID",
    "SUDO_HOME",
    "SUDO_TTY",
    "SUDO_UID",
    "SUDO_USER",
    "DOAS_USER",
    "PKEXEC_UID",
];

impl Identity {
    /// Chooses the user of `--user`, else the caller of sudo. The line, if any, is for the user.
    pub(crate) fn choose(
        asked: Option<&str>,
        command: &OsStr,
    ) -> Result<(Self, Option<String>), UserError> {
        let running =
            |account: &Account| format!("running {} as {}", shown(command), account.shown());
        match asked {
            Some(text) => {
                let account = find(text)?;
                let line = running(&account);
                let is_ours = [getuid(), geteuid()] == [account.rights.uid; 2];
                if !is_ours && !geteuid().is_root() {
                    return Err(UserError::NotRoot);
                }
                let identity = if is_ours { Self::Ours } else { Self::Other(Box::new(account)) };
                Ok((identity, Some(line)))
            }
            None => Ok(match caller()? {
                Some(account) => {
                    let line = format!("{}; --user root keeps root", running(&account));
                    (Self::Other(Box::new(account)), Some(line))
                }
                None => (Self::Ours, None),
            }),
        }
    }

    /// Runs `look` with the command's rights to files, for example to check that it may be
    /// executed. Root may do more than the user. The user gets no rights to the thread.
    pub(crate) fn on_behalf<T: Send>(
        &self,
        look: impl FnOnce() -> T + Send,
    ) -> Result<T, UserError> {
        let Self::Other(account) = self else { return Ok(look()) };
        // Rights belong to a thread, and end with this one.
        let with_rights = || account.rights.take_on_for_files().map(|()| look());
        thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, with_rights) {
            Ok(thread) => thread.join().unwrap_or(Err(UserError::Thread)),
            Err(error) => Err(UserError::NoThread(error.to_string())),
        })
    }

    /// Returns the user and group that execute the command.
    pub(crate) fn ids(&self) -> (u32, u32) {
        let (uid, gid) = match self {
            Self::Ours => (getuid(), getgid()),
            Self::Other(account) => (account.rights.uid, account.rights.gid),
        };
        (uid.as_raw(), gid.as_raw())
    }

    /// Returns the [`rights`] to take on just before the exec.
    pub(crate) fn rights(&self) -> Option<&rights::Rights> {
        match self {
            Self::Ours => None,
            Self::Other(account) => Some(&account.rights),
        }
    }

    /// Sets the login environment of that user. PATH and all others stay as ctrace has them.
    /// Variables of a login session (XDG_RUNTIME_DIR) are not invented.
    pub(crate) fn apply_environment(&self, command: &mut Command) {
        let Self::Other(account) = self else { return };
        for name in OF_THE_CALL {
            command.env_remove(name);
        }
        command.env("HOME", &account.home).env("SHELL", &account.shell);
        for (variable, is_always) in
            [("USER", true), ("LOGNAME", true), ("USERNAME", false), ("MAIL", false)]
        {
            let Some(name) = &account.name else {
                command.env_remove(variable);
                continue;
            };
            let value = if variable == "MAIL" { format!("/var/mail/{name}") } else { name.clone() };
            if is_always || std::env::var_os(variable).is_some() {
                command.env(variable, value);
            }
        }
    }
}

/// Finds an account by name, else by id, as `chown` does.
fn find(text: &str) -> Result<Account, UserError> {
    let name = OsString::from(text);
    if let Some(account) = Account::of_name(&name)? {
        return Ok(account);
    }
    let account = rights::id(text).map(|uid| Account::of_uid(Uid::from_raw(uid))).transpose()?;
    account.flatten().ok_or_else(|| UserError::NoUser(shown(&name)))
}
