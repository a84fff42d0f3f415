//! Messages between ctrace and its guard, through a stream socket.
//!
//! A request is a header and the numbers of the places. Descriptors, including the file's, come
//! with the header's first byte. An answer is a number and an errno. Both ends are the same
//! program, but messages are checked all the same. A bad or cut message ends the connection, and
//! the guard then closes its links.

use super::header::{HEADER_BYTES, Id, MessageHeader};
use crate::bpf::{
    link::kernel_link::{LinkSpec, SITES_LIMIT, Way},
    restore::{Forgotten, GuardMaps, Restored},
    sys::AttachType,
};
use rustix::{
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};
use std::{
    io::{self, ErrorKind, IoSlice, IoSliceMut, Read as _, Write as _},
    mem::MaybeUninit,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::Arc,
};

const LINK: u32 = 1;
const CLOSE: u32 = 2;
const CLOSE_ALL: u32 = 3;
const HOLD: u32 = 4;
const LET_GO: u32 = 5;
const GUARD_RETURNS: u32 = 6;
const SWEEP: u32 = 7;
const END_GUARDS: u32 = 8;
const LOOKED: u32 = 9;

const AT_RETURN: u32 = 1;
const COUNTS: u32 = 2;
const KEEPS_TO_THE_END: u32 = 4;

/// The value of `attach` for perf links.
const PERF: u32 = AttachType::PerfEvent as u32;

const ANSWER_BYTES: usize = 24;
/// Limit of descriptors in a message.
const MOST_FDS: usize = GuardMaps::FDS;

/// The size of the pieces in which a message is read or written.
const PIECE: usize = 64 << 10;

/// A request of ctrace.
pub(super) enum GuardRequest<'a> {
    /// Answered. Carries the program and the file.
    Link { id: Id, spec: LinkSpec<'a>, fds: [BorrowedFd<'a>; 2] },
    /// Answered under the link's id.
    Close { link: Id },
    /// Closes all links and allows no more; then answered.
    CloseAll { id: Id },
    /// From now on this process may be held. Carries its pidfd.
    Hold { pid: u32, fds: [BorrowedFd<'a>; 1] },
    /// From now on no process is held.
    LetGo,
    /// Answered. From now on the guard restores return addresses. Carries the maps.
    GuardReturns { id: Id, fds: [BorrowedFd<'a>; GuardMaps::FDS] },
    /// Answered under the number `id`: restores the open frames of these guards, for good, or only
    /// those of one process.
    Sweep { id: Id, guards: Id, whose: Option<Forgotten> },
    /// Not answered. What this process has loaded by this time is guarded.
    Looked { guards: Id, pid: u32, time: u64 },
    /// Not answered.
    EndGuards { guards: Id },
}

/// A request as the guard receives it.
#[derive(Debug)]
pub(super) enum ReceivedRequest {
    Link(NewLink),
    Close {
        link: Id,
    },
    CloseAll {
        id: Id,
    },
    Hold {
        pid: u32,
        command: OwnedFd,
    },
    LetGo,
    GuardReturns {
        id: Id,
        maps: GuardMaps,
    },
    Sweep {
        id: Id,
        guards: Id,
        whose: Option<Forgotten>,
    },
    Looked {
        guards: Id,
        pid: u32,
        time: u64,
    },
    EndGuards {
        guards: Id,
    },
    /// A question whose descriptors did not fit into the file table.
    Lost {
        id: Id,
    },
}

#[derive(Debug)]
pub(super) struct NewLink {
    pub(super) id: Id,
    pub(super) program: OwnedFd,
    pub(super) file: OwnedFd,
    way: Way,
    at_return: bool,
    keeps_to_the_end: bool,
    pub(super) pid: Option<u32>,
    offsets: Vec<u64>,
    cookies: Vec<u64>,
    ref_ctr_offsets: Vec<u64>,
}

impl NewLink {
    pub(super) fn spec(&self) -> LinkSpec<'_> {
        LinkSpec {
            way: self.way,
            at_return: self.at_return,
            keeps_to_the_end: self.keeps_to_the_end,
            pid: self.pid,
            offsets: &self.offsets,
            cookies: &self.cookies,
            ref_ctr_offsets: &self.ref_ctr_offsets,
        }
    }
}

/// A message of the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Answer(GuardAnswer),
    /// Not asked for: the frames of this function, which these guards watch, do not stay hijacked.
    Restored {
        guards: Id,
        restored: Restored,
    },
    /// Not asked for: a thread of this process is held until these guards' session has looked.
    Loaded {
        guards: Id,
        pid: u32,
    },
}

/// The errnos of answers that were not asked for. No call of the kernel gives them.
const RESTORED: i32 = -1;
const LOADED: i32 = -2;

impl Reply {
    /// Receives a message; `None` at the end.
    pub(super) fn receive(socket: &UnixStream) -> Option<Self> {
        let answer = GuardAnswer::receive(socket)?;
        Some(match answer.errno {
            RESTORED => {
                let restored = Restored { pid: answer.place, probe: answer.probe };
                Self::Restored { guards: answer.id, restored }
            }
            LOADED => Self::Loaded { guards: answer.id, pid: answer.place },
            _ => Self::Answer(answer),
        })
    }
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GuardAnswer {
    pub(super) id: Id,
    /// 0 for success.
    pub(super) errno: i32,
    /// The refused place, or `NO_PLACE`. After a sweep, the number of frames that it left.
    pub(super) place: u32,
    /// The address of a restored function's probe; else 0.
    pub(super) probe: u64,
}

pub(super) const NO_PLACE: u32 = u32::MAX;

impl GuardAnswer {
    pub(super) fn done(id: Id, result: &io::Result<()>) -> Self {
        let errno =
            result.as_ref().err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
        Self { id, errno, place: NO_PLACE, probe: 0 }
    }

    /// Makes the message about a restored function.
    pub(super) fn restored(guards: Id, Restored { pid, probe }: Restored) -> Self {
        Self { id: guards, errno: RESTORED, place: pid, probe }
    }

    /// Makes the message about a held thread.
    pub(super) fn loaded(guards: Id, pid: u32) -> Self {
        Self { id: guards, errno: LOADED, place: pid, probe: 0 }
    }

    pub(super) fn send(self, mut socket: &UnixStream) -> io::Result<()> {
        socket.write_all(&self.to_bytes())
    }

    /// Sends it if there is room. So short a message is sent whole or not at all.
    pub(super) fn send_now(self, socket: &UnixStream) -> bool {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::net::send(socket, &self.to_bytes(), flags) == Ok(ANSWER_BYTES)
    }

    fn to_bytes(self) -> [u8; ANSWER_BYTES] {
        let mut bytes = [0; ANSWER_BYTES];
        bytes[..8].copy_from_slice(&self.id.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.errno.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.place.to_le_bytes());
        bytes[16..].copy_from_slice(&self.probe.to_le_bytes());
        bytes
    }

    /// Receives an answer; `None` at the end.
    pub(super) fn receive(mut socket: &UnixStream) -> Option<Self> {
        let mut bytes = [0; ANSWER_BYTES];
        socket.read_exact(&mut bytes).ok()?;
        let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let id = bytes.first_chunk().map(|id| Id::from_le_bytes(*id))?;
        let probe = bytes.last_chunk().map(|probe| u64::from_le_bytes(*probe))?;
        let (errno, place) = (i32::from_le_bytes(word(8)), u32::from_le_bytes(word(12)));
        Some(Self { id, errno, place, probe })
    }
}

impl GuardRequest<'_> {
    pub(super) fn send(&self, socket: &UnixStream) -> io::Result<()> {
        let (header, fds): (_, &[BorrowedFd<'_>]) = match self {
            Self::Link { id, spec, fds } => (link_header(*id, spec), fds),
            Self::Close { link } => {
                (MessageHeader { what: CLOSE, id: *link, ..MessageHeader::default() }, &[])
            }
            Self::CloseAll { id } => {
                (MessageHeader { what: CLOSE_ALL, id: *id, ..MessageHeader::default() }, &[])
            }
            Self::Hold { pid, fds } => {
                (MessageHeader { what: HOLD, pid: *pid, ..MessageHeader::default() }, fds)
            }
            Self::LetGo => (MessageHeader { what: LET_GO, ..MessageHeader::default() }, &[]),
            Self::GuardReturns { id, fds } => {
                (MessageHeader { what: GUARD_RETURNS, id: *id, ..MessageHeader::default() }, fds)
            }
            Self::Sweep { id, guards, whose } => {
                let header = MessageHeader::of_guards(*guards);
                let Forgotten { pid, time } = whose.unwrap_or(Forgotten { pid: 0, time: 0 });
                let (flags, attach) = (time as u32, (time >> 32) as u32);
                (MessageHeader { what: SWEEP, id: *id, unit: pid, flags, attach, ..header }, &[])
            }
            Self::Looked { guards, pid, time } => {
                let header = MessageHeader::of_guards(*guards);
                (MessageHeader { what: LOOKED, id: *time, unit: *pid, ..header }, &[])
            }
            Self::EndGuards { guards } => {
                (MessageHeader { what: END_GUARDS, ..MessageHeader::of_guards(*guards) }, &[])
            }
        };
        let mut bytes = header.to_bytes().to_vec();
        if let Self::Link { spec, .. } = self {
            for numbers in [spec.offsets, spec.cookies, spec.ref_ctr_offsets] {
                bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            }
        }
        send_all(socket, &bytes, fds)
    }
}

fn link_header(id: Id, spec: &LinkSpec<'_>) -> MessageHeader {
    let (attach, unit, return_bit) = match spec.way {
        Way::Multi(attach) => (attach as u32, 0, 0),
        Way::Perf { unit, return_bit } => (PERF, unit, return_bit),
    };
    let at_return = if spec.at_return { AT_RETURN } else { 0 };
    let counts = if spec.ref_ctr_offsets.is_empty() { 0 } else { COUNTS };
    let keeps = if spec.keeps_to_the_end { KEEPS_TO_THE_END } else { 0 };
    MessageHeader {
        what: LINK,
        flags: at_return | counts | keeps,
        id,
        attach,
        count: spec.offsets.len() as u32,
        pid: spec.pid.unwrap_or(0),
        unit,
        return_bit,
    }
}

fn send_all(mut socket: &UnixStream, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    let sent = loop {
        match sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            sent => break sent?,
        }
    };
    socket.write_all(&bytes[sent..])
}

impl ReceivedRequest {
    /// Receives the next request; `None` when the connection has ended, even within a request.
    pub(super) fn receive(socket: &UnixStream) -> io::Result<Option<Self>> {
        match read(socket) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            read => read.map(Some),
        }
    }
}

fn read(socket: &UnixStream) -> io::Result<ReceivedRequest> {
    let (header, fds, is_cut) = read_header(socket)?;
    let senseless = || io::Error::from(ErrorKind::InvalidData);
    let mut fds = fds.into_iter();
    let id = header.id;
    let asked = match header.what {
        LINK => {
            let way = match header.attach {
                PERF => Way::Perf { unit: header.unit, return_bit: header.return_bit },
                other => Way::Multi(AttachType::of_uprobes(other).ok_or_else(senseless)?),
            };
            let (program, file) = (fds.next(), fds.next());
            if file.is_none() && !is_cut {
                return Err(senseless());
            }
            let (offsets, cookies) =
                (read_numbers(socket, header.count)?, read_numbers(socket, header.count)?);
            let ref_ctr_offsets = match header.flags & COUNTS {
                0 => Vec::new(),
                _ => read_numbers(socket, header.count)?,
            };
            match program.zip(file) {
                Some((program, file)) => ReceivedRequest::Link(NewLink {
                    id,
                    program,
                    file,
                    way,
                    at_return: header.flags & AT_RETURN != 0,
                    keeps_to_the_end: header.flags & KEEPS_TO_THE_END != 0,
                    pid: (header.pid != 0).then_some(header.pid),
                    offsets,
                    cookies,
                    ref_ctr_offsets,
                }),
                None => ReceivedRequest::Lost { id },
            }
        }
        CLOSE => ReceivedRequest::Close { link: id },
        CLOSE_ALL => ReceivedRequest::CloseAll { id },
        HOLD => match fds.next() {
            Some(command) => ReceivedRequest::Hold { pid: header.pid, command },
            None if is_cut => ReceivedRequest::Lost { id },
            None => return Err(senseless()),
        },
        LET_GO => ReceivedRequest::LetGo,
        GUARD_RETURNS => {
            let fds: Vec<Arc<OwnedFd>> = fds.by_ref().map(Arc::new).collect();
            match <[Arc<OwnedFd>; GuardMaps::FDS]>::try_from(fds) {
                Ok([requests, states, guarded, lister, signals, forks]) => {
                    let maps = GuardMaps { requests, states, guarded, lister, signals, forks };
                    ReceivedRequest::GuardReturns { id, maps }
                }
                Err(_) if is_cut => ReceivedRequest::Lost { id },
                Err(_) => return Err(senseless()),
            }
        }
        SWEEP => {
            let time = u64::from(header.attach) << 32 | u64::from(header.flags);
            let whose = (header.unit != 0).then_some(Forgotten { pid: header.unit, time });
            ReceivedRequest::Sweep { id, guards: header.guards(), whose }
        }
        LOOKED => {
            ReceivedRequest::Looked { guards: header.guards(), pid: header.unit, time: header.id }
        }
        END_GUARDS => ReceivedRequest::EndGuards { guards: header.guards() },
        _ => return Err(senseless()),
    };
    if fds.next().is_some() { Err(senseless()) } else { Ok(asked) }
}

/// Reads a header and its descriptors. The flag tells that the kernel dropped some, because the
/// table of open files was full.
fn read_header(mut socket: &UnixStream) -> io::Result<(MessageHeader, Vec<OwnedFd>, bool)> {
    let mut bytes = [0; HEADER_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let (read, is_cut) = loop {
        let mut into = [IoSliceMut::new(&mut bytes)];
        match recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            read => {
                let read = read?;
                break (read.bytes, read.flags.contains(ReturnFlags::CTRUNC));
            }
        }
    };
    let fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let fds = fds.flatten().collect();
    if read == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    socket.read_exact(&mut bytes[read..])?;
    Ok((MessageHeader::from_bytes(&bytes), fds, is_cut))
}

fn read_numbers(mut socket: &UnixStream, count: u32) -> io::Result<Vec<u64>> {
    if count as usize > SITES_LIMIT {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut numbers = Vec::new();
    // Memory grows only with received data.
    let mut piece = vec![0; PIECE.min(count as usize * 8)];
    while numbers.len() < count as usize {
        let left = (count as usize - numbers.len()) * 8;
        let piece = &mut piece[..left.min(PIECE)];
        socket.read_exact(piece)?;
        let (words, _) = piece.as_chunks();
        numbers.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
    }
    Ok(numbers)
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
