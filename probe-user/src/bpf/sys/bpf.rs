//! The commands of bpf(2) that we use. Offsets are those of `union bpf_attr` in the kernel's
//! `include/uapi/linux/bpf.h`, which only ever grows.

use super::{Attr, Syscall};
use std::{
    ffi::CStr,
    io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
};

const MAP_CREATE: u32 = 0;
const MAP_LOOKUP_ELEM: u32 = 1;
const MAP_UPDATE_ELEM: u32 = 2;
const MAP_DELETE_ELEM: u32 = 3;
const MAP_GET_NEXT_KEY: u32 = 4;
const PROG_LOAD: u32 = 5;
const OBJ_GET_INFO_BY_FD: u32 = 15;
const RAW_TRACEPOINT_OPEN: u32 = 17;
const TASK_FD_QUERY: u32 = 20;
const MAP_LOOKUP_AND_DELETE_ELEM: u32 = 21;
const MAP_FREEZE: u32 = 22;
const LINK_CREATE: u32 = 28;
const LINK_GET_FD_BY_ID: u32 = 30;
const LINK_GET_NEXT_ID: u32 = 31;
const ITER_CREATE: u32 = 33;

const LINK_TYPE_UPROBE_MULTI: u32 = 12;
/// `BPF_FD_TYPE_UPROBE` and `BPF_FD_TYPE_URETPROBE`
const EVENTS_OF_UPROBES: [u32; 2] = [4, 5];

const MAP_TYPE_ARRAY: u32 = 2;
const MAP_MMAPABLE: u32 = 1 << 10;
const UPROBE_MULTI_RETURN: u32 = 1;
/// `BPF_EXIST`
const IF_THERE: u64 = 2;

/// One instruction of a program.
pub(crate) type Insn = aya_obj::generated::bpf_insn;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub(crate) enum ProgramType {
    Kprobe = 2,
    RawTracepoint = 17,
    Tracing = 26,
}

/// The link type that a program is loaded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub(crate) enum AttachType {
    /// Perf event links and raw tracepoints.
    Any = 0,
    Iterator = 28,
    PerfEvent = 41,
    UprobeMulti = 48,
    UprobeSession = 57,
}

impl AttachType {
    /// Returns the type with this number, if it links many places at once.
    pub(crate) fn of_uprobes(number: u32) -> Option<Self> {
        [Self::UprobeMulti, Self::UprobeSession].into_iter().find(|known| *known as u32 == number)
    }
}

pub(crate) struct ProgramSpec<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: ProgramType,
    pub(crate) attach: AttachType,
    pub(crate) instructions: &'a [Insn],
    pub(crate) license: &'a CStr,
    /// The kernel function whose type the program is attached to; 0: none.
    pub(crate) attach_function: u32,
}

/// Loads a program. With `log`, the verifier writes its reasons there.
pub(crate) fn load_program(spec: &ProgramSpec<'_>, log: Option<&mut [u8]>) -> io::Result<OwnedFd> {
    let mut attr = Attr::new()
        .u32(0, spec.kind as u32)
        .u32(4, spec.instructions.len() as u32)
        .pointer(8, spec.instructions.as_ptr())
        .pointer(16, spec.license.as_ptr())
        .name(48, spec.name)
        .u32(68, spec.attach as u32)
        .u32(108, spec.attach_function);
    if let Some(log) = log {
        attr = attr.u32(24, 1).u32(28, log.len() as u32).pointer(32, log.as_mut_ptr());
    }
    let mut tries = 0;
    loop {
        match (Syscall::Bpf { command: PROG_LOAD, attr: &mut attr }).run_for_fd() {
            // The verifier gives up when a signal is pending.
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) && tries < 5 => tries += 1,
            result => return result,
        }
    }
}

/// A link of one program to many places of one file.
pub(crate) struct UprobeLink<'a> {
    pub(crate) attach: AttachType,
    pub(crate) path: &'a CStr,
    pub(crate) offsets: &'a [u64],
    pub(crate) cookies: &'a [u64],
    /// Empty, or one for each offset.
    pub(crate) ref_ctr_offsets: &'a [u64],
    pub(crate) at_return: bool,
    /// 0 means all processes.
    pub(crate) pid: u32,
}

pub(crate) fn link_uprobes(program: BorrowedFd<'_>, link: &UprobeLink<'_>) -> io::Result<OwnedFd> {
    assert_eq!(link.offsets.len(), link.cookies.len());
    let mut attr = Attr::new()
        .u32(0, program.as_raw_fd() as u32)
        .u32(8, link.attach as u32)
        .pointer(16, link.path.as_ptr())
        .pointer(24, link.offsets.as_ptr())
        .pointer(40, link.cookies.as_ptr())
        .u32(48, link.offsets.len() as u32)
        .u32(52, if link.at_return { UPROBE_MULTI_RETURN } else { 0 })
        .u32(56, link.pid);
    if !link.ref_ctr_offsets.is_empty() {
        assert_eq!(link.offsets.len(), link.ref_ctr_offsets.len());
        attr = attr.pointer(32, link.ref_ctr_offsets.as_ptr());
    }
    Syscall::Bpf { command: LINK_CREATE, attr: &mut attr }.run_for_fd()
}

/// Links a program to a perf event, which the link keeps.
pub(crate) fn link_perf(
    program: BorrowedFd<'_>,
    event: BorrowedFd<'_>,
    cookie: u64,
) -> io::Result<OwnedFd> {
    let mut attr = Attr::new()
        .u32(0, program.as_raw_fd() as u32)
        .u32(4, event.as_raw_fd() as u32)
        .u32(8, AttachType::PerfEvent as u32)
        .u64(16, cookie);
    Syscall::Bpf { command: LINK_CREATE, attr: &mut attr }.run_for_fd()
}

/// The places of a link that holds many, as the kernel tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkPlaces {
    pub(crate) path: Vec<u8>,
    /// 0: all processes.
    pub(crate) pid: u32,
    pub(crate) offsets: Vec<u64>,
}

/// Returns the id of the next link after this one, of any tracer; `None` after the last.
pub(crate) fn next_link(after: u32) -> io::Result<Option<u32>> {
    let mut attr = Attr::new().u32(0, after);
    match (Syscall::Bpf { command: LINK_GET_NEXT_ID, attr: &mut attr }.run()) {
        Ok(_) => Ok(Some(attr.get_u32(4))),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the places of the link with this id; `None` for a link of another type, or with more
/// places than `most`.
pub(crate) fn places_of_link(id: u32, most: usize) -> io::Result<Option<LinkPlaces>> {
    let mut attr = Attr::new().u32(0, id);
    let link = Syscall::Bpf { command: LINK_GET_FD_BY_ID, attr: &mut attr }.run_for_fd()?;
    let info = link_info(link.as_fd(), Attr::new())?;
    let (kind, count) = (info.get_u32(0), info.get_u32(52) as usize);
    if kind != LINK_TYPE_UPROBE_MULTI || count > most {
        return Ok(None);
    }
    let mut path = vec![0_u8; libc::PATH_MAX as usize];
    let mut offsets = vec![0_u64; count];
    let room = Attr::new()
        .pointer(16, path.as_mut_ptr())
        .pointer(24, offsets.as_mut_ptr())
        .u32(48, path.len() as u32)
        .u32(52, count as u32);
    let info = link_info(link.as_fd(), room)?;
    // The size includes the zero byte at the end.
    path.truncate((info.get_u32(48) as usize).saturating_sub(1));
    Ok(Some(LinkPlaces { path, pid: info.get_u32(60), offsets }))
}

/// Returns the path and the offset of the uprobe that this file of a process is; `None` if it is another event.
/// The kernel tells this only of an event that runs a program.
pub(crate) fn place_of_event(pid: u32, fd: u32) -> io::Result<Option<(Vec<u8>, u64)>> {
    let mut path = vec![0_u8; libc::PATH_MAX as usize];
    let mut attr = Attr::new()
        .u32(0, pid)
        .u32(4, fd)
        .u32(12, path.len() as u32)
        .pointer(16, path.as_mut_ptr());
    Syscall::Bpf { command: TASK_FD_QUERY, attr: &mut attr }.run()?;
    path.truncate((attr.get_u32(12) as usize).min(path.len()));
    Ok(EVENTS_OF_UPROBES.contains(&attr.get_u32(28)).then(|| (path, attr.get_u64(32))))
}

/// Returns a link's `struct bpf_link_info`. The argument tells where its arrays go.
fn link_info(link: BorrowedFd<'_>, info: Attr) -> io::Result<Attr> {
    let mut info = Box::new(info);
    let mut attr = Attr::new()
        .u32(0, link.as_raw_fd() as u32)
        .u32(4, Attr::LEN as u32)
        .pointer(8, &raw mut *info);
    Syscall::Bpf { command: OBJ_GET_INFO_BY_FD, attr: &mut attr }.run()?;
    Ok(*info)
}

pub(crate) fn open_raw_tracepoint(name: &CStr, program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut attr = Attr::new().pointer(0, name.as_ptr()).u32(8, program.as_raw_fd() as u32);
    Syscall::Bpf { command: RAW_TRACEPOINT_OPEN, attr: &mut attr }.run_for_fd()
}

/// Runs an iterator over tasks for one thread.
pub(crate) fn visit_thread(program: BorrowedFd<'_>, tid: u32) -> io::Result<()> {
    // `union bpf_iter_link_info`: a thread, a process, a pidfd.
    let which = [tid, 0, 0];
    let mut attr = Attr::new()
        .u32(0, program.as_raw_fd() as u32)
        .u32(8, AttachType::Iterator as u32)
        .pointer(16, which.as_ptr())
        .u32(24, size_of_val(&which) as u32);
    let link = Syscall::Bpf { command: LINK_CREATE, attr: &mut attr }.run_for_fd()?;
    let mut attr = Attr::new().u32(0, link.as_raw_fd() as u32);
    let visits = Syscall::Bpf { command: ITER_CREATE, attr: &mut attr }.run_for_fd()?;
    // Each read may end early.
    while rustix::io::read(&visits, &mut [0; 64])? > 0 {}
    Ok(())
}

/// Creates an array that can be mapped.
pub(crate) fn create_shared_array(value_bytes: u32, entries: u32) -> io::Result<OwnedFd> {
    let mut attr = Attr::new()
        .u32(0, MAP_TYPE_ARRAY)
        .u32(4, size_of::<u32>() as u32)
        .u32(8, value_bytes)
        .u32(12, entries)
        .u32(16, MAP_MMAPABLE)
        .name(28, "ctrace_shared");
    Syscall::Bpf { command: MAP_CREATE, attr: &mut attr }.run_for_fd()
}

fn map_attr<K>(map: BorrowedFd<'_>, key: K, value: *const u8) -> (Attr, Box<K>) {
    let key = Box::new(key);
    let attr =
        Attr::new().u32(0, map.as_raw_fd() as u32).pointer(8, &raw const *key).pointer(16, value);
    (attr, key)
}

/// Sets `map[key]`; `key` and `value` must have the map's sizes.
pub(crate) fn map_update<K>(map: BorrowedFd<'_>, key: K, value: &[u8]) -> io::Result<()> {
    let (mut attr, _key) = map_attr(map, key, value.as_ptr());
    Syscall::Bpf { command: MAP_UPDATE_ELEM, attr: &mut attr }.run().map(drop)
}

/// Sets `map[key]` of a hash map, if the key is there.
pub(crate) fn map_replace<K>(map: BorrowedFd<'_>, key: K, value: &[u8]) -> io::Result<()> {
    let (attr, _key) = map_attr(map, key, value.as_ptr());
    let mut attr = attr.u64(24, IF_THERE);
    Syscall::Bpf { command: MAP_UPDATE_ELEM, attr: &mut attr }.run().map(drop)
}

/// Makes a map constant for user space.
pub(crate) fn map_freeze(map: BorrowedFd<'_>) -> io::Result<()> {
    let mut attr = Attr::new().u32(0, map.as_raw_fd() as u32);
    Syscall::Bpf { command: MAP_FREEZE, attr: &mut attr }.run().map(drop)
}

/// Reads `map[key]`; `value` must have the map's value size.
pub(crate) fn map_lookup<K>(map: BorrowedFd<'_>, key: K, value: &mut [u64]) -> io::Result<()> {
    let (mut attr, _key) = map_attr(map, key, value.as_mut_ptr().cast());
    Syscall::Bpf { command: MAP_LOOKUP_ELEM, attr: &mut attr }.run().map(drop)
}

/// Reads `map[key]` of a hash map and removes it atomically: no write meanwhile is lost.
pub(crate) fn map_take<K>(map: BorrowedFd<'_>, key: K, value: &mut [u64]) -> io::Result<()> {
    let (mut attr, _key) = map_attr(map, key, value.as_mut_ptr().cast());
    Syscall::Bpf { command: MAP_LOOKUP_AND_DELETE_ELEM, attr: &mut attr }.run().map(drop)
}

pub(crate) fn map_delete<K>(map: BorrowedFd<'_>, key: K) -> io::Result<()> {
    let (mut attr, _key) = map_attr(map, key, std::ptr::null());
    Syscall::Bpf { command: MAP_DELETE_ELEM, attr: &mut attr }.run().map(drop)
}

/// Returns the key after another one in a hash map, or any if that one is missing; `None` after the
/// last. `K` must have the map's key size.
pub(crate) fn map_next_key<K: Default + Copy>(
    map: BorrowedFd<'_>,
    after: Option<K>,
) -> io::Result<Option<K>> {
    let mut found = Box::new(K::default());
    let mut attr = Attr::new().u32(0, map.as_raw_fd() as u32).pointer(16, &raw mut *found);
    let mut after = after.map(Box::new);
    if let Some(after) = &mut after {
        attr = attr.pointer(8, &raw mut **after);
    }
    match (Syscall::Bpf { command: MAP_GET_NEXT_KEY, attr: &mut attr }.run()) {
        Ok(_) => Ok(Some(*found)),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}
