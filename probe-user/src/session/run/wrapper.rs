//! The hint for a command that lacks what is to be traced: it may be there only to start the program
//! that is meant.

use super::launch::Program;
use crate::target::{launch, select::SelectError};
use anyhow::anyhow;
use std::path::Path;

/// Limit of words that are looked up.
const MOST_WORDS: usize = 16;
/// Programs whose arguments are no words.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "fish"];

/// Puts the hint before the reason why nothing can be traced.
pub(super) fn explain(error: anyhow::Error, program: &Program<'_>) -> anyhow::Error {
    match error.downcast_ref() {
        Some(SelectError::NothingFound(_)) => match hint(program) {
            Some(hint) => anyhow!("{hint}: {error:#}"),
            None => error,
        },
        _ => error,
    }
}

fn hint(program: &Program<'_>) -> Option<String> {
    let resolved = program.resolved;
    if !resolved.scripts.is_empty() {
        let script = resolved.command.display();
        return Some(format!(
            "{script} is a script: add --follow to trace the programs that it starts, or give ctrace \
             one of them"
        ));
    }
    let name = Path::new(&program.words[0]).file_name().unwrap_or_default();
    if SHELLS.iter().any(|shell| name == *shell) {
        let name = name.display();
        return Some(format!("add --follow to trace the programs that {name} starts"));
    }
    let mut words = program.words.iter().skip(1).take(MOST_WORDS).map(Path::new);
    let started = words.find(|word| launch::is_program(word))?.display();
    let name = name.display();
    Some(format!("if {name} starts {started}, add --follow, or give ctrace {started} itself"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{session::run::launch::Streams, user::Identity};
    use std::ffi::OsString;

    fn hint_for(words: &[&str]) -> Option<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let resolved = launch::resolve(&words[0]).expect("is there");
        let user = Identity::Ours;
        let program =
            Program { words: &words, resolved: &resolved, user: &user, streams: Streams::Ours };
        hint(&program)
    }

    #[test]
    fn the_program_that_a_command_may_start_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("wrapper.sh");
        crate::target::fixtures::install(b"#!/bin/sh\n/bin/true\n", &script);
        let script = script.to_str().expect("text");
        let told = hint_for(&[script, "/bin/true"]).expect("a script");
        assert!(told.starts_with(&format!("{script} is a script: add --follow")), "{told}");
        let timeout = ["/usr/bin/timeout", "5", "/bin/sleep", "1"];
        let expected =
            "if timeout starts /bin/sleep, add --follow, or give ctrace /bin/sleep itself";
        assert_eq!(hint_for(&timeout).as_deref(), Some(expected));
        let expected = "add --follow to trace the programs that sh starts";
        assert_eq!(hint_for(&["/bin/sh", "-c", "true"]).as_deref(), Some(expected));
        assert_eq!(hint_for(&["/usr/bin/timeout", "no-such-program"]), None);
    }
}
