//! Attaches and detaches an empty program. With its last probe, the kernel restores a place's
//! instruction, even where an earlier probe left its breakpoint. Another tracer's probes are not
//! affected.

use super::{
    LinkRequest, Role, Site,
    bisection::Bisection,
    kernel_link::{self, LinkSpec, Way},
    kind::LinkKind,
    multi, perf,
};
use crate::bpf::{
    BpfError,
    error::ENOTSUPP,
    features,
    sys::{self, AttachType, UprobeEvent},
};
use ctrace_common::Cookie;
use ctrace_core::units::Pid;
use std::{
    ffi::{CStr, CString},
    fs::File,
    io,
    os::{
        fd::{AsFd as _, AsRawFd as _},
        unix::ffi::OsStrExt as _,
    },
    path::PathBuf,
    time::Instant,
};

/// Limit of refusals, because each takes a few links. The kernel refuses hardly any of a tracer's
/// probes, but a process can forge breakpoints anywhere in its code.
const MOST_REFUSED: usize = 256;

/// A place in a file to touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbePlace {
    /// File offset.
    pub offset: u64,
    /// File offset of the semaphore that the earlier probe raised; 0 for none.
    pub semaphore: u64,
}

/// The result of touching places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Touched {
    /// The number of places, from the first on, that were begun in time.
    pub tried: usize,
    /// Places that the kernel refused: another tracer has them with another semaphore, or nothing
    /// can be probed. Their breakpoints may be gone all the same: undoing its work mends them.
    pub refused: Vec<ProbePlace>,
}

/// Returns whether many places are touched at once, in milliseconds. Otherwise each takes 0.1 s.
pub(crate) fn touches_many() -> bool {
    features::knows(LinkKind::Multi)
}

/// Touches places of the file. On removal, the kernel visits all processes that map it. The probes
/// belong to one process, which must map the file, so that the kernel reads the instructions that
/// it restores. No place is begun after `until`, nor after too many refusals.
pub(crate) fn touch(
    file: &File,
    pid: Pid,
    places: &[ProbePlace],
    until: Instant,
) -> Result<Touched, BpfError> {
    // The file that was compared, whatever its path names by now.
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let site = |place: &ProbePlace| Site {
        offset: place.offset,
        ref_ctr_offset: place.semaphore,
        cookie: Cookie::plain(0),
    };
    let sites: Vec<Site> = places.iter().map(site).collect();
    let request = LinkRequest {
        path: &path,
        pid: Some(pid.0),
        role: Role::Switch,
        sites: &sites,
        force: true,
    };
    let c_path = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| BpfError::NoFile { path: path.clone() })?;
    let (tried, refused) = match touches_many() {
        true => by_multi_links(&request, &c_path, until)?,
        false => by_events(&request, &c_path, until)?,
    };
    let refused = refused.into_iter();
    let refused =
        refused.map(|site| ProbePlace { offset: site.offset, semaphore: site.ref_ctr_offset });
    Ok(Touched { tried, refused: refused.collect() })
}

/// Makes links, each as large as possible. Returns the number of places and the refused ones.
fn by_multi_links(
    request: &LinkRequest<'_>,
    path: &CStr,
    until: Instant,
) -> Result<(usize, Vec<Site>), BpfError> {
    let attach = AttachType::UprobeMulti;
    let refusal = |source| request.refusal(LinkKind::Multi, None, source);
    let program = multi::empty_program(attach).map_err(refusal)?;
    let mut refused = Vec::new();
    let mut parts = Bisection::new(request.sites.len());
    while let Some(part) = parts.next() {
        let begun = Instant::now();
        if begun >= until || refused.len() >= MOST_REFUSED {
            break;
        }
        let sites = &request.sites[part.clone()];
        let offsets: Vec<_> = sites.iter().map(|site| site.offset).collect();
        let semaphores: Vec<_> = sites.iter().map(|site| site.ref_ctr_offset).collect();
        let counts = semaphores.iter().any(|offset| *offset != 0);
        let spec = LinkSpec {
            way: Way::Multi(attach),
            at_return: false,
            keeps_to_the_end: false,
            pid: request.pid,
            offsets: &offsets,
            cookies: &vec![0; sites.len()],
            ref_ctr_offsets: if counts { &semaphores } else { &[] },
        };
        let blamed = match kernel_link::make(program.as_fd(), path, &spec) {
            Ok(links) => {
                kernel_link::close(links).map_err(|source| BpfError::Detach { source })?;
                parts.accepted(&part, begun.elapsed())
            }
            Err(error) if !blames_a_place(&error.source) => return Err(refusal(error.source)),
            Err(_) => parts.refused(&part),
        };
        refused.extend(blamed.map(|index| request.sites[index]));
    }
    Ok((parts.done(), refused))
}

/// Makes events, one by one. Returns the number of places and the refused ones.
fn by_events(
    request: &LinkRequest<'_>,
    path: &CStr,
    until: Instant,
) -> Result<(usize, Vec<Site>), BpfError> {
    let unit = perf::UprobeUnit::find()?;
    let mut refused = Vec::new();
    for (tried, site) in request.sites.iter().enumerate() {
        if Instant::now() >= until || refused.len() >= MOST_REFUSED {
            return Ok((tried, refused));
        }
        let event = UprobeEvent {
            unit: unit.number(),
            return_bit: unit.return_bit(),
            at_return: false,
            path,
            offset: site.offset,
            ref_ctr_offset: site.ref_ctr_offset,
            pid: request.pid,
        };
        match sys::open_uprobe(&event) {
            Ok(event) => sys::close(event).map_err(|source| BpfError::Detach { source })?,
            Err(error) if blames_a_place(&error) => refused.push(*site),
            Err(error) => return Err(request.refusal(LinkKind::Perf, Some(site.offset), error)),
        }
    }
    Ok((request.sites.len(), refused))
}

fn blames_a_place(error: &io::Error) -> bool {
    let blame = [libc::EINVAL, libc::EIO, libc::ENOEXEC, libc::EOPNOTSUPP, ENOTSUPP];
    error.raw_os_error().is_some_and(|errno| blame.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::sys::{Syscall, fake};
    use std::{cell::RefCell, rc::Rc, time::Duration};

    const LINK_CREATE: u32 = 28;

    fn places(offsets: &[u64]) -> Vec<ProbePlace> {
        offsets.iter().map(|offset| ProbePlace { offset: *offset, semaphore: 0 }).collect()
    }

    /// Touches places on a kernel that refuses links with offsets from 100 on. Returns the number
    /// tried, the refused ones, and the number of places in each requested link.
    fn touched_within(offsets: &[u64], limit: Duration) -> (usize, Vec<u64>, Vec<u32>) {
        let links = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&links);
        let all = offsets.to_vec();
        let _fake = fake::Fake::new(move |call| {
            let Syscall::Bpf { command: LINK_CREATE, attr } = call else { return fake::fd() };
            if attr.get_u32(56) == 0 {
                // The check whether the kernel knows such links.
                return fake::error(libc::EBADF);
            }
            let (offsets, count) = (attr.get_u64(24) as *const u64, attr.get_u32(48));
            seen.borrow_mut().push(count);
            // SAFETY: the caller keeps this many offsets alive during the call.
            let asked = unsafe { std::slice::from_raw_parts(offsets, count as usize) };
            assert!(asked.iter().all(|offset| all.contains(offset)));
            if asked.iter().any(|o| *o >= 100) { fake::error(libc::EINVAL) } else { fake::fd() }
        });
        let file = File::open("/dev/null").unwrap();
        let touched = touch(&file, Pid(7), &places(offsets), Instant::now() + limit).unwrap();
        let refused = touched.refused.iter().map(|place| place.offset).collect();
        (touched.tried, refused, links.take())
    }

    fn touched(offsets: &[u64]) -> (Vec<u64>, Vec<u32>) {
        let (tried, refused, links) = touched_within(offsets, Duration::from_secs(600));
        assert_eq!(tried, offsets.len());
        (refused, links)
    }

    #[test]
    fn few_links_do_for_all() {
        assert_eq!(touched(&[1, 2, 3, 4, 5, 6]), (vec![], vec![1, 4, 1]));
        assert_eq!(touched(&[]), (vec![], vec![]));
    }

    #[test]
    fn what_is_refused_stops_nothing_but_itself() {
        assert_eq!(touched(&[1, 100, 3, 4]).0, [100]);
        assert_eq!(touched(&[100, 2, 3, 101]).0, [100, 101]);
    }

    #[test]
    fn nothing_is_begun_with_when_the_time_is_up() {
        assert_eq!(touched_within(&[1, 2, 3], Duration::ZERO), (0, vec![], vec![]));
    }

    #[test]
    fn too_many_refusals_end_it() {
        let forged: Vec<u64> = [1, 2].into_iter().chain(100..10_000).collect();
        let (tried, refused, links) = touched_within(&forged, Duration::from_secs(600));
        assert_eq!((tried, refused.len()), (2 + MOST_REFUSED, MOST_REFUSED));
        assert_eq!(refused, forged[2..tried]);
        assert!(links.len() < MOST_REFUSED * 2, "{}", links.len());
    }

    /// A kernel without multi links.
    #[test]
    fn else_each_place_has_an_event() {
        if perf::UprobeUnit::find().is_err() {
            return eprintln!("skipped: no uprobes here");
        }
        let _fake = fake::Fake::new(|call| match call {
            Syscall::Bpf { .. } => fake::error(libc::EINVAL),
            Syscall::PerfEventOpen { attr, pid: 7, .. } if attr.get_u64(64) == 2 => {
                fake::error(libc::EINVAL)
            }
            Syscall::PerfEventOpen { pid: 7, cpu: -1, .. } => fake::fd(),
            Syscall::Close { .. } => Ok(0),
            _ => panic!("another call"),
        });
        let file = File::open("/dev/null").unwrap();
        let within = |limit: Duration| {
            let touched =
                touch(&file, Pid(7), &places(&[1, 2, 3]), Instant::now() + limit).unwrap();
            (touched.tried, touched.refused)
        };
        assert_eq!(within(Duration::from_secs(60)), (3, places(&[2])));
        assert_eq!(within(Duration::ZERO), (0, vec![]));
    }

    #[test]
    fn missing_rights_are_told() {
        let _fake = fake::Fake::failing(libc::EPERM);
        let file = File::open("/dev/null").unwrap();
        let error = touch(&file, Pid(7), &places(&[1]), Instant::now()).unwrap_err();
        assert!(matches!(error, BpfError::Permission { .. }), "{error}");
    }
}
