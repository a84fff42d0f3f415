//! Session and multi links: one link for all places of a file.

use super::{
    LinkRequest, Site,
    keeper::{Keeper, LinkHandle},
    kernel_link::{LinkSpec, Way},
    kind::LinkKind,
};
use crate::bpf::{
    BpfError,
    error::ENOTSUPP,
    load::programs::{BpfProgram, Programs},
    sys::{self, AttachType, Insn, ProgramSpec, ProgramType, UprobeLink},
};
use std::{
    io,
    ops::Range,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
};

/// Attaches `program` to all places of the request.
pub(crate) fn link(
    keeper: &Keeper,
    programs: &Programs,
    program: BpfProgram,
    attach: AttachType,
    kind: LinkKind,
    request: &LinkRequest<'_>,
) -> Result<LinkHandle, BpfError> {
    let loaded = programs.get(program, attach)?;
    link_loaded(keeper, loaded.as_fd(), program.is_at_return(), attach, kind, request)
}

/// Attaches a loaded program.
pub(super) fn link_loaded(
    keeper: &Keeper,
    loaded: BorrowedFd<'_>,
    at_return: bool,
    attach: AttachType,
    kind: LinkKind,
    request: &LinkRequest<'_>,
) -> Result<LinkHandle, BpfError> {
    let sites = request.sites;
    let offsets: Vec<_> = sites.iter().map(|site| site.offset).collect();
    let cookie = |site: &Site| match attach {
        AttachType::UprobeSession => site.cookie.in_session(site.offset).0,
        _ => site.cookie.0,
    };
    let cookies: Vec<_> = sites.iter().map(cookie).collect();
    // The entry's link raises the semaphores. One raise is enough.
    let counts = !at_return && sites.iter().any(|site| site.ref_ctr_offset != 0);
    let ref_ctr_offsets: Vec<_> =
        if counts { sites.iter().map(|site| site.ref_ctr_offset).collect() } else { Vec::new() };
    let spec = LinkSpec {
        way: Way::Multi(attach),
        at_return,
        keeps_to_the_end: request.role.guards(),
        pid: request.pid,
        offsets: &offsets,
        cookies: &cookies,
        ref_ctr_offsets: &ref_ctr_offsets,
    };
    keeper.link(loaded, request.path, &spec).map_err(|refusal| {
        let place = culprit(keeper, attach, request.path, &spec, &refusal.source);
        request.refusal(kind, place, refusal.source)
    })
}

/// Finds the first refused place by trying halves with an empty program, as the kernel does not
/// name it.
fn culprit(
    keeper: &Keeper,
    attach: AttachType,
    path: &Path,
    spec: &LinkSpec<'_>,
    source: &io::Error,
) -> Option<u64> {
    let blames_a_place = [libc::EINVAL, libc::EIO, libc::ENOEXEC, libc::EOPNOTSUPP, ENOTSUPP];
    if !blames_a_place.contains(&source.raw_os_error()?) {
        return None;
    }
    let program = empty_program(attach).ok()?;
    let refuses = |places: Range<usize>| {
        let counts = if spec.ref_ctr_offsets.is_empty() { 0..0 } else { places.clone() };
        let half = LinkSpec {
            offsets: &spec.offsets[places.clone()],
            cookies: &spec.cookies[places],
            ref_ctr_offsets: &spec.ref_ctr_offsets[counts],
            ..*spec
        };
        keeper.link(program.as_fd(), path, &half).is_err()
    };
    let mut places = 0..spec.offsets.len();
    if !refuses(places.clone()) {
        return None;
    }
    while places.len() > 1 {
        let middle = places.start + places.len() / 2;
        if refuses(places.start..middle) {
            places.end = middle;
        } else {
            places.start = middle;
        }
    }
    Some(spec.offsets[places.start])
}

/// Loads a program that does nothing.
pub(crate) fn empty_program(attach: AttachType) -> io::Result<OwnedFd> {
    let instructions = [insn(0xb7, 0), insn(0x95, 0)]; // r0 = 0; exit
    sys::load_program(
        &ProgramSpec {
            name: "nothing",
            kind: ProgramType::Kprobe,
            attach,
            instructions: &instructions,
            license: c"Dual MIT/GPL",
            attach_function: 0,
        },
        None,
    )
}

fn insn(code: u8, imm: i32) -> Insn {
    Insn { code, _bitfield_align_1: [], _bitfield_1: Insn::new_bitfield_1(0, 0), off: 0, imm }
}

/// Returns whether the kernel knows this link type, by asking for a link to a folder. A kernel that
/// does not know the type refuses with another error than for the folder.
pub(crate) fn is_known(attach: AttachType) -> io::Result<bool> {
    let program = match empty_program(attach) {
        Ok(program) => program,
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Ok(false),
        Err(error) => return Err(error),
    };
    let link = UprobeLink {
        attach,
        path: c"/",
        offsets: &[0],
        cookies: &[0],
        ref_ctr_offsets: &[],
        at_return: false,
        pid: 0,
    };
    match sys::link_uprobes(program.as_fd(), &link) {
        Ok(_) => Ok(true),
        Err(error) => match error.raw_os_error() {
            Some(libc::EBADF) => Ok(true),
            Some(libc::EPERM | libc::EACCES) => Err(error),
            _ => Ok(false),
        },
    }
}
