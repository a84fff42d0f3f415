//! Guards of return probes, as a session sees them.
//!
//! The guard process restores return addresses (`restore`). A session says which processes are
//! guarded, puts links on the guard sites, and learns which functions were restored.

use super::{
    BpfError, LinkKind, features,
    letting_go::LettingGo,
    link::keeper::Keeper,
    load::{
        maps::Maps,
        programs::{BpfProgram, Programs},
    },
    machine::btf::Offsets,
    restore::{self, GuardMaps},
    sys::{self, AttachType},
};
use crate::process_status::has_shadow_stack;
use ctrace_common::GUARDED;
use ctrace_core::units::{FuncId, Nanos, Pid};
use rustix::thread::{CapabilitySet, capabilities};
use std::{
    collections::{BTreeMap, HashMap},
    io,
    os::fd::{AsFd as _, OwnedFd},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Returns why return probes cannot be guarded here, if they cannot.
pub(crate) fn lacking() -> Option<String> {
    // The memory of another user's process is a file of that user.
    let needed = CapabilitySet::SYS_PTRACE | CapabilitySet::KILL | CapabilitySet::DAC_OVERRIDE;
    if !capabilities(None).is_ok_and(|held| held.effective.contains(needed)) {
        let names = "CAP_SYS_PTRACE, CAP_KILL and CAP_DAC_OVERRIDE";
        return Some(format!("return addresses are put back with {names}"));
    }
    // A service's filter of system calls may refuse these.
    let own = std::process::id();
    if restore::open_memory(own).is_err() || !restore::may_stop_threads() {
        return Some("ptrace or /proc/PID/mem is not allowed here".into());
    }
    if !features::knows(LinkKind::Session) {
        return Some("guards of return probes need session links (Linux 6.13)".into());
    }
    match Offsets::of_running_kernel().map(Offsets::task_iterator) {
        Ok(Ok(_)) => None,
        Ok(Err(field)) => Some(format!("the kernel's type information lacks `{field}`")),
        Err(error) => Some(error.to_string()),
    }
}

/// The guards of one session. Dropping this ends them; their links have to be closed before.
pub(super) struct ReturnGuards {
    letting_go: LettingGo,
    guarded: Arc<OwnedFd>,
    unreturned: Arc<OwnedFd>,
    counts: Arc<OwnedFd>,
    /// The words of that map.
    words: Mutex<HashMap<u32, u64>>,
    loads: Mutex<Option<UnboundedReceiver<Pid>>>,
}

impl ReturnGuards {
    pub(super) fn start(
        keeper: &Keeper,
        programs: &Programs,
        maps: &Maps,
        forks: Arc<OwnedFd>,
    ) -> Result<Self, BpfError> {
        let signal = programs.get(BpfProgram::GuardSignal, AttachType::Any)?;
        let tracepoint = "signal_deliver";
        let signals = sys::open_raw_tracepoint(c"signal_deliver", signal.as_fd())
            .map_err(|source| BpfError::Tracepoint { tracepoint, source })?;
        let guarded = maps.fd("GUARDED")?;
        let unreturned = maps.fd("UNRETURNED")?;
        let counts = maps.fd("RESTORED")?;
        let traced = maps.fd("TRACED")?;
        let maps = GuardMaps {
            requests: maps.fd("RESTORES")?,
            states: maps.fd("RESTORE_STATES")?,
            guarded: Arc::clone(&guarded),
            lister: programs.get(BpfProgram::ListHijacked, AttachType::Iterator)?,
            signals: Arc::new(signals),
            forks,
        };
        let (held, loads) = unbounded_channel();
        let guard = keeper.guard_returns(maps, held).map_err(|source| BpfError::Create {
            what: "guards of return probes".into(),
            source,
        })?;
        let loads = Mutex::new(Some(loads));
        let letting_go = LettingGo::new(guard, Arc::clone(&guarded), traced);
        Ok(Self { letting_go, guarded, unreturned, counts, words: Mutex::default(), loads })
    }

    /// Guards the return probes of a process, and of its children from now on.
    pub(super) fn guard(&self, pid: Pid) -> Result<(), BpfError> {
        Self::check(pid)?;
        sys::map_update(self.guarded.as_fd(), pid.0, &[GUARDED])
            .map_err(|source| BpfError::Map { what: "guarded processes", source })
    }

    /// Refuses a process whose return addresses cannot be restored.
    pub(super) fn check(pid: Pid) -> Result<(), BpfError> {
        // A process that is gone is no error.
        let opened = restore::open_memory(pid.0);
        if opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            return Err(BpfError::Unrestorable { pid: pid.0, why: "its memory cannot be written" });
        }
        match has_shadow_stack(pid.0) {
            Ok(true) => {
                let why = "it has a shadow stack, which cannot be written";
                Err(BpfError::Unrestorable { pid: pid.0, why })
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let why = "its status cannot be read";
                Err(BpfError::Unrestorable { pid: pid.0, why })
            }
            // Where nothing else can be read for want of descriptors or memory, the next look tells.
            Ok(false) | Err(_) => Ok(()),
        }
    }

    /// Begins to restore the open frames of processes whose calls get no return probe any more. They are
    /// guarded as long as frames are left.
    pub(super) fn let_go(&self, pids: &[Pid]) {
        self.letting_go.begin(pids);
    }

    /// Takes the processes that were let go of with frames that could not be restored, and their number.
    pub(super) fn take_left(&self) -> Vec<(Pid, usize)> {
        self.letting_go.take_left()
    }

    /// Returns the processes in which a thread has loaded something and is held. There is only one
    /// receiver.
    pub(super) fn loads(&self) -> Option<UnboundedReceiver<Pid>> {
        self.loads.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Lets the threads of a process go on that had loaded something by this time.
    pub(super) fn looked(&self, pid: Pid, time: Nanos) {
        self.letting_go.looked(pid, time);
    }

    /// Takes the functions whose frames were restored, as the addresses of their probes by process.
    pub(super) fn take_restored(&self) -> BTreeMap<Pid, Vec<u64>> {
        let mut all = BTreeMap::<Pid, Vec<u64>>::new();
        for restored in self.letting_go.guard().take_restored() {
            all.entry(Pid(restored.pid)).or_default().push(restored.probe);
        }
        all
    }

    /// Returns a counter of `RESTORED`.
    pub(super) fn count(&self, counter: u32) -> Result<u64, BpfError> {
        let mut count = [0];
        sys::map_lookup(self.counts.as_fd(), counter, &mut count)
            .map_err(|source| BpfError::Map { what: "restored frames", source })?;
        Ok(count[0])
    }

    /// Gives calls of a function no return probe any more. Its link stays.
    pub(super) fn spare(&self, function: FuncId) -> Result<(), BpfError> {
        let (index, bit) = (function.0 / 64, 1 << (function.0 % 64));
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let word = words.entry(index).or_insert(0);
        *word |= bit;
        sys::map_update(self.unreturned.as_fd(), index, &word.to_le_bytes())
            .map_err(|source| BpfError::Map { what: "functions without return probes", source })
    }

    /// Restores the open frames, when no new ones are hijacked any more. Returns the number of
    /// those that are left.
    pub(super) fn sweep(&self) -> usize {
        self.letting_go.end();
        self.letting_go.guard().sweep()
    }
}
