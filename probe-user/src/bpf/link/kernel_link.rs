//! Makes kernel links: one session or multi link for many places, or a perf link for each.
//!
//! A breakpoint stays in the target for good when the thread that makes or closes a link has a
//! fatal signal pending. So the guard ([`crate::bpf::guard`]) runs this code.

use crate::bpf::sys::{self, AttachType, UprobeEvent, UprobeLink};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    ffi::CStr,
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

/// The most places of one session or multi link that the kernel accepts.
pub(crate) const SITES_LIMIT: usize = 1 << 20;

/// The method of linking places to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// One link of this type.
    Multi(AttachType),
    /// One perf event of this unit for each place.
    Perf { unit: u32, return_bit: u32 },
}

/// Places of one file, and how to link them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkSpec<'a> {
    pub(crate) way: Way,
    pub(crate) at_return: bool,
    /// True for guards of return probes: they outlive all other links.
    pub(crate) keeps_to_the_end: bool,
    /// `None` means every process that maps the file.
    pub(crate) pid: Option<u32>,
    pub(crate) offsets: &'a [u64],
    /// One for each offset.
    pub(crate) cookies: &'a [u64],
    /// Empty, or one for each offset.
    pub(crate) ref_ctr_offsets: &'a [u64],
}

impl LinkSpec<'_> {
    /// Returns the number of kernel links that it takes.
    pub(crate) fn links(&self) -> usize {
        match self.way {
            Way::Multi(_) => 1,
            Way::Perf { .. } => self.offsets.len(),
        }
    }
}

/// The reason why there is no link.
#[derive(Debug)]
pub(crate) struct LinkRefusal {
    pub(crate) source: io::Error,
    /// The refused place, where the kernel was asked about one at a time.
    pub(crate) index: Option<usize>,
}

impl From<io::Error> for LinkRefusal {
    fn from(source: io::Error) -> Self {
        Self { source, index: None }
    }
}

/// Links all places or none.
pub(crate) fn make(
    program: BorrowedFd<'_>,
    path: &CStr,
    spec: &LinkSpec<'_>,
) -> Result<Vec<OwnedFd>, LinkRefusal> {
    match spec.way {
        Way::Multi(attach) => {
            let link = UprobeLink {
                attach,
                path,
                offsets: spec.offsets,
                cookies: spec.cookies,
                ref_ctr_offsets: spec.ref_ctr_offsets,
                at_return: spec.at_return,
                pid: spec.pid.unwrap_or(0),
            };
            Ok(vec![sys::link_uprobes(program, &link)?])
        }
        Way::Perf { unit, return_bit } => {
            make_room_for(spec.offsets.len());
            let mut links = Vec::with_capacity(spec.offsets.len());
            for (index, (&offset, &cookie)) in spec.offsets.iter().zip(spec.cookies).enumerate() {
                let event = UprobeEvent {
                    unit,
                    return_bit,
                    at_return: spec.at_return,
                    path,
                    offset,
                    ref_ctr_offset: spec.ref_ctr_offsets.get(index).copied().unwrap_or(0),
                    pid: spec.pid,
                };
                let link = sys::open_uprobe(&event)
                    .and_then(|event| sys::link_perf(program, event.as_fd(), cookie))
                    .map_err(|source| LinkRefusal { source, index: Some(index) })?;
                links.push(link);
            }
            Ok(links)
        }
    }
}

/// Removes the probes, the last one first: all of them, even if one fails.
pub(crate) fn close(links: Vec<OwnedFd>) -> io::Result<()> {
    let closed = links.into_iter().rev().map(sys::close);
    closed.fold(Ok(()), Result::and)
}

/// Raises the limit of open files for this many links, as far as possible.
fn make_room_for(links: usize) {
    const OTHERS: u64 = 256;
    let limit = getrlimit(Resource::Nofile);
    let wanted = links as u64 + OTHERS;
    if limit.current.is_some_and(|current| current < wanted) {
        let current = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        let raised = Rlimit { current: Some(current), maximum: limit.maximum };
        // If it does not suffice, the kernel refuses a later link.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}
