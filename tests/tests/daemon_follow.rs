//! `follow` in the daemon traces each process of a family once, even if its parent has changed.

use ctrace_tests::daemon::{Daemon, folder};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::look::{runs, wait_until};
use ctrace_tests::process::Running;
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::time::Duration;

// The kernel's reports and the sessions find it, not repeated looks.
const OTHERS: &str = "rescan = \"60m\"\n[[target]]\nid = \"other\"\nexe = \"DIR/other\"\n\
                      functions = \"work\"\n";
const FAMILY: &str = "[[target]]\nid = \"family\"\nexe = \"DIR/lineage\"\nfunctions = \"work\"\n\
                      follow = true\ninterval = \"200ms\"\n";

fn start(env: &Env) -> Daemon {
    let dir = folder(env, &[("lineage", &program("lineage.c"))]).expect("the target builds");
    Daemon::start(env, dir, OTHERS).expect("the daemon starts")
}

/// Makes it fork, and returns the descendant that stays.
fn descendant(daemon: &Daemon, target: &Running) -> i32 {
    let file = daemon.path("lineage");
    let others = || -> Vec<i32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| *pid != target.pid() && runs(*pid, &file)).collect()
    };
    target.signal(Signal::USR1).expect("runs");
    // The process between may still be there.
    std::thread::sleep(Duration::from_millis(300));
    wait_until("there is one other", || others().len() == 1).expect("forked");
    others()[0]
}

fn sessions(daemon: &Daemon) -> Vec<i32> {
    let mut pids: Vec<i32> = daemon.sessions().into_keys().collect();
    pids.sort();
    pids
}

fn end(pid: i32) {
    // It may be gone.
    let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
}

/// A followed grandchild whose parent ended belongs to its session. When that ends, it gets its
/// own.
#[test]
fn one_that_lost_its_parent_is_traced_once() {
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(&env);
    daemon.configure(&format!("{OTHERS}{FAMILY}")).expect("written");
    daemon.ask(&["reload"]).expect("sound");
    let target = daemon.target("lineage", &["orphan"]).expect("starts");
    daemon.wait_until_traced(target.pid()).expect("traced");
    let left = descendant(&daemon, &target);
    // All processes are looked at.
    daemon.ask(&["reload"]).expect("sound");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(sessions(&daemon), [target.pid()], "and not {left}");
    target.signal(Signal::KILL).expect("runs");
    let taken = wait_until("the other has a session", || sessions(&daemon) == [left]);
    end(left);
    taken.expect("traced");
}

/// A child older than its parent's session gets its own session.
#[test]
fn one_that_was_there_before_is_traced() {
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(&env);
    let target = daemon.target("lineage", &[]).expect("starts");
    let child = descendant(&daemon, &target);
    daemon.configure(&format!("{OTHERS}{FAMILY}")).expect("written");
    daemon.ask(&["reload"]).expect("sound");
    let mut both = [target.pid(), child];
    both.sort();
    let taken = wait_until("both have sessions", || sessions(&daemon) == both);
    end(child);
    taken.expect("traced");
}
