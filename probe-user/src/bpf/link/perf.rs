//! Perf-event links, one for each place and each end, for kernels without multi links.

use super::{
    LinkRequest, PERF_SITES_LIMIT,
    keeper::{Keeper, LinkHandle},
    kernel_link::{LinkSpec, Way},
    kind::LinkKind,
};
use crate::bpf::{
    BpfError,
    load::programs::{BpfProgram, Programs},
    sys::AttachType,
};
use std::{fs, os::fd::AsFd as _, path::PathBuf};

const UNIT: &str = "/sys/bus/event_source/devices/uprobe";

/// The kernel's uprobe unit.
pub(crate) struct UprobeUnit {
    number: u32,
    return_bit: u32,
}

impl UprobeUnit {
    pub(crate) fn find() -> Result<Self, BpfError> {
        let read = |name: &str| {
            let path = PathBuf::from(UNIT).join(name);
            let text = fs::read_to_string(&path).map_err(|_| BpfError::no_link(LinkKind::Perf))?;
            Ok((text, path))
        };
        let (number, path) = read("type")?;
        let number = number.trim().parse().map_err(|_| BpfError::Malformed { path })?;
        let (bit, path) = read("format/retprobe")?;
        let return_bit = parse_bit(&bit).ok_or(BpfError::Malformed { path })?;
        Ok(Self { number, return_bit })
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn return_bit(&self) -> u32 {
        self.return_bit
    }
}

/// Parses `config:0`.
fn parse_bit(format: &str) -> Option<u32> {
    format.trim().strip_prefix("config:")?.parse().ok().filter(|&bit| bit < 32)
}

/// Attaches the programs to all places: the first one everywhere, then the next.
pub(crate) fn link(
    keeper: &Keeper,
    programs: &Programs,
    roles: &[BpfProgram],
    request: &LinkRequest<'_>,
) -> Result<Vec<LinkHandle>, BpfError> {
    link_on(&UprobeUnit::find()?, keeper, programs, roles, request)
}

pub(super) fn link_on(
    unit: &UprobeUnit,
    keeper: &Keeper,
    programs: &Programs,
    roles: &[BpfProgram],
    request: &LinkRequest<'_>,
) -> Result<Vec<LinkHandle>, BpfError> {
    let sites = request.sites;
    if sites.len() > PERF_SITES_LIMIT && !request.force {
        let (sites, limit) = (sites.len(), PERF_SITES_LIMIT);
        let seconds = (sites * roles.len()).div_ceil(10);
        return Err(BpfError::TooManyPerfSites { sites, limit, seconds });
    }
    let offsets: Vec<_> = sites.iter().map(|site| site.offset).collect();
    let cookies: Vec<_> = sites.iter().map(|site| site.cookie.0).collect();
    let ref_ctr_offsets: Vec<_> = sites.iter().map(|site| site.ref_ctr_offset).collect();
    let link = |&program: &BpfProgram| {
        let loaded = programs.get(program, AttachType::Any)?;
        let at_return = program.is_at_return();
        let spec = LinkSpec {
            way: Way::Perf { unit: unit.number, return_bit: unit.return_bit },
            at_return,
            keeps_to_the_end: false,
            pid: request.pid,
            offsets: &offsets,
            cookies: &cookies,
            ref_ctr_offsets: if at_return { &[] } else { &ref_ctr_offsets },
        };
        keeper.link(loaded.as_fd(), request.path, &spec).map_err(|refusal| {
            let place = refusal.index.and_then(|index| offsets.get(index)).copied();
            request.refusal(LinkKind::Perf, place, refusal.source)
        })
    };
    roles.iter().map(link).collect()
}

#[cfg(test)]
impl UprobeUnit {
    pub(crate) fn fake() -> Self {
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
