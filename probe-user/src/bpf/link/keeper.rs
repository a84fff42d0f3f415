//! Decides whether the guard or this process makes, keeps and closes links.
//!
//! This process does so only where that harms nobody: in unit tests, whose kernel is a fake, and in
//! programs that use this library but cannot be a guard, such as tests with their own targets.

use super::kernel_link::{self, LinkRefusal, LinkSpec};
use crate::bpf::{
    BpfError,
    guard::{self, Guard, GuardedLink, GuardedReturns},
    restore::{Attention, Client, Forgotten, GuardMaps, Restored, Restorer},
};
use ctrace_core::units::Pid;
use std::{
    ffi::CString,
    io,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::mpsc::UnboundedSender;

#[derive(Clone)]
pub(crate) enum Keeper {
    Guard(Arc<Guard>),
    Itself,
}

impl Keeper {
    /// Returns the guard, which is started when first needed.
    pub(crate) fn of_this_process() -> Result<Self, BpfError> {
        Ok(guard::current()?.map_or(Self::Itself, Self::Guard))
    }

    /// Links all places of the file or none.
    pub(crate) fn link(
        &self,
        program: BorrowedFd<'_>,
        path: &Path,
        spec: &LinkSpec<'_>,
    ) -> Result<LinkHandle, LinkRefusal> {
        match self {
            Self::Guard(guard) => guard.link(program, path, spec).map(LinkHandle::Guarded),
            Self::Itself => {
                let path = CString::new(path.as_os_str().as_bytes())
                    .map_err(|_| io::Error::from_raw_os_error(libc::ENOENT))?;
                kernel_link::make(program, &path, spec).map(LinkHandle::Own)
            }
        }
    }
}

impl Keeper {
    /// Starts to restore return addresses with these maps. `loads` learns of the processes in which
    /// a thread is held.
    pub(crate) fn guard_returns(
        &self,
        maps: GuardMaps,
        loads: UnboundedSender<Pid>,
    ) -> io::Result<ReturnGuard> {
        match self {
            Self::Guard(guard) => {
                let returns = guard.guard_returns(&maps, loads)?;
                Ok(ReturnGuard::Guarded { returns, maps })
            }
            Self::Itself => {
                let restored = Arc::new(Mutex::new(Vec::new()));
                let told = Arc::clone(&restored);
                let client = Client {
                    restored: Box::new(move |function| {
                        locked(&told).push(function);
                        true
                    }),
                    loaded: Box::new(move |pid| loads.send(Pid(pid)).is_ok()),
                    attention: Box::new(|| Attention::Looks),
                };
                let restorer = Restorer::start(maps, client)?;
                Ok(ReturnGuard::Own { restorer, restored })
            }
        }
    }
}

/// Guards of return probes. Dropping it ends them.
pub(crate) enum ReturnGuard {
    /// The maps are for the guard's death.
    Guarded {
        returns: GuardedReturns,
        maps: GuardMaps,
    },
    Own {
        restorer: Restorer,
        restored: Arc<Mutex<Vec<Restored>>>,
    },
}

impl ReturnGuard {
    /// Restores the open frames. Returns the number of those that are left.
    pub(crate) fn sweep(&self) -> usize {
        match self {
            Self::Guarded { returns, maps } => returns.sweep(None).unwrap_or_else(|error| {
                if returns.is_dead() {
                    return take_over(maps.clone());
                }
                // It sweeps once more at its end.
                tracing::warn!("return addresses are put back late: {error}");
                1
            }),
            Self::Own { restorer, .. } => restorer.sweep(),
        }
    }

    /// Restores the open frames of a process that was forgotten. Returns the number of those that are
    /// left. A dead guard leaves them to the end of the session, which is near.
    pub(crate) fn sweep_process(&self, whose: Forgotten) -> io::Result<usize> {
        match self {
            Self::Guarded { returns, .. } => returns.sweep(Some(whose)),
            Self::Own { restorer, .. } => Ok(restorer.sweep_process(whose)),
        }
    }

    /// Lets the threads of a process go on that had loaded something by this time.
    pub(crate) fn looked(&self, pid: u32, time: u64) {
        match self {
            Self::Guarded { returns, .. } => returns.looked(pid, time),
            Self::Own { restorer, .. } => restorer.looked(pid, time),
        }
    }

    /// Takes the functions whose frames were restored since the last call.
    pub(crate) fn take_restored(&self) -> Vec<Restored> {
        match self {
            Self::Guarded { returns, .. } => returns.take_restored(),
            Self::Own { restored, .. } => std::mem::take(&mut locked(restored)),
        }
    }
}

/// Restores in this process what the guard has left at its death. Returns the number of frames that
/// are left.
fn take_over(maps: GuardMaps) -> usize {
    let client = Client {
        restored: Box::new(|_| true),
        loaded: Box::new(|_| false),
        attention: Box::new(|| Attention::Gone),
    };
    match Restorer::start(maps.clone(), client) {
        Ok(restorer) => restorer.take_over(),
        Err(error) => {
            tracing::warn!("return addresses stay replaced: {error}");
            maps.give_up();
            1
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Probes in place. Dropping it removes them.
pub(crate) enum LinkHandle {
    Guarded(GuardedLink),
    Own(Vec<OwnedFd>),
}

impl LinkHandle {
    /// Makes the guard begin to remove the probes.
    pub(crate) fn begin_to_close(&mut self) {
        if let Self::Guarded(link) = self {
            link.begin_to_close();
        }
    }

    /// Removes the probes. They are gone when it returns.
    pub(crate) fn close(self) -> io::Result<()> {
        match self {
            Self::Guarded(link) => link.close(),
            Self::Own(links) => kernel_link::close(links),
        }
    }

    /// Returns the number of kernel links.
    pub(crate) fn links(&self) -> usize {
        match self {
            Self::Guarded(link) => link.links(),
            Self::Own(links) => links.len(),
        }
    }
}
