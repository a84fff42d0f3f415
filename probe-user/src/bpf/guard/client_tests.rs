use super::super::super::sys::AttachType;
use super::super::{owner::Sight, server};
use super::*;
use crate::bpf::link::kernel_link::Way;
use std::{fs::File, process::Command, time::Duration};

const OFFSETS: [u64; 3] = [16, 32, 48];

/// Starts a guard whose work runs on another thread.
fn guard() -> Arc<Guard> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    std::thread::spawn(move || server::serve(&theirs, |_| Sight::Running, |_| (), |_| ()));
    let child = Command::new("true").spawn().unwrap();
    Guard::new(child, ours, |_| ()).unwrap()
}

/// Asks for a link with something that is no program.
fn link(guard: &Arc<Guard>, path: &str) -> io::Error {
    let spec = LinkSpec {
        way: Way::Multi(AttachType::UprobeMulti),
        at_return: false,
        keeps_to_the_end: false,
        pid: None,
        offsets: &OFFSETS,
        cookies: &OFFSETS,
        ref_ctr_offsets: &[],
    };
    let program = File::open("/dev/null").unwrap();
    let refusal = guard.link(program.as_fd(), Path::new(path), &spec).err().unwrap();
    assert_eq!((refusal.index, guard.sites()), (None, 0));
    refusal.source
}

#[test]
fn refusals_come_back() {
    let guard = guard();
    assert!(link(&guard, "/bin/sh").raw_os_error().is_some_and(|errno| errno != GONE));
    assert_eq!(link(&guard, "/no/such/file").raw_os_error(), Some(libc::ENOENT));
    assert_eq!(link(&guard, "a\0b").raw_os_error(), Some(libc::ENOENT));
    assert!(!guard.is_dead());
    guard.end();
    assert!(guard.is_dead());
}

#[test]
fn who_waits_for_a_guard_that_dies_is_told() {
    // The other end never answers.
    let (ours, theirs) = UnixStream::pair().unwrap();
    let child = Command::new("true").spawn().unwrap();
    let guard = Guard::new(child, ours, |_| ()).unwrap();
    let asking = Arc::clone(&guard);
    let waiting = std::thread::spawn(move || link(&asking, "/bin/sh"));
    while guard.sites() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut death = guard.death();
    drop(theirs);
    assert_eq!(waiting.join().unwrap().raw_os_error(), Some(GONE));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(death.wait());
    runtime.block_on(guard.death().wait());
    assert_eq!(link(&guard, "/bin/sh").raw_os_error(), Some(GONE));
    assert!(guard.close_all().is_err() && guard.is_dead());
}

#[test]
fn after_the_end_of_all_links_further_ones_are_refused() {
    let guard = guard();
    assert_eq!(guard.close_all().unwrap().recv().unwrap().errno, 0);
    assert_eq!(link(&guard, "/bin/sh").raw_os_error(), Some(libc::ECANCELED));
}
