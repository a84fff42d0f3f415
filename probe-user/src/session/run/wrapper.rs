//! The hint for a command that lacks what is to be traced: it may be there only to start the program
//! that is meant.

use super::launch::Program;
use crate::target::{launch, read::regular::open_regular, select::SelectError};
use anyhow::anyhow;
use std::io::Read as _;
use std::path::Path;

/// Limit of words that are looked up.
const MOST_WORDS: usize = 16;
/// Bytes of a script that are looked at.
const MOST_OF_SCRIPT: u64 = 1 << 16;
/// Programs whose arguments are no words.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "fish"];

/// Puts the hint before the reason why nothing can be traced.
pub(super) fn explain(error: anyhow::Error, program: &Program<'_>) -> anyhow::Error {
    match error.downcast_ref() {
        Some(SelectError::NothingFound(_)) => match hint(program) {
            Some(hint) => {
                let reason = format!("{error:#}");
                // Where the shell that runs a script keeps its names is of no use.
                let is_script = !program.resolved.scripts.is_empty();
                let short = reason.split(" (searched").next().filter(|_| is_script);
                anyhow!("{hint}: {}", short.unwrap_or(&reason))
            }
            None => error,
        },
        _ => error,
    }
}

fn hint(program: &Program<'_>) -> Option<String> {
    let resolved = program.resolved;
    if !resolved.scripts.is_empty() {
        let script = resolved.command.display();
        let one = match started_by(&resolved.command) {
            Some(started) => format!("{started} itself"),
            None => "one of them".to_owned(),
        };
        return Some(format!(
            "{script} is a script: add --follow to trace the programs that it starts, or give ctrace {one}"
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

/// Returns a program that a script names by its path, that behind `exec` before others.
fn started_by(script: &Path) -> Option<String> {
    let mut text = Vec::new();
    open_regular(script).ok()??.take(MOST_OF_SCRIPT).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let is_code = |line: &&str| !line.trim_start().starts_with('#');
    let words = |line: &str| {
        let words = line.split(|sign: char| sign.is_whitespace() || "\"';&|()`".contains(sign));
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let lines: Vec<Vec<String>> = text.lines().filter(is_code).map(words).collect();
    let (with, without): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|words| words.first().is_some_and(|word| word == "exec"));
    let mut paths = with.into_iter().chain(without).flatten().filter(|word| word.contains('/'));
    paths.by_ref().take(MOST_WORDS).find(|word| launch::is_program(Path::new(word)))
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
        let expected =
            "add --follow to trace the programs that it starts, or give ctrace /bin/true itself";
        assert_eq!(told, format!("{script} is a script: {expected}"));
        let shell = b"#!/bin/sh\n# /bin/cat\nPATH=/x/y /bin/ls\nexec \"/bin/date\" \"$@\"\n";
        let other = folder.path().join("other.sh");
        crate::target::fixtures::install(shell, &other);
        assert_eq!(started_by(&other).as_deref(), Some("/bin/date"));
        let timeout = ["/usr/bin/timeout", "5", "/bin/sleep", "1"];
        let expected =
            "if timeout starts /bin/sleep, add --follow, or give ctrace /bin/sleep itself";
        assert_eq!(hint_for(&timeout).as_deref(), Some(expected));
        let expected = "add --follow to trace the programs that sh starts";
        assert_eq!(hint_for(&["/bin/sh", "-c", "true"]).as_deref(), Some(expected));
        assert_eq!(hint_for(&["/usr/bin/timeout", "no-such-program"]), None);
    }
}
