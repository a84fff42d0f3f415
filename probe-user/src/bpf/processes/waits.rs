//! Watches when threads of the traced processes have no processor. Nothing is watched unless a session
//! asks for it, and who wakes them only if that is asked for as well.

use super::control::{Tracepoint, watch};
use crate::bpf::{
    BpfError,
    link::Role,
    load::programs::{BpfProgram, Programs},
    machine::btf::Offsets,
    sys::{self, AttachType},
};
use std::{
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
};

const TRACEPOINTS: [Tracepoint; 2] = [
    (BpfProgram::Switch, c"sched_switch", "sched_switch"),
    (BpfProgram::Wakeup, c"sched_wakeup", "sched_wakeup"),
];

const WAKERS: Tracepoint = (BpfProgram::Waking, c"sched_waking", "sched_waking");

fn tracepoints(wakers: bool) -> impl Iterator<Item = Tracepoint> {
    TRACEPOINTS.into_iter().chain(wakers.then_some(WAKERS))
}

/// Returns the programs, to load ahead. `wakers`: it is reported who wakes threads.
pub(crate) fn programs(wakers: bool) -> impl Iterator<Item = (BpfProgram, AttachType)> {
    tracepoints(wakers).map(|(program, ..)| (program, AttachType::Any))
}

/// See the module.
pub(crate) struct Waits {
    /// Dropping a link stops its program.
    _links: Vec<OwnedFd>,
    all: Arc<OwnedFd>,
}

impl Waits {
    /// `all`: the map that says whether all waits are reported, or only those of threads with a
    /// return probe. `wakers` is as for [`programs`].
    pub(crate) fn watch(
        programs: &Programs,
        all: Arc<OwnedFd>,
        wakers: bool,
    ) -> Result<Self, BpfError> {
        let links = tracepoints(wakers).map(|tracepoint| watch(programs, &tracepoint));
        let links = links.collect::<Result<_, _>>().map_err(|error| match error {
            // The tracepoint has fewer arguments than the program reads.
            BpfError::Tracepoint { source, .. } if source.raw_os_error() == Some(libc::EINVAL) => {
                BpfError::Unsupported {
                    what: "state of a thread in `sched_switch`",
                    remedy: "leave out --cpu, or use Linux 5.18 or later",
                }
            }
            error => error,
        })?;
        let waits = Self { _links: links, all };
        if !Offsets::of_running_kernel()?.know_return_probes() {
            waits.report_all()?;
        }
        Ok(waits)
    }

    /// Prepares for probes of this kind: calls that have no return probe leave no trace in the kernel.
    pub(crate) fn prepare(&self, role: Role) -> Result<(), BpfError> {
        if role.returns() || role.guards() { Ok(()) } else { self.report_all() }
    }

    /// Reports waits of threads without return probes, too, from now on.
    pub(crate) fn report_all(&self) -> Result<(), BpfError> {
        sys::map_update(self.all.as_fd(), 0_u32, &1_u32.to_ne_bytes())
            .map_err(|source| BpfError::Map { what: "waits", source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::sys::{Syscall, fake};
    use std::fs::File;

    fn refusal(errno: i32) -> String {
        let _fake = fake::Fake::new(move |call| match call {
            Syscall::Bpf { command: 17, .. } => fake::error(errno),
            _ => fake::fd(),
        });
        let all = Arc::new(File::open("/dev/null").unwrap().into());
        Waits::watch(&Programs::fake(), all, false).err().unwrap().to_string()
    }

    #[test]
    fn who_wakes_threads_is_watched_only_where_it_is_asked_for() {
        let all = |wakers| programs(wakers).map(|(program, _)| program).collect::<Vec<_>>();
        assert_eq!(all(false), [BpfProgram::Switch, BpfProgram::Wakeup]);
        assert_eq!(all(true), [BpfProgram::Switch, BpfProgram::Wakeup, BpfProgram::Waking]);
    }

    #[test]
    fn a_kernel_that_cannot_tell_is_refused_in_a_line() {
        assert!(refusal(libc::EINVAL).contains("leave out --cpu"));
        assert!(refusal(libc::ENOENT).contains("`sched_switch`"));
        assert!(refusal(libc::EPERM).contains("permission"));
    }
}
