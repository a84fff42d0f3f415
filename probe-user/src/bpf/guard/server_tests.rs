use super::{super::wire::GuardRequest, *};
use crate::bpf::{
    link::kernel_link::{LinkSpec, Way},
    sys::AttachType,
};
use std::{
    fs::File,
    io::Write as _,
    sync::mpsc::{Receiver, channel},
    thread::JoinHandle,
    time::Duration,
};

const LONG: Duration = Duration::from_secs(20);

/// Starts a guard on a thread. Returns our end of its socket and the pids that it was to outlive.
fn guard() -> (UnixStream, JoinHandle<()>, Receiver<u32>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (sender, receiver) = channel();
    let serve =
        move || serve(&theirs, |_| Sight::Running, |held| sender.send(held.pid).unwrap(), |_| ());
    ours.set_read_timeout(Some(LONG)).unwrap();
    (ours, std::thread::spawn(serve), receiver)
}

fn ask_for_link(socket: &UnixStream, id: Id) {
    let file = File::open("/dev/null").unwrap();
    let spec = LinkSpec {
        way: Way::Multi(AttachType::UprobeMulti),
        at_return: false,
        keeps_to_the_end: false,
        pid: None,
        offsets: &[1, 2],
        cookies: &[3, 4],
        ref_ctr_offsets: &[],
    };
    let fds = [file.as_fd(), file.as_fd()];
    GuardRequest::Link { id, spec, fds }.send(socket).unwrap();
}

#[test]
fn every_question_is_answered() {
    let (socket, thread, _) = guard();
    for id in 1..=50 {
        ask_for_link(&socket, id);
    }
    let mut answered: Vec<_> = (0..50).map(|_| GuardAnswer::receive(&socket).unwrap()).collect();
    answered.sort_unstable_by_key(|answer| answer.id);
    for (answer, id) in answered.iter().zip(1..) {
        // The descriptor is no program.
        assert!(answer.id == id && answer.errno != 0, "{answer:?}");
    }
    GuardRequest::Close { link: 99 }.send(&socket).unwrap();
    assert_eq!(GuardAnswer::receive(&socket), Some(GuardAnswer::done(99, &Ok(()))));
    drop(socket);
    thread.join().unwrap();
}

#[test]
fn after_the_end_of_all_links_there_are_no_further_ones() {
    let (socket, thread, _) = guard();
    for id in [5, 6] {
        GuardRequest::CloseAll { id }.send(&socket).unwrap();
    }
    let mut ended = [5, 6].map(|_| GuardAnswer::receive(&socket).unwrap());
    ended.sort_unstable_by_key(|answer| answer.id);
    assert_eq!(ended, [GuardAnswer::done(5, &Ok(())), GuardAnswer::done(6, &Ok(()))]);
    ask_for_link(&socket, 7);
    let answer = GuardAnswer::receive(&socket).unwrap();
    assert_eq!((answer.id, answer.errno), (7, libc::ECANCELED));
    drop(socket);
    thread.join().unwrap();
}

#[test]
fn what_makes_no_sense_ends_the_guard() {
    for noise in [&[0xff; 48][..], &[0; 48], &[1; 30], &[]] {
        let (mut socket, thread, _) = guard();
        socket.write_all(noise).unwrap();
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        thread.join().unwrap();
    }
    let (mut socket, thread, _) = guard();
    // The guard must not read endless data to its end.
    while socket.write_all(&[0xab; 4096]).is_ok() {}
    thread.join().unwrap();
}

#[test]
fn what_is_held_at_the_end_is_handed_on() {
    let file = File::open("/dev/null").unwrap();
    let fds = [file.as_fd()];
    for (messages, expected) in [
        (vec![GuardRequest::Hold { pid: 41, fds }, GuardRequest::Hold { pid: 42, fds }], vec![42]),
        (vec![GuardRequest::Hold { pid: 43, fds }, GuardRequest::LetGo], vec![]),
    ] {
        let (socket, thread, held) = guard();
        messages.iter().for_each(|message| message.send(&socket).unwrap());
        drop(socket);
        thread.join().unwrap();
        assert_eq!(held.iter().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn an_asker_that_dies_is_the_end_while_its_socket_is_open() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let file = File::open("/dev/null").unwrap();
    GuardRequest::Hold { pid: 44, fds: [file.as_fd()] }.send(&ours).unwrap();
    // Half a message ends the guard.
    (&ours).write_all(&[0; 8]).unwrap();
    let (sender, held) = channel();
    let mut sights = [Sight::Running, Sight::Stopped, Sight::Dying].into_iter();
    let mut tended = Vec::new();
    let look = |held: Option<&Hold>| {
        tended.push(held.map(|held| held.pid));
        sights.next().unwrap()
    };
    serve(&theirs, look, |held| sender.send(held.pid).unwrap(), |_| ());
    assert_eq!(tended, [Some(44); 3]);
    assert_eq!(held.try_recv(), Ok(44));
}
