//! Perf-event links: one link for each place and each end, on kernels without multi links.

use super::{
    BpfError,
    link::{Link, LinkKind, PERF_SITES_LIMIT, Request},
    programs::{Program, Programs},
    sys::{self, AttachType, UprobeEvent},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{fs, os::fd::AsFd as _, path::PathBuf};

const UNIT: &str = "/sys/bus/event_source/devices/uprobe";

/// The kernel's uprobe unit.
pub(super) struct Unit {
    number: u32,
    return_bit: u32,
}

impl Unit {
    pub(super) fn find() -> Result<Self, BpfError> {
        let read = |name: &str| {
            let path = PathBuf::from(UNIT).join(name);
            let text = fs::read_to_string(&path).map_err(|_| LinkKind::Perf.unsupported())?;
            Ok((text, path))
        };
        let (number, path) = read("type")?;
        let number = number.trim().parse().map_err(|_| BpfError::Malformed { path })?;
        let (bit, path) = read("format/retprobe")?;
        let return_bit = parse_bit(&bit).ok_or(BpfError::Malformed { path })?;
        Ok(Self { number, return_bit })
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn return_bit(&self) -> u32 {
        self.return_bit
    }
}

/// `config:0`
fn parse_bit(format: &str) -> Option<u32> {
    format.trim().strip_prefix("config:")?.parse().ok().filter(|&bit| bit < 32)
}

/// Attaches the programs to all places: the first one everywhere, then the next.
pub(super) fn link(
    programs: &Programs,
    roles: &[Program],
    request: &Request<'_>,
) -> Result<Vec<Link>, BpfError> {
    link_on(&Unit::find()?, programs, roles, request)
}

pub(super) fn link_on(
    unit: &Unit,
    programs: &Programs,
    roles: &[Program],
    request: &Request<'_>,
) -> Result<Vec<Link>, BpfError> {
    let sites = request.sites.len();
    if sites > PERF_SITES_LIMIT && !request.force {
        let seconds = (sites * roles.len()).div_ceil(10);
        return Err(BpfError::TooManyPerfSites { sites, limit: PERF_SITES_LIMIT, seconds });
    }
    let path = request.c_path()?;
    make_room_for(sites * roles.len());
    let mut links = Vec::with_capacity(sites * roles.len());
    for &program in roles {
        let loaded = programs.get(program, AttachType::Any)?;
        for site in request.sites {
            let refused = |source| request.refusal(LinkKind::Perf, Some(site.offset), source);
            let at_return = program == Program::Return;
            let event = sys::open_uprobe(&UprobeEvent {
                unit: unit.number,
                return_bit: unit.return_bit,
                at_return,
                path: &path,
                offset: site.offset,
                ref_ctr_offset: if at_return { 0 } else { site.ref_ctr_offset },
                pid: request.pid,
            })
            .map_err(refused)?;
            let fd =
                sys::link_perf(loaded.as_fd(), event.as_fd(), site.cookie.0).map_err(refused)?;
            links.push(Link { fd, _program: loaded.clone() });
        }
    }
    Ok(links)
}

/// Raises the limit of open files for so many links, as far as it goes.
fn make_room_for(links: usize) {
    const OTHERS: u64 = 256;
    let limit = getrlimit(Resource::Nofile);
    let wanted = links as u64 + OTHERS;
    if limit.current.is_some_and(|current| current < wanted) {
        let current = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        let raised = Rlimit { current: Some(current), maximum: limit.maximum };
        // Where it is not enough, the kernel says so when the next link finds no room.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

#[cfg(test)]
impl Unit {
    pub(super) fn fake() -> Self {
        Self { number: 8, return_bit: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read() {
        assert_eq!(parse_bit("config:0\n"), Some(0));
        assert_eq!(parse_bit("config:7"), Some(7));
        assert_eq!(parse_bit("config1:0"), None);
        assert_eq!(parse_bit("config:32-63"), None);
    }
}
