//! Programs attack the search for their libraries: none of their code runs, nothing waits for them,
//! and their texts appear in plain lines.

use ctrace_tests::env::Link;
use ctrace_tests::install::install;
use ctrace_tests::loader_takeover::{takes_over_the_loader, texts, with_dynamic_section};
use ctrace_tests::process::{Finished, Running, run};
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const DT_NEEDED: i64 = 1;
const DT_RUNPATH: i64 = 29;

struct Case {
    dir: tempfile::TempDir,
    binary: PathBuf,
}

impl Case {
    fn new(binary: PathBuf) -> Self {
        Self { dir: tempfile::tempdir().expect("a folder"), binary }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Makes a program that needs libraries, and searches them in a list of directories.
    fn program(&self, needed: impl Iterator<Item = String>, search: &str) -> PathBuf {
        let (bytes, places) = texts(std::iter::once(search.to_owned()).chain(needed));
        let needed = places[1..].iter().map(|place| (DT_NEEDED, *place));
        let entries: Vec<_> = needed.chain([(DT_RUNPATH, places[0])]).collect();
        let path = self.path("program");
        install(&with_dynamic_section(&entries, &bytes), &path);
        path
    }

    /// Runs ctrace, which must end in time and print plain lines.
    #[track_caller]
    fn ctrace(&self, words: &[&str], file: &Path) -> Finished {
        let mut command = Command::new(&self.binary);
        command.args(words).arg(file);
        let finished = run(&mut command, Duration::from_secs(30)).expect("ctrace ends");
        let said = format!("{}{}", finished.stdout, finished.stderr);
        let turns = |c: char| ('\u{202a}'..='\u{202e}').contains(&c);
        let plain = |c: char| c == '\n' || !c.is_control() && !turns(c);
        assert!(said.chars().all(plain) && !said.contains("panicked"), "{words:?}: {said:?}");
        assert!(finished.stderr.len() < 20_000, "{words:?}: {}", finished.stderr.len());
        finished
    }
}

/// Ways to look at a file, and starts of a command that is refused before it runs.
const LOOKS: [&[&str]; 4] = [
    &["list"],
    &["list", "-f", "*"],
    &["list", "-v", "--json", "-f", "*"],
    &["run", "-f", "no_such_function", "--"],
];

#[test]
fn nothing_of_a_file_that_is_looked_at_runs() {
    let case = Case::new(or_skip!(gate::live(Link::Perf)).ctrace);
    let made = case.path("made");
    let program = case.path("program");
    install(&takes_over_the_loader(made.as_os_str()), &program);
    for words in LOOKS {
        case.ctrace(words, &program);
        assert!(!made.exists(), "{words:?}: its code ran");
    }
    // The file works as intended if the machine's loader is of that kind.
    let status = Command::new("/lib64/ld-linux-x86-64.so.2").arg("--list").arg(&program).status();
    if !made.exists() {
        eprintln!("this machine's loader is not taken over: {status:?}");
    }
}

#[test]
fn libraries_without_end() {
    let case = Case::new(or_skip!(gate::live(Link::Perf)).ctrace);
    let search: Vec<String> = (0..500).map(|at| format!("$ORIGIN/{at}")).collect();
    for count in [3_000, 100_000] {
        let needed = (0..count).map(|at| format!("lib{at}.so"));
        let program = case.program(needed, &search.join(":"));
        LOOKS.iter().for_each(|words| drop(case.ctrace(words, &program)));
    }
}

#[test]
fn libraries_that_would_be_waited_for() {
    let case = Case::new(or_skip!(gate::live(Link::Perf)).ctrace);
    let made = Command::new("mkfifo").arg(case.path("libfifo.so")).status().expect("mkfifo");
    assert!(made.success());
    let needed = ["libfifo.so", "/dev/tty", "/dev/zero", "/proc/kmsg", "/proc/self/mem"];
    let program = case.program(needed.into_iter().map(str::to_owned), "$ORIGIN");
    LOOKS.iter().for_each(|words| drop(case.ctrace(words, &program)));
}

#[test]
fn names_that_would_steer_a_terminal() {
    let case = Case::new(or_skip!(gate::live(Link::Perf)).ctrace);
    let needed = ["\x1b]0;title\x07\x1b[2J.so".to_owned(), "a\r\nctrace: all is well".to_owned()];
    let program = case.program(needed.into_iter(), "$ORIGIN");
    LOOKS.iter().for_each(|words| drop(case.ctrace(words, &program)));
    // The program has something to trace, so that its missing loader is reported.
    let finished = case.ctrace(&["run", "-f", "_dl_*", "--"], &program);
    let line = finished.stderr.lines().find(|line| line.contains("does not find"));
    assert!(line.is_some_and(|line| line.contains("all is well")), "{}", finished.stderr);
}

/// A symbol of the program, and the path of a file that it maps.
#[test]
fn names_in_lists_and_in_the_log() {
    let env = or_skip!(gate::live(Link::Session));
    let case = Case::new(env.ctrace.clone());
    let source = r#"
        #include <fcntl.h>
        #include <stdio.h>
        #include <sys/mman.h>
        #include <unistd.h>
        int f(void) __asm__("steer\302\2332J\342\200\256");
        int f(void) { return 1; }
        int main(int count, char **words) {
            int file = open(words[1], O_RDONLY);
            mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
            puts("ready");
            fflush(stdout);
            sleep(1000);
            return f();
        }
    "#;
    std::fs::write(case.path("source.c"), source).expect("write");
    let mut gcc = Command::new("gcc");
    gcc.args(["source.c", "-o", "program"]).current_dir(case.dir.path());
    assert!(gcc.status().expect("gcc").success());
    for words in [&["list"][..], &["list", "--json"]] {
        let finished = case.ctrace(words, &case.path("program"));
        assert!(finished.stdout.contains("steer"), "{}", finished.stdout);
    }
    let mapped = case.path("no program\n WARN ctrace: all is well\x1b[2J");
    std::fs::write(&mapped, "x".repeat(4096)).expect("write");
    let mut program = Command::new(case.path("program"));
    let target = Running::start_ready(program.arg(&mapped)).expect("starts");
    let pid = target.pid().to_string();
    let finished = case.ctrace(&["attach", "-f", "main", "-d", "0.2"], Path::new(&pid));
    let lines = finished.stderr.lines().filter(|line| line.contains("all is well"));
    let lines: Vec<&str> = lines.collect();
    assert!(matches!(lines[..], [line] if line.contains("no program")), "{}", finished.stderr);
}

/// A command starts another with its own search paths.
#[test]
fn the_environment_of_the_program_decides() {
    let env = or_skip!(gate::live(Link::Session));
    let case = Case::new(env.ctrace.clone());
    let library = "int only_here(int x) { return x + 1; }";
    let main = "int only_here(int); int main() { int x = 0, i = 7; while (i--) x = only_here(x); return x; }";
    let gcc = |name: &str, source: &str, words: &[&str]| {
        std::fs::write(case.path("source.c"), source).expect("write");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O0", "source.c", "-o", name]).args(words).current_dir(case.dir.path());
        assert!(gcc.status().expect("gcc").success());
    };
    gcc("libonly.so", library, &["-shared", "-fPIC"]);
    gcc("program", main, &["-L.", "-lonly"]);
    let dir = case.dir.path().display();
    let script = case.path("script");
    let text = format!("#!/bin/sh\nLD_LIBRARY_PATH={dir} exec {dir}/program\n");
    install(text.as_bytes(), &script);
    let trace = Trace::run(&env).expect("ctrace").functions(["exit", "only_here"]);
    let traced = trace.program(&script, []).finish().expect("runs").expect_code(7).expect("code");
    let function = traced.report().expect("report").expect("only_here").expect("its row");
    assert_eq!(function.calls(), 7);
}
