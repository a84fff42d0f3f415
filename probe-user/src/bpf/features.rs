//! Finds out by trying what this machine supports.

use super::{
    Capabilities, LinkKind, Release,
    error::ENOTSUPP,
    link::{multi, perf},
    load::object,
    machine::lockdown,
    rings,
    sys::{self, AttachType, UprobeEvent, UprobeLink},
};
use serde::Serialize;
use std::{
    fs, io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    process,
    sync::atomic::AtomicU16,
};

/// Support for a feature on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Support {
    pub works: bool,
    /// The reason why it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Support {
    fn from<T>(result: Result<T, String>) -> Self {
        Self { works: result.is_ok(), reason: result.err() }
    }
}

/// The kernel's treatment of a long nop under a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Nop {
    /// Emulated like other instructions.
    Emulated,
    /// A 5-byte nop becomes a call, which kills forked children.
    Nop5,
    /// A 10-byte nop becomes a call.
    Nop10,
}

/// The features of this machine for this user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Features {
    pub release: String,
    pub version: Release,
    pub architecture: &'static str,
    /// The eBPF programs in this binary.
    pub programs: Support,
    pub(crate) capabilities: Capabilities,
    /// Process ids equal to those of the eBPF programs.
    pub process_ids: Support,
    /// The mode of kernel lockdown, where there is one.
    pub lockdown: Option<String>,
    /// True if the lockdown mode could be read.
    pub lockdown_is_known: bool,
    /// The kernel's own type information.
    pub btf: Support,
    pub ring_buffer: Support,
    pub session_link: Support,
    pub multi_link: Support,
    pub perf_link: Support,
    /// Return probes in processes that unwind or switch stacks.
    pub guarded_returns: Support,
    /// Raised semaphores of USDT notes and marker scopes.
    pub semaphores: Support,
    pub(crate) nop: Nop,
    /// The reason why the programs tell children apart; `None` if the link does.
    pub filter_in_programs: Option<&'static str>,
    /// The link that `auto` chooses for functions.
    pub link: Option<LinkKind>,
}

impl Features {
    /// Tries everything on this very process. Takes up to half a second.
    pub fn probe() -> Self {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let version = Release::parse(&release);
        let here = Here::find();
        let on_link = |attach, ref_ctr| Support::from(try_link(&here, attach, ref_ctr));
        let session_link = on_link(AttachType::UprobeSession, false);
        let multi_link = on_link(AttachType::UprobeMulti, false);
        let perf_link = Support::from(try_perf(&here));
        let link = [
            (LinkKind::Session, session_link.works),
            (LinkKind::Multi, multi_link.works),
            (LinkKind::Perf, perf_link.works),
        ];
        Self {
            version,
            architecture: std::env::consts::ARCH,
            programs: Support::from(if object::is_there() {
                Ok(())
            } else {
                Err(format!("built without them ({})", object::toolchain()))
            }),
            capabilities: Capabilities::of_this_process(),
            process_ids: Support::from(
                super::machine::pid_namespace::require_initial().map_err(|e| e.to_string()),
            ),
            lockdown: lockdown::mode(),
            lockdown_is_known: lockdown::is_known(),
            btf: Support::from(
                super::machine::btf::Offsets::of_running_kernel().map_err(|e| e.to_string()),
            ),
            ring_buffer: Support::from(rings::try_out().map_err(|e| reason(&e))),
            guarded_returns: Support::from(super::return_guards::lacking().map_or(Ok(()), Err)),
            semaphores: on_link(AttachType::UprobeMulti, true),
            nop: long_nop(),
            filter_in_programs: version
                .filters_threads_not_processes()
                .then_some("links of Linux 6.6 to 6.9 see one thread of a process only"),
            link: link.into_iter().find(|(_, works)| *works).map(|(kind, _)| kind),
            session_link,
            multi_link,
            perf_link,
            release,
        }
    }
}

/// Returns whether the kernel knows this link type. Without the rights to tell, returns true, so
/// that attaching fails for the real reason.
pub(super) fn knows(kind: LinkKind) -> bool {
    match kind {
        LinkKind::Session => multi::is_known(AttachType::UprobeSession).unwrap_or(true),
        LinkKind::Multi => multi::is_known(AttachType::UprobeMulti).unwrap_or(true),
        LinkKind::Perf => perf::UprobeUnit::find().is_ok(),
    }
}

/// Returns whether programs can loop until something happens. That came before session links, but
/// has no sign of its own.
pub(crate) fn threads_can_wait() -> bool {
    knows(LinkKind::Session)
}

/// Returns whether the program that reads arguments of functions is checked in an instant. Verifiers
/// of old kernels follow each way through it; the boundary is not known better than this.
pub(crate) fn can_read_arguments() -> bool {
    knows(LinkKind::Session)
}

/// Asks the kernel for its treatment of long nops, by one harmless system call.
fn long_nop() -> Nop {
    nop(&sys::ask_about_nops())
}

fn nop(answer: &io::Error) -> Nop {
    match answer.raw_os_error() {
        Some(libc::ENXIO) => Nop::Nop5,
        Some(libc::EPROTO) => Nop::Nop10,
        _ => Nop::Emulated,
    }
}

fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "no permission".into(),
        Some(libc::EINVAL | libc::ENOSYS) => "this kernel does not know it".into(),
        Some(libc::EOPNOTSUPP | ENOTSUPP) => "not supported for this code".into(),
        _ => error.to_string(),
    }
}

/// Places in this process's code where a probe does no harm.
struct Here {
    offset: u64,
    /// A place for probes with the semaphore. The kernel refuses a probe with a semaphore where one
    /// without is, and that may be another ctrace's.
    counted: u64,
    semaphore: u64,
}

/// An uncalled function to probe.
#[inline(never)]
extern "C" fn place() -> u32 {
    std::hint::black_box(1)
}

/// Another one.
#[inline(never)]
extern "C" fn counted_place() -> u32 {
    std::hint::black_box(2)
}

/// An unused semaphore. It is not 0, so that the file backs its memory.
static SEMAPHORE: AtomicU16 = AtomicU16::new(1);

impl Here {
    fn find() -> Option<Self> {
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let offset = |address| offset_of(&maps, address);
        let semaphore = (&raw const SEMAPHORE) as u64;
        Some(Self {
            offset: offset(place as *const () as u64)?,
            counted: offset(counted_place as *const () as u64)?,
            semaphore: offset(semaphore)?,
        })
    }
}

/// Returns the file offset of an address, from the text of /proc/self/maps.
fn offset_of(maps: &str, address: u64) -> Option<u64> {
    maps.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (hex(start)?, hex(end)?);
        let offset = hex(fields.nth(1)?)?;
        let inode: u64 = fields.nth(1)?.parse().ok()?;
        ((start..end).contains(&address) && inode != 0).then(|| address - start + offset)
    })
}

/// The place in this process's code, with a program that does nothing.
pub(super) struct OwnPlace {
    offset: u64,
    program: OwnedFd,
}

impl OwnPlace {
    pub(super) fn find() -> Result<Self, String> {
        Self::at(place as *const () as u64)
    }

    /// Returns the place at this address of this process's own code.
    pub(super) fn at(address: u64) -> Result<Self, String> {
        let offset = own_offset(address)?;
        let program = multi::empty_program(AttachType::UprobeMulti).map_err(|e| reason(&e))?;
        Ok(Self { offset, program })
    }

    /// Probes it, in this process alone.
    pub(super) fn probe(&self) -> Result<OwnedFd, String> {
        link_here(self.offset, self.program.as_fd(), AttachType::UprobeMulti, &[])
    }
}

/// Returns the file offset of an address in this process's own code.
pub(super) fn own_offset(address: u64) -> Result<u64, String> {
    let maps = fs::read_to_string("/proc/self/maps").map_err(|error| reason(&error))?;
    Ok(offset_of(&maps, address).ok_or(ITSELF)?)
}

const ITSELF: &str = "cannot find its own code in /proc/self/maps";

fn try_link(here: &Option<Here>, attach: AttachType, semaphore: bool) -> Result<OwnedFd, String> {
    let here = here.as_ref().ok_or(ITSELF)?;
    let program = multi::empty_program(attach).map_err(|error| reason(&error))?;
    match semaphore {
        true => link_here(here.counted, program.as_fd(), attach, &[here.semaphore]),
        false => link_here(here.offset, program.as_fd(), attach, &[]),
    }
}

fn link_here(
    offset: u64,
    program: BorrowedFd<'_>,
    attach: AttachType,
    ref_ctr_offsets: &[u64],
) -> Result<OwnedFd, String> {
    let link = UprobeLink {
        attach,
        path: c"/proc/self/exe",
        offsets: &[offset],
        cookies: &[0],
        ref_ctr_offsets,
        at_return: false,
        pid: process::id(),
    };
    sys::link_uprobes(program, &link).map_err(|error| reason(&error))
}

fn try_perf(here: &Option<Here>) -> Result<OwnedFd, String> {
    let here = here.as_ref().ok_or(ITSELF)?;
    let unit = perf::UprobeUnit::find().map_err(|error| error.to_string())?;
    let program = multi::empty_program(AttachType::Any).map_err(|error| reason(&error))?;
    let event = UprobeEvent {
        unit: unit.number(),
        return_bit: unit.return_bit(),
        at_return: false,
        path: c"/proc/self/exe",
        offset: here.offset,
        ref_ctr_offset: 0,
        pid: Some(process::id()),
    };
    let event = sys::open_uprobe(&event).map_err(|error| reason(&error))?;
    sys::link_perf(program.as_fd(), event.as_fd(), 1).map_err(|error| reason(&error))
}

#[cfg(test)]
#[path = "features_tests.rs"]
mod tests;
