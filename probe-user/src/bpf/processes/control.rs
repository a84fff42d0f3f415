//! Watches processes begin and end, and keeps the set of traced ones.

use crate::bpf::{
    BpfError,
    load::programs::{BpfProgram, Programs},
    sys::{self, AttachType},
};
use ctrace_core::units::Pid;
use std::{
    ffi::CStr,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    sync::Arc,
};

/// The size of the map in the eBPF programs.
pub(crate) const PROCESSES_LIMIT: u32 = 32768;

/// Missing before Linux 6.10: there, an exec loses the contents of its thread's marker buffer.
const OPTIONAL: &str = "sched_prepare_exec";

/// A program, its tracepoint, and the tracepoint's name for people.
pub(crate) type Tracepoint = (BpfProgram, &'static CStr, &'static str);

const TRACEPOINTS: [Tracepoint; 5] = [
    (BpfProgram::Fork, c"sched_process_fork", "sched_process_fork"),
    (BpfProgram::Exec, c"sched_process_exec", "sched_process_exec"),
    (BpfProgram::PrepareExec, c"sched_prepare_exec", OPTIONAL),
    (BpfProgram::Exit, c"sched_process_exit", "sched_process_exit"),
    (BpfProgram::Rename, c"task_rename", "task_rename"),
];

/// Runs the program at its tracepoint, as long as the link is open.
pub(super) fn watch(
    programs: &Programs,
    &(program, name, tracepoint): &Tracepoint,
) -> Result<OwnedFd, BpfError> {
    let loaded = programs.get(program, AttachType::Any)?;
    sys::open_raw_tracepoint(name, loaded.as_fd()).map_err(|source| {
        BpfError::permission(format!("watch `{tracepoint}`"), &source)
            .unwrap_or(BpfError::Tracepoint { tracepoint, source })
    })
}

/// The processes that a session traces, in the kernel's map.
pub(crate) struct Traced(Arc<OwnedFd>);

impl Traced {
    pub(crate) fn has(&self, pid: Pid) -> bool {
        sys::map_lookup(self.0.as_fd(), pid.0, &mut [0]).is_ok()
    }

    /// Returns whether a process other than this one is traced and exists. A kernel that does not
    /// tell is one that traces none.
    pub(crate) fn has_others(&self, pid: Pid) -> bool {
        let mut last = None;
        // A key that is removed meanwhile begins the walk anew.
        for _ in 0..2 * PROCESSES_LIMIT {
            match sys::map_next_key::<u32>(self.0.as_fd(), last) {
                Ok(Some(other)) => last = Some(other),
                Ok(None) | Err(_) => return false,
            }
            let exists = |other: u32| Path::new(&format!("/proc/{other}")).exists();
            if last.is_some_and(|other| other != pid.0 && exists(other)) {
                return true;
            }
        }
        false
    }
}

pub(crate) struct Control {
    /// Dropping a link stops its program.
    links: Vec<Arc<OwnedFd>>,
    traced: Arc<OwnedFd>,
}

impl Control {
    pub(crate) fn attach(programs: &Programs, traced: Arc<OwnedFd>) -> Result<Self, BpfError> {
        Self::attach_to(programs, traced, &TRACEPOINTS)
    }

    pub(super) fn attach_to(
        programs: &Programs,
        traced: Arc<OwnedFd>,
        tracepoints: &[Tracepoint],
    ) -> Result<Self, BpfError> {
        let mut links = Vec::new();
        for tracepoint in tracepoints {
            match watch(programs, tracepoint) {
                Ok(link) => links.push(Arc::new(link)),
                Err(BpfError::Tracepoint { tracepoint: OPTIONAL, source })
                    if source.raw_os_error() == Some(libc::ENOENT) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { links, traced })
    }

    /// Returns the link that watches forks, the first of them.
    pub(crate) fn forks(&self) -> Option<Arc<OwnedFd>> {
        self.links.first().map(Arc::clone)
    }

    /// Adds a process. `mode` is `ctrace_common::TRACED` or one of its kin.
    pub(crate) fn trace(&self, pid: u32, mode: u8) -> Result<(), BpfError> {
        sys::map_update(self.traced.as_fd(), pid, &[mode]).map_err(|source| {
            match source.raw_os_error() {
                Some(libc::E2BIG) => BpfError::TooManyProcesses { limit: PROCESSES_LIMIT },
                _ => BpfError::Map { what: "traced processes", source },
            }
        })
    }
}

impl Control {
    pub(crate) fn traced(&self) -> Traced {
        Traced(Arc::clone(&self.traced))
    }

    /// Removes a process. A missing one is no error.
    pub(crate) fn forget(&self, pid: u32) {
        let _ = sys::map_delete(self.traced.as_fd(), pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::sys::{Syscall, fake};
    use std::fs::File;

    fn control() -> Control {
        let traced = Arc::new(File::open("/dev/null").unwrap().into());
        Control { links: Vec::new(), traced }
    }

    fn attach_where_opening_fails(errno: i32) -> BpfError {
        let _fake = fake::Fake::new(move |call| match call {
            Syscall::Bpf { command: 17, .. } => fake::error(errno),
            _ => fake::fd(),
        });
        let traced = Arc::new(File::open("/dev/null").unwrap().into());
        Control::attach(&Programs::fake(), traced).err().unwrap()
    }

    #[test]
    fn a_kernel_without_the_tracepoint_is_told() {
        let error = attach_where_opening_fails(libc::ENOENT);
        let expected = "sched_process_fork";
        assert!(matches!(error, BpfError::Tracepoint { tracepoint, .. } if tracepoint == expected));
    }

    #[test]
    fn missing_rights_are_told() {
        let error = attach_where_opening_fails(libc::EPERM);
        assert!(matches!(error, BpfError::Permission { .. }), "{error}");
    }

    #[test]
    fn other_traced_processes_are_found_while_they_exist() {
        // The map holds the process itself, one that is long gone, and, if asked, init.
        let has_others = |all: &'static [u32]| {
            let mut keys = all.iter();
            let _fake = fake::Fake::new(move |call| match (call, keys.next()) {
                (Syscall::Bpf { command: 4, attr }, Some(key)) => {
                    // SAFETY: the caller's key.
                    unsafe { *(attr.get_u64(16) as *mut u32) = *key };
                    Ok(0)
                }
                _ => fake::error(libc::ENOENT),
            });
            control().traced().has_others(Pid(77))
        };
        assert!(has_others(&[77, 4_000_000, 1]));
        assert!(!has_others(&[77, 4_000_000]));
        assert!(!has_others(&[]));
    }

    #[test]
    fn a_full_set_is_told() {
        let _fake = fake::Fake::failing(libc::E2BIG);
        let error = control().trace(1, 1).unwrap_err();
        assert!(matches!(error, BpfError::TooManyProcesses { .. }), "{error}");
    }

    #[test]
    fn other_refusals_are_told() {
        let _fake = fake::Fake::failing(libc::ENOMEM);
        assert!(matches!(control().trace(1, 1), Err(BpfError::Map { .. })));
    }
}
