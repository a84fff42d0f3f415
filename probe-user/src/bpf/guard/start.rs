//! Starts the guard's process and gives up the resources that it does not need.

use super::{
    aftermath::Left,
    client::Guard,
    owner::{Owner, Sight},
    server::{self, Hold},
};
use crate::bpf::own_process::undisturbed;
use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit, setsid},
    thread::set_name,
};
use std::{
    io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{net::UnixStream, process::CommandExt as _},
    },
    process::{Command, Stdio},
    sync::{Arc, OnceLock},
};

/// Shorter than the 16 bytes that the kernel keeps of a name.
const NAME: &str = "ctrace-guard";

/// Set in a program that can run as a guard.
static DIED: OnceLock<fn(&Left)> = OnceLock::new();

/// Declares that this program passes `__guard` to [`serve`]. `died` learns of an early death.
pub(crate) fn can_be_started(died: fn(&Left)) {
    let _ = DIED.set(died);
}

pub(super) fn possible() -> Option<fn(&Left)> {
    DIED.get().copied()
}

pub(super) fn start(died: fn(&Left)) -> io::Result<Arc<Guard>> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0(NAME).arg("__guard").current_dir("/");
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: between fork and exec it calls only functions that signal handlers may call.
    unsafe { command.pre_exec(stand_apart) };
    Guard::new(command.spawn()?, ours, died)
}

/// Prepares the new process for the guard: a signal to ctrace's group must not end it.
fn stand_apart() -> io::Result<()> {
    undisturbed::stay_undisturbed();
    setsid()?;
    // A lack of memory must not end the process that closes the links. It needs little anyway.
    undisturbed::lift(Resource::As);
    // Closes inherited pipes: their readers must not wait for the guard's end.
    // SAFETY: it marks descriptors; those that the process goes on with lie below.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    Ok(())
}

/// Serves all requests of ctrace through stdin. Returns when ctrace is gone and all links are
/// closed. With a process that may be held, calls `tend` about once a second, and `outlive` when
/// ctrace is gone. `died` learns what ctrace left open.
pub(crate) fn serve(
    mut tend: impl FnMut(&Hold, Sight) + Send,
    outlive: impl Fn(&Hold, &Owner) + Sync,
    died: fn(&Left),
) -> io::Result<()> {
    // A missing name does no harm.
    let _ = set_name(&std::ffi::CString::new(NAME).unwrap_or_default());
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    // Other processes should die first when memory runs out. Setting this takes a capability.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-900");
    crate::bpf::own_process::heap::use_one_arena();
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let owner = Owner::of(&socket)?;
    let look = |held: Option<&Hold>| {
        let ctrace = owner.look();
        held.into_iter().for_each(|held| tend(held, ctrace));
        ctrace
    };
    server::serve(&socket, look, |held| outlive(held, &owner), died);
    Ok(())
}
