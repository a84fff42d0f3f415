//! Commands that lack what is to be traced, and are there only to start the program that is meant.

use super::launch::Program;
use crate::target::{launch, select::SelectError};
use std::{ffi::OsString, path::Path};

/// Limit of words that are looked up.
const MOST_WORDS: usize = 16;
/// Programs whose arguments are no words.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "fish"];
/// How the names of interpreters begin whose scripts are programs rather than wrappers.
const LANGUAGES: [&str; 5] = ["java", "node", "php", "python", "ruby"];
/// Programs that start the one which their arguments name. An argument of others may be anything: `rm` starts none.
const STARTERS: [&str; 32] = [
    "busybox",
    "catchsegv",
    "chroot",
    "chrt",
    "dbus-run-session",
    "doas",
    "env",
    "firejail",
    "flock",
    "ionice",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "prlimit",
    "runuser",
    "setarch",
    "setpriv",
    "setsid",
    "setuidgid",
    "stdbuf",
    "strace",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "unshare",
    "valgrind",
    "xargs",
    "xvfb-run",
];

/// Says that what the command starts is traced, too, if that is what is meant.
pub(super) fn starts_others(error: &anyhow::Error, program: &Program<'_>) -> Option<String> {
    let is_not_found = matches!(error.downcast_ref(), Some(SelectError::NothingFound(_)));
    let starter = starter(program).filter(|_| is_not_found)?;
    Some(format!("{starter}: what it starts is traced, too, as with --follow"))
}

fn starter(program: &Program<'_>) -> Option<String> {
    let resolved = program.resolved;
    let speaks = |language: &&str| {
        let exe = resolved.exe.file_name().unwrap_or_default().as_encoded_bytes();
        exe.starts_with(language.as_bytes())
    };
    // What was not found is more likely a function of theirs, and the error tells of that.
    if LANGUAGES.iter().any(speaks) {
        return None;
    }
    if !resolved.scripts.is_empty() {
        return Some(format!("{} is a script", resolved.command.display()));
    }
    let name = Path::new(&program.words[0]).file_name().unwrap_or_default();
    if SHELLS.iter().any(|shell| name == *shell) {
        return Some(format!("{} is a shell", name.display()));
    }
    if !STARTERS.iter().any(|starter| name == *starter) {
        return None;
    }
    // Neither options nor variables.
    let is_name = |word: &&OsString| {
        let word = word.as_encoded_bytes();
        !word.starts_with(b"-") && !word.contains(&b'=')
    };
    let mut words = program.words.iter().skip(1).filter(is_name).take(MOST_WORDS).map(Path::new);
    let started = words.find(|word| launch::is_program(word))?.display();
    Some(format!("{} may start {started}", name.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{session::run::launch::Streams, user::Identity};

    fn starter_of(words: &[&str]) -> Option<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let resolved = launch::resolve(&words[0]).expect("is there");
        let user = Identity::Ours;
        starter(&Program {
            words: &words,
            resolved: &resolved,
            user: &user,
            streams: Streams::Ours,
        })
    }

    #[test]
    fn commands_that_may_start_others_are_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("wrapper.sh");
        crate::target::fixtures::install(b"#!/bin/sh\n/bin/true\n", &script);
        let script = script.to_str().expect("text");
        assert_eq!(starter_of(&[script, "/bin/true"]), Some(format!("{script} is a script")));
        let timeout = starter_of(&["/usr/bin/timeout", "5", "/bin/sleep", "1"]);
        assert_eq!(timeout.as_deref(), Some("timeout may start /bin/sleep"));
        let shell = starter_of(&["/bin/sh", "-c", "true"]);
        assert_eq!(shell.as_deref(), Some("sh is a shell"));
        assert_eq!(starter_of(&["/usr/bin/timeout", "no-such-program"]), None);
        assert_eq!(starter_of(&["nice", "true"]).as_deref(), Some("nice may start true"));
        let variables: Vec<String> = (0..20).map(|n| format!("v{n}=/bin/true")).collect();
        let mut env: Vec<&str> = variables.iter().map(String::as_str).collect();
        env.insert(0, "env");
        env.push("/bin/sleep");
        assert_eq!(starter_of(&env).as_deref(), Some("env may start /bin/sleep"));
        // Others do anything with a program's file.
        assert_eq!(starter_of(&["/bin/rm", "/bin/sleep"]), None);
    }
}
