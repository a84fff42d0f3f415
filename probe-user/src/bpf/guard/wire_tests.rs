use super::*;
use std::{fs::File, net::Shutdown, os::fd::AsFd as _};

fn spec<'a>(way: Way, offsets: &'a [u64], ref_ctr_offsets: &'a [u64]) -> LinkSpec<'a> {
    let cookies = offsets;
    LinkSpec {
        way,
        at_return: true,
        keeps_to_the_end: true,
        pid: Some(7),
        offsets,
        cookies,
        ref_ctr_offsets,
    }
}

/// Returns a socket's reading end after `write` has written to the other end and closed it.
fn after(write: impl FnOnce(&UnixStream) + Send + 'static) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        write(&theirs);
        let _ = theirs.shutdown(Shutdown::Both);
    });
    ours
}

fn null() -> File {
    File::open("/dev/null").unwrap()
}

fn receive_link(socket: &UnixStream) -> NewLink {
    match ReceivedRequest::receive(socket) {
        Ok(Some(ReceivedRequest::Link(link))) => link,
        other => panic!("{other:?}"),
    }
}

#[test]
fn links_arrive_as_they_were_asked_for() {
    const MANY: u64 = 20_000;
    let ways = [
        Way::Multi(AttachType::UprobeSession),
        Way::Multi(AttachType::UprobeMulti),
        Way::Perf { unit: 8, return_bit: 3 },
    ];
    let socket = after(move |socket| {
        for (way, id) in ways.into_iter().zip(11..) {
            let offsets: Vec<_> = (0..MANY).collect();
            let counts: Vec<_> = if id == 12 { (5..MANY + 5).collect() } else { Vec::new() };
            let file = null();
            let fds = [file.as_fd(), file.as_fd()];
            let spec = spec(way, &offsets, &counts);
            GuardRequest::Link { id, spec, fds }.send(socket).unwrap();
        }
    });
    for (way, id) in ways.into_iter().zip(11..) {
        let link = receive_link(&socket);
        assert_eq!(link.id, id);
        let spec = link.spec();
        assert_eq!((spec.way, spec.at_return, spec.pid), (way, true, Some(7)));
        assert_eq!((spec.offsets.len(), spec.offsets[19_999]), (20_000, 19_999));
        assert_eq!(spec.cookies, spec.offsets);
        assert_eq!(spec.ref_ctr_offsets.first(), if id == 12 { Some(&5) } else { None });
    }
    assert!(ReceivedRequest::receive(&socket).unwrap().is_none());
}

#[test]
fn a_message_that_is_cut_is_the_end() {
    let (first, second) = UnixStream::pair().unwrap();
    let file = null();
    let fds = [file.as_fd(), file.as_fd()];
    let offsets = [1, 2, 3];
    let spec = spec(Way::Multi(AttachType::UprobeMulti), &offsets, &[]);
    GuardRequest::Link { id: 1, spec, fds }.send(&first).unwrap();
    drop(first);
    let mut whole = Vec::new();
    (&second).read_to_end(&mut whole).unwrap();
    assert_eq!(whole.len(), HEADER_BYTES + 2 * 3 * 8);
    for length in 0..whole.len() {
        let part = whole[..length].to_vec();
        let socket = after(move |socket| {
            let file = null();
            let fds = [file.as_fd(), file.as_fd()];
            if !part.is_empty() {
                send_all(socket, &part, &fds).unwrap();
            }
        });
        assert!(ReceivedRequest::receive(&socket).unwrap().is_none(), "{length} bytes");
    }
}

/// Returns whether a header with this many descriptors is refused.
fn refused(header: MessageHeader, fds: usize) -> bool {
    let socket = after(move |socket| {
        let file = null();
        let fds = vec![file.as_fd(); fds];
        let _ = send_all(socket, &header.to_bytes(), &fds);
        // Enough bytes for numbers, if they are read.
        let _ = (&*socket).write_all(&[0; 4096]);
    });
    matches!(ReceivedRequest::receive(&socket), Err(error) if error.kind() == ErrorKind::InvalidData)
}

#[test]
fn what_makes_no_sense_is_refused() {
    let link = MessageHeader { what: LINK, attach: 48, count: 1, ..MessageHeader::default() };
    assert!(!refused(link, 2));
    for header in [
        MessageHeader { what: 0, ..link },
        MessageHeader { what: 99, ..link },
        MessageHeader { attach: 0, ..link },
        MessageHeader { attach: 49, ..link },
        MessageHeader { count: SITES_LIMIT as u32 + 1, ..link },
        MessageHeader { count: u32::MAX, ..link },
    ] {
        assert!(refused(header, 2), "{header:?}");
    }
    assert!(refused(link, 0) && refused(link, 1));
    assert!(refused(MessageHeader { what: CLOSE, ..link }, 1));
    assert!(
        refused(MessageHeader { what: HOLD, ..link }, 0)
            && refused(MessageHeader { what: HOLD, ..link }, 2)
    );
}

#[test]
fn sweeps_arrive_as_they_were_asked_for() {
    let guards = 1 << 33 | 5;
    let asked = [None, Some(Forgotten { pid: 9, time: 1 << 50 | 1 << 31 | 3 })];
    let socket = after(move |socket| {
        for (whose, id) in asked.into_iter().zip(1 << 40..) {
            GuardRequest::Sweep { id, guards, whose }.send(socket).unwrap();
        }
    });
    for (expected, number) in asked.into_iter().zip(1 << 40..) {
        match ReceivedRequest::receive(&socket) {
            Ok(Some(ReceivedRequest::Sweep { id, guards: of, whose })) => {
                assert_eq!((id, of, whose), (number, guards, expected));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn headers_are_read_as_they_were_written() {
    let header = MessageHeader {
        what: 1,
        flags: 2,
        id: 1 << 40 | 3,
        attach: 4,
        count: 5,
        pid: 6,
        unit: 7,
        return_bit: 8,
    };
    assert_eq!(MessageHeader::from_bytes(&header.to_bytes()), header);
}

#[test]
fn answers_are_read_as_they_were_written() {
    let answers = [
        GuardAnswer { id: 1 << 50, errno: libc::EINVAL, place: 77, probe: 1 << 46 },
        GuardAnswer { id: 2, errno: 0, place: NO_PLACE, probe: 0 },
    ];
    let socket = after(move |socket| {
        answers.iter().for_each(|answer| answer.send(socket).unwrap());
        (&*socket).write_all(&[0; ANSWER_BYTES - 1]).unwrap();
    });
    assert_eq!(GuardAnswer::receive(&socket), Some(answers[0]));
    assert_eq!(GuardAnswer::receive(&socket), Some(answers[1]));
    assert_eq!(GuardAnswer::receive(&socket), None);
}

/// A separate process, whose table of open files is full.
#[test]
fn descriptors_without_room_cost_one_answer() {
    const NAME: &str = "bpf::guard::wire::tests::descriptors_without_room_cost_one_answer";
    const INSIDE: &str = "CTRACE_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        return full_table();
    }
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -n 40; exec \"$0\" --exact \"$1\""]);
    limited.arg(std::env::current_exe().unwrap()).arg(NAME).env(INSIDE, "1");
    let output = limited.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

fn full_table() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let file = null();
    let ask = |id| {
        let spec = spec(Way::Multi(AttachType::UprobeMulti), &[1, 2], &[]);
        let fds = [file.as_fd(), file.as_fd()];
        GuardRequest::Link { id, spec, fds }.send(&theirs).unwrap();
    };
    let mut others: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    for room in [0, 1] {
        others.truncate(others.len() - room);
        ask(7);
        assert!(
            matches!(ReceivedRequest::receive(&ours), Ok(Some(ReceivedRequest::Lost { id: 7 }))),
            "{room}"
        );
    }
    GuardRequest::Hold { pid: 9, fds: [file.as_fd()] }.send(&theirs).unwrap();
    assert!(matches!(
        ReceivedRequest::receive(&ours),
        Ok(Some(ReceivedRequest::Hold { pid: 9, .. }))
    ));
    drop(others);
    ask(8);
    assert_eq!(receive_link(&ours).id, 8);
}
