//! Measures the kernel's own share in the cost of a probe: a link with an empty program.

use super::{Attachment, LinkRequest, Role, Site, keeper::Keeper, kind::LinkKind, multi};
use crate::bpf::{BpfError, sys::AttachType};
use ctrace_core::units::Pid;
use std::{os::fd::AsFd as _, path::Path};

/// Puts a session link with a program that returns at once on the places, at entry and at return.
/// For benchmarks: nothing is reported.
pub fn attach_nothing(path: &Path, pid: Pid, sites: &[Site]) -> Result<Attachment, BpfError> {
    let (attach, kind) = (AttachType::UprobeSession, LinkKind::Session);
    let request = LinkRequest { path, pid: Some(pid.0), role: Role::Function, sites, force: false };
    let keeper = Keeper::of_this_process()?;
    let program = multi::empty_program(attach).map_err(|source| {
        BpfError::permission("load an empty program", &source)
            .unwrap_or_else(|| BpfError::no_link(kind))
    })?;
    let link = multi::link_loaded(&keeper, program.as_fd(), false, attach, kind, &request)?;
    Ok(Attachment::new(Role::Function, kind, sites.len(), vec![link]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::sys::{Syscall, fake};
    use ctrace_common::Cookie;

    const SITE: Site = Site { offset: 16, ref_ctr_offset: 0, cookie: Cookie::plain(0) };

    fn attach() -> Result<Attachment, BpfError> {
        attach_nothing(Path::new("/bin/true"), Pid(7), &[SITE])
    }

    #[test]
    fn it_is_one_session_link() {
        let _fake = fake::Fake::new(|call| match call {
            Syscall::Bpf { command: 28, attr } => {
                assert_eq!([attr.get_u32(8), attr.get_u32(48), attr.get_u32(56)], [57, 1, 7]);
                fake::fd()
            }
            _ => fake::fd(),
        });
        let attachment = attach().unwrap();
        assert_eq!((attachment.kind(), attachment.sites()), (LinkKind::Session, 1));
    }

    #[test]
    fn a_kernel_without_sessions_is_told() {
        let _fake = fake::Fake::failing(libc::EINVAL);
        assert!(matches!(attach(), Err(BpfError::Unsupported { .. })));
    }

    #[test]
    fn missing_rights_are_told() {
        let _fake = fake::Fake::failing(libc::EPERM);
        assert!(matches!(attach(), Err(BpfError::Permission { .. })));
    }
}
