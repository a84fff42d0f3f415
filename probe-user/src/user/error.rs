//! The reasons why the command's user is unknown or cannot be used.

use super::rights::Rights;
use std::io;

/// Each message is one line. Text from the environment is escaped.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    #[error("{variable} is {value:?}, which is no id: call ctrace through sudo again, or unset it")]
    NoId { variable: &'static str, value: String },
    #[error("{variable} names {value:?}, but there is no such user: unset it")]
    NoCaller { variable: &'static str, value: String },
    #[error("SUDO_UID is {uid}, which has no account and no group: set SUDO_GID, too, or unset it")]
    NoGroup { uid: u32 },
    #[error(
        "SUDO_GID is {gid}, which is no group of {user}: call ctrace through sudo again, or unset it"
    )]
    StrangeGroup { gid: u32, user: String },
    #[error("there is no user {0:?}: --user takes a name or an id that `getent passwd` knows")]
    NoUser(String),
    #[error("only root can run a command as another user: call ctrace through sudo")]
    NotRoot,
    #[error("cannot ask who {who} is: {error}")]
    NameService { who: String, error: io::Error },
    #[error("cannot take on the rights of user {}: {step}: {error}", rights.uid.as_raw())]
    Switch { rights: Rights, step: &'static str, error: io::Error },
    #[error("user {} could become root again: the command is not started", rights.uid.as_raw())]
    Regained { rights: Rights },
    #[error("cannot look at files as user {}: other rights remain", rights.uid.as_raw())]
    Unlike { rights: Rights },
    #[error("{0:?} does not say whose rights to take on")]
    Malformed(String),
    #[error("a thread ended by a fault")]
    Thread,
    #[error("cannot start a thread: {0}; raise `ulimit -v`, or `ulimit -u`")]
    NoThread(String),
}

/// Shortens a text for messages, as it could be of any length.
pub(super) fn shown(text: &std::ffi::OsStr) -> String {
    const MOST: usize = 64;
    text.to_string_lossy().chars().take(MOST).collect()
}
