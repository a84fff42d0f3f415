//! Finds processes that the tests start, by names that nothing else has.

use super::*;
use std::process::{Child, Command, Stdio};

/// A program with a name of its own, and its processes.
struct Named {
    folder: tempfile::TempDir,
    name: String,
    started: Vec<Child>,
}

impl Named {
    fn new(what: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let name = format!("{what}{}", std::process::id());
        let sleep = std::fs::read("/bin/sleep").expect("sleep is there");
        crate::target::fixtures::install(&sleep, &folder.path().join(&name));
        Self { folder, name, started: Vec::new() }
    }

    fn exe(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("it exists").join(&self.name)
    }

    fn start(&mut self) -> u32 {
        let child = Command::new(self.exe()).arg("300").stdin(Stdio::null()).spawn();
        let child = child.expect("starts");
        let pid = child.id();
        self.started.push(child);
        // Until it has executed, it is this program. Its arguments come last.
        let has_arguments =
            || std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|it| !it.is_empty());
        while ProgramFacts::of(Pid(pid)).is_none_or(|program| program.file_name() != self.name)
            || !has_arguments()
        {
            std::thread::yield_now();
        }
        pid
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        for child in &mut self.started {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn the_form_of_a_name_decides_what_it_is() {
    let parse = |text: &str| ProcessName::parse(text);
    assert_eq!(parse("4711"), Ok(ProcessName::Pid(4711)));
    assert_eq!(parse("redis-server"), Ok(ProcessName::Name("redis-server".into())));
    assert_eq!(parse("7zip"), Ok(ProcessName::Name("7zip".into())));
    assert_eq!(parse("redis.service"), Ok(ProcessName::Unit("redis.service".into())));
    assert_eq!(parse("./server"), Ok(ProcessName::Exe("./server".into())));
    for text in ["0", "99999999999", ""] {
        assert!(parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_name_that_one_process_has_is_found() {
    // Longer than what the kernel keeps as the process's own name.
    let mut named = Named::new("ctrace-test-of-names-");
    let pid = named.start();
    let by_name = ProcessName::Name(named.name.clone());
    assert_eq!(by_name.pid().expect("found"), pid);
    assert_eq!(by_name.open().expect("opened").pid(), pid);
    assert_eq!(ProcessName::Exe(named.exe()).pid().expect("found"), pid);
    // A part of the name is no name.
    let part = ProcessName::Name(named.name[..named.name.len() - 1].to_owned());
    let error = part.open().expect_err("not found").to_string();
    assert!(error.contains(&format!("close to it: {}", named.name)), "{error}");
}

#[test]
fn several_processes_are_listed_and_none_is_chosen() {
    let mut named = Named::new("ct-two-");
    let mut pids = [named.start(), named.start()];
    pids.sort_unstable();
    for name in [ProcessName::Name(named.name.clone()), ProcessName::Exe(named.exe())] {
        let error = name.open().expect_err("two");
        let LookupError::Several { first, count: 2, .. } = &error else { panic!("{error}") };
        assert_eq!(first.iter().map(|candidate| candidate.pid).collect::<Vec<_>>(), pids);
        assert_eq!(first[0].command, format!("{} 300", named.exe().display()));
        assert!(first[0].age < Nanos(60_000_000_000), "{:?}", first[0].age);
        assert!(
            error.to_string().ends_with("take all of them together; or give the PID of one"),
            "{error}"
        );
    }
}

#[test]
fn the_main_process_of_a_unit_is_the_one_that_no_other_started() {
    let mut named = Named::new("ct-unit-");
    let pid = named.start();
    let own = std::process::id();
    let stat = |pid| (pid, read_stat(pid).expect("alive"));
    let main = |pids: &[u32]| -> Vec<u32> {
        outermost(pids.iter().copied().map(stat).collect()).iter().map(|(pid, _)| *pid).collect()
    };
    assert_eq!(main(&[own, pid]), [own]);
    assert_eq!(main(&[pid]), [pid]);
}

#[test]
fn what_does_not_run_is_told() {
    let error = ProcessName::Unit("ctrace-test-none.service".into()).open().expect_err("none");
    assert!(error.to_string().starts_with("no process is in the unit"), "{error}");
    let error = ProcessName::Exe("/no/such/program".into()).open().expect_err("none");
    assert!(error.to_string().contains("is running /no/such/program"), "{error}");
}
