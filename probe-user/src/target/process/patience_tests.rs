//! Each test uses child processes of its own, so that no other work counts against them.

use super::*;
use std::process::{Child, Command};

const SHORT: Duration = Duration::from_millis(20);

struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        Self(Command::new("/bin/sleep").arg("1000").spawn().expect("starts"))
    }

    fn pid(&self) -> Pid {
        Pid(self.0.id())
    }

    /// Hangs until the sender sends.
    fn get_stuck(&self) -> Sender<()> {
        let (release, wait) = channel::<()>();
        let stuck = within_limit(SHORT, self.pid(), move || wait.recv().is_ok());
        assert_eq!(stuck, Err(GivenUp));
        release
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it is ours");
    }
}

fn wait_until_free(pid: Pid) {
    while is_stuck(pid) {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_does_not_answer_is_given_up_and_the_next_is_done() {
    let sleeper = Sleeper::start();
    let release = sleeper.get_stuck();
    assert!(is_stuck(sleeper.pid()));
    assert_eq!(within(sleeper.pid(), || 7), Ok(7));
    release.send(()).expect("it still waits");
    wait_until_free(sleeper.pid());
    assert_eq!(within(sleeper.pid(), || 8), Ok(8));
}

#[test]
fn a_process_that_is_waited_for_twice_is_left_alone_and_others_are_not() {
    let (stuck, other) = (Sleeper::start(), Sleeper::start());
    let releases = [stuck.get_stuck(), stuck.get_stuck()];
    assert_eq!(within(stuck.pid(), || 7), Err(GivenUp), "it is not even begun");
    assert_eq!(within(other.pid(), || 7), Ok(7));
    for release in releases {
        release.send(()).expect("it still waits");
    }
    wait_until_free(stuck.pid());
    assert_eq!(within(stuck.pid(), || 8), Ok(8), "it answers again");
}

#[test]
fn many_processes_of_a_user_use_up_that_users_share_only() {
    let of = |pid: usize, user: u32| Identity { pid: Pid(pid as u32), start_time: 1, user };
    let mut stuck = Stuck((0..MOST_OF_USER).map(|pid| of(pid, 7)).collect());
    assert!(!stuck.has_room_for(of(MOST_OF_USER, 7)));
    assert!(stuck.has_room_for(of(MOST_OF_USER, 8)));
    stuck.0.extend((0..MOST).map(|pid| of(pid, 1_000 + pid as u32)));
    assert!(!stuck.has_room_for(of(MOST, 8)), "there is an end to it");
    stuck.0.clear();
    stuck.0.extend([of(5, 7), of(5, 7)]);
    assert!(!stuck.has_room_for(of(5, 7)));
    assert!(stuck.has_room_for(Identity { start_time: 2, ..of(5, 7) }), "a later process");
}

#[test]
fn one_thread_does_it_all() {
    let own = Pid(std::process::id());
    let id = || within(own, || thread::current().id()).expect("in time");
    assert_eq!(id(), id());
    assert_ne!(id(), thread::current().id());
}
