//! The loaded programs and maps of one tracing session.

mod pythons;

use super::{
    BpfError, Diagnostics, LostCounter, News, Release, Rings, features,
    guard::GuardDeath,
    link::{
        self, Attachment, LinkRequest, Role, Site,
        ahead::Ahead,
        keeper::Keeper,
        kind::{LinkChoice, LinkKind},
    },
    load::{
        maps::Maps,
        object,
        programs::{BpfProgram, Programs},
        settings::{Settings, load_maps},
    },
    machine::cpus::Cpus,
    maps::{
        buffers::Buffers,
        counted::{CountedMaps, CountedSizes, Counts},
        heartbeat::Heartbeat,
        left_out::{LeftOutCounts, Thrift},
        per_cpu::PerCpuCounters,
        side_table::SideTable,
        values::{CallElements, CallSources, Unmet, ValueMaps, Values},
    },
    processes::{
        control::{Control, Traced},
        waits::{self, Waits},
    },
    return_guards::ReturnGuards,
    rings::layout::RingLayout,
    sys::{self, AttachType},
};
use ctrace_common::{
    Admission, JumpTarget, PAGE_LEN, RESTORE_BACKTRACES, RESTORE_UNHEARD, RestoreReason, TRACED,
    TRACED_LAUNCHED, ValueSources,
};
use ctrace_core::{
    marker::BufferId,
    units::{FuncId, Nanos, Pid, Tid},
};
use std::{
    collections::BTreeMap,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use tokio::sync::mpsc::UnboundedReceiver;

/// Settings that are fixed before the programs are loaded.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Size of each CPU's ring: a power of two, at least a page.
    pub ring_bytes: u32,
    /// True if children of traced processes are traced, from their first instruction.
    pub follow: bool,
    /// The facts by which later processes are admitted, see [`Kernel::admit`]; 0: none are.
    pub admits: u32,
    /// True if the process is yet to execute the command: its probes count only from then on.
    pub launches: bool,
    /// True if there will be marker buffers.
    pub markers: bool,
    /// True if there will be points or functions with values.
    pub values: bool,
    /// True if values may tell of the Python function around a call.
    pub python: bool,
    /// True if there will be functions with a condition.
    pub conditions: bool,
    /// True if return probes are guarded.
    pub guards: bool,
    /// True if it is watched when threads have no processor.
    pub waits: bool,
    /// True if it is watched who wakes them, too.
    pub wakers: bool,
    /// Calls are counted where they end, without an event of each.
    pub counted: Option<CountedSizes>,
    /// Some calls make no events.
    pub thrift: Option<Thrift>,
}

/// Returns the programs that a session needs whatever it traces. The verifier takes longest for the
/// first ones.
fn needed(config: &Config) -> Vec<(BpfProgram, AttachType)> {
    let watching = [
        BpfProgram::Exit,
        BpfProgram::PrepareExec,
        BpfProgram::Fork,
        BpfProgram::Rename,
        BpfProgram::Exec,
    ];
    let guarding = [
        (BpfProgram::GuardUnwind, AttachType::UprobeMulti),
        (BpfProgram::GuardSwitch, AttachType::UprobeMulti),
        (BpfProgram::GuardSignal, AttachType::Any),
        (BpfProgram::ListHijacked, AttachType::Iterator),
    ];
    let watching = watching.map(|program| (program, AttachType::Any)).into_iter();
    let guarding = guarding.into_iter().filter(|_| config.guards);
    let waiting = waits::programs(config.wakers).filter(|_| config.waits);
    watching.chain(guarding).chain(waiting).collect()
}

/// The programs in the kernel. Attachments may outlive it.
pub struct Kernel {
    maps: Maps,
    programs: Programs,
    keeper: Keeper,
    heartbeat: Heartbeat,
    control: Control,
    waits: Option<Waits>,
    counts: Option<Counts>,
    left_out: Option<LeftOutCounts>,
    jumps: Mutex<SideTable<JumpTarget>>,
    values: Mutex<Values>,
    buffers: Buffers,
    rings: Mutex<Option<Arc<OwnedFd>>>,
    layout: RingLayout,
    lost: LostCounter,
    guards: Option<ReturnGuards>,
    /// True if the programs check the set of traced processes, because links are not filtered.
    filters_in_programs: bool,
    known_links: KnownLinks,
    /// Until the first probes are placed.
    ahead: Mutex<Option<Ahead>>,
}

impl Kernel {
    /// Loads everything but the programs of probes, which are loaded when first attached. Watches
    /// traced processes from now on.
    pub fn load(config: &Config) -> Result<Self, BpfError> {
        let bytes = object::bytes()?;
        let ahead = Mutex::new(Ahead::begin());
        // The guard starts while the programs are loaded.
        let keeper = Keeper::of_this_process()?;
        let cpus = Cpus::read()?;
        let layout = RingLayout::new(cpus.online.len(), config.ring_bytes)?;
        let filters_in_programs =
            config.follow || Release::running().filters_threads_not_processes();
        let maps = load_maps(&Settings {
            config,
            layout,
            first_pages: &layout.first_pages(&cpus.online),
            filter: filters_in_programs,
            news_bytes: PAGE_LEN as u32,
        })?;
        let programs = Programs::parse(bytes, &maps.fds())?;
        programs.load_ahead(&needed(config));
        let rings = maps.fd("RINGS")?;
        let lost = LostCounter::new(maps.fd("LOST")?, cpus.possible as usize);
        let jumps = SideTable::new(maps.fd("JUMPS")?);
        let unmet = maps.fd("UNMET")?;
        let values = Values::new(ValueMaps {
            values: maps.fd("VALUES")?,
            conditions: maps.fd("CONDITIONS")?,
            unmet: PerCpuCounters::new(unmet, cpus.possible as usize, "counts of calls"),
        });
        let cut_off = maps.fd("CUT_OFF")?;
        let buffers = Buffers::new(maps.fd("BUFFERS")?, cut_off);
        let counts = match config.counted {
            Some(sizes) => {
                let uncounted = maps.fd("UNCOUNTED_CALLS")?;
                let cpus = cpus.possible as usize;
                let maps = CountedMaps {
                    counting: maps.fd("COUNTING")?,
                    counts: maps.fd("PATH_COUNTS")?,
                    keys: maps.fd("PATH_KEYS")?,
                    values: maps.fd("COUNTED_VALUES")?,
                    functions: maps.fd("COUNTED_FUNCTIONS")?,
                    open: maps.fd("OPEN_CALLS")?,
                    uncounted: PerCpuCounters::new(uncounted, cpus, "counts of calls"),
                };
                Some(Counts::map(maps, sizes)?)
            }
            None => None,
        };
        let left_out = match config.thrift {
            Some(thrift) => {
                let (counting, counts) = (maps.fd("COUNTING")?, maps.fd("LEFT_OUT")?);
                Some(LeftOutCounts::map(&counting, &counts, maps.fd("KEPT_CALLS")?, thrift)?)
            }
            None => None,
        };
        let heartbeat = Heartbeat::new(maps.fd("HEARTBEAT")?);
        let control = Control::attach(&programs, maps.fd("TRACED")?)?;
        let waits = match config.waits {
            true => Some(Waits::watch(&programs, maps.fd("ALL_WAITS")?, config.wakers)?),
            false => None,
        };
        let guards = match control.forks().filter(|_| config.guards) {
            Some(forks) => Some(ReturnGuards::start(&keeper, &programs, &maps, forks)?),
            None => None,
        };
        Ok(Self {
            maps,
            programs,
            keeper,
            heartbeat,
            control,
            waits,
            counts,
            left_out,
            jumps: Mutex::new(jumps),
            values: Mutex::new(values),
            buffers,
            rings: Mutex::new(Some(rings)),
            layout,
            lost,
            guards,
            filters_in_programs,
            known_links: KnownLinks::default(),
            ahead,
        })
    }

    /// Counts events of this process and reports its forks, execs and exits.
    pub fn trace_process(&self, pid: Pid) -> Result<(), BpfError> {
        self.guard(pid)?;
        self.control.trace(pid.0, TRACED)
    }

    /// Traces processes that execute a program and are like this, from its first instruction on.
    pub(crate) fn admit(&self, admission: Admission) -> Result<(), BpfError> {
        sys::map_update(self.maps.fd("ADMITTED")?.as_fd(), admission, &[1])
            .map_err(|source| BpfError::Map { what: "later processes", source })
    }

    /// Counts no events of a process any more. Its calls get no return probe from now on.
    pub(crate) fn forget_process(&self, pid: Pid) {
        self.control.forget(pid.0);
    }

    /// Begins to restore the open frames of processes that were forgotten, and to guard them no more.
    pub(crate) fn let_go(&self, pids: &[Pid]) {
        self.guards.iter().for_each(|guards| guards.let_go(pids));
    }

    /// Takes the processes that were let go of with frames that could not be restored, and their number.
    pub(crate) fn take_left(&self) -> Vec<(Pid, usize)> {
        self.guards.as_ref().map(ReturnGuards::take_left).unwrap_or_default()
    }

    /// Refuses a process whose return probes could not be guarded, where those of others are.
    pub(crate) fn check_restorable(&self, pid: Pid) -> Result<(), BpfError> {
        self.guards.as_ref().map_or(Ok(()), |_| ReturnGuards::check(pid))
    }

    /// Returns the traced processes, including followed children forked meanwhile.
    pub(crate) fn traced(&self) -> Traced {
        self.control.traced()
    }

    /// Like [`Self::trace_process`] for a process that will execute the command whose probes are in
    /// place. From its next exec on it stops before each new program until SIGCONT, as long as
    /// ctrace runs.
    pub(crate) fn trace_launched(&self, pid: Pid) -> Result<(), BpfError> {
        self.guard(pid)?;
        self.heartbeat.start()?;
        self.control.trace(pid.0, TRACED_LAUNCHED)
    }

    fn guard(&self, pid: Pid) -> Result<(), BpfError> {
        self.guards.as_ref().map_or(Ok(()), |guards| guards.guard(pid))
    }

    /// Takes the functions whose frames were restored since the last call, as the addresses of their
    /// probes by process: their calls end without a return.
    pub(crate) fn take_restored(&self) -> BTreeMap<Pid, Vec<u64>> {
        self.guards.as_ref().map(ReturnGuards::take_restored).unwrap_or_default()
    }

    /// Returns the calls that are counted without an event of each, if they are.
    pub(crate) fn counts(&self) -> Option<&Counts> {
        self.counts.as_ref()
    }

    /// Returns the counts of calls that make no events, if some do not.
    pub(crate) fn left_out(&self) -> Option<&LeftOutCounts> {
        self.left_out.as_ref()
    }

    /// Returns the processes in which a thread has loaded a library and is held until
    /// [`Self::looked`]. There is only one receiver.
    pub(crate) fn loads(&self) -> Option<UnboundedReceiver<Pid>> {
        self.guards.as_ref().and_then(ReturnGuards::loads)
    }

    /// Lets the threads of a process go on that had loaded something by this time.
    pub(crate) fn looked(&self, pid: Pid, time: Nanos) {
        self.guards.iter().for_each(|guards| guards.looked(pid, time));
    }

    /// Returns how often a thread was held for this reason, to restore its frames.
    pub(crate) fn restored(&self, reason: RestoreReason) -> u64 {
        self.guard_count(reason as u32)
    }

    /// Returns how often that was before a backtrace. [`RestoreReason::Unwind`] has them as well.
    pub(crate) fn restored_for_backtraces(&self) -> u64 {
        self.guard_count(RESTORE_BACKTRACES)
    }

    /// Returns how often a thread could not ask for its frames, as too many others waited.
    pub(crate) fn unheard(&self) -> u64 {
        self.guard_count(RESTORE_UNHEARD)
    }

    fn guard_count(&self, counter: u32) -> u64 {
        self.guards.as_ref().map_or(0, |guards| guards.count(counter).unwrap_or(0))
    }

    /// Gives calls of a function no return probe any more. Its entries are still seen.
    pub fn spare_returns(&self, function: FuncId) -> Result<(), BpfError> {
        // Before, so that no such call has a wait that is not reported.
        self.waits.as_ref().map_or(Ok(()), Waits::report_all)?;
        self.guards.as_ref().map_or(Ok(()), |guards| guards.spare(function))
    }

    /// Restores the frames that are open when all return probes are gone. Returns the number of
    /// those that could not be.
    pub(crate) fn restore_open_frames(&self) -> usize {
        self.guards.as_ref().map_or(0, ReturnGuards::sweep)
    }

    /// Adds indirect jumps for exit sites. Returns the first one's index; the others follow.
    pub fn add_jumps(&self, jumps: &[JumpTarget]) -> Result<u16, BpfError> {
        self.jumps.lock().unwrap_or_else(PoisonError::into_inner).add(jumps)
    }

    /// Adds the values that points read. Returns the first one's index; the others follow.
    pub fn add_values(&self, values: &[ValueSources]) -> Result<u16, BpfError> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).add(values)
    }

    /// Adds the values of a function, at its entry and at its exit, and its condition, unless they
    /// are known.
    pub fn add_call_values(
        &self,
        function: FuncId,
        sources: &CallSources,
    ) -> Result<CallElements, BpfError> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).add_call(function, sources)
    }

    /// Returns how many calls have not met the conditions of their functions.
    pub fn unmet(&self) -> Result<Vec<Unmet>, BpfError> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).unmet()
    }

    /// Returns the values of a function, if it has any.
    pub(crate) fn call_values(&self, function: FuncId) -> Option<CallElements> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).of(function)
    }

    /// Enters the marker buffers that a thread had before its probes were in place. `inside` is its
    /// id in its own pid namespace.
    pub(crate) fn set_marker_buffers(
        &self,
        tid: Tid,
        inside: u32,
        addresses: &[u64],
    ) -> Result<(), BpfError> {
        self.buffers.set(tid, inside, addresses)
    }

    /// Returns marker buffers with batches dropped since the last call, and the number of events up
    /// to the last of them.
    pub(crate) fn take_cut_off(&self, most: usize) -> Result<Vec<(BufferId, u64)>, BpfError> {
        self.buffers.take_cut_off(most)
    }

    /// Puts probes on the file that `path` opens, all or none. `path` may lead through /proc
    /// (`/proc/PID/exe`, `/proc/PID/map_files/...`): the inode counts. With `pid`, only that
    /// process is probed. When following children, and on Linux 6.6 to 6.9, all processes that map
    /// the file are, and only those named by [`Self::trace_process`] count.
    pub fn attach(
        &self,
        path: &Path,
        pid: Option<Pid>,
        role: Role,
        sites: &[Site],
        choice: LinkChoice,
        force: bool,
    ) -> Result<Attachment, BpfError> {
        self.waits.as_ref().map_or(Ok(()), |waits| waits.prepare(role))?;
        let everywhere = self.filters_in_programs || role.guards();
        let pid = pid.map(|pid| pid.0).filter(|_| !everywhere);
        let request = LinkRequest { path, pid, role, sites, force };
        let attached =
            link::attach(&self.keeper, &self.programs, &self.known_links, &request, choice);
        drop(self.ahead.lock().unwrap_or_else(PoisonError::into_inner).take());
        attached
    }

    /// Returns a watch on the guard's death, with which all probes go.
    pub(crate) fn guard_death(&self) -> GuardDeath {
        match &self.keeper {
            Keeper::Guard(guard) => guard.death(),
            Keeper::Itself => GuardDeath::never(),
        }
    }

    /// Returns the number of rings: one for each online CPU.
    pub(crate) fn ring_count(&self) -> usize {
        self.layout.rings
    }

    /// Returns the rings' reading end. There is only one.
    pub fn rings(&self) -> Result<Rings, BpfError> {
        let map = self.rings.lock().unwrap_or_else(PoisonError::into_inner).take();
        Rings::map(&*map.ok_or(BpfError::RingsTaken)?, self.layout)
    }

    /// Returns the wake-ups for the reader of the rings. There is only one.
    pub(crate) fn news(&mut self) -> Result<News, BpfError> {
        News::take(&mut self.maps)
    }

    pub fn lost(&self) -> LostCounter {
        self.lost.clone()
    }

    /// Returns the programs' own messages. There is only one reader.
    pub fn diagnostics(&mut self) -> Result<Diagnostics, BpfError> {
        let program = self.programs.get(BpfProgram::Exit, AttachType::Any)?;
        Diagnostics::new(&mut self.maps, program.as_fd())
    }
}

/// The link types that the kernel knows, each tested on first use.
#[derive(Default)]
struct KnownLinks {
    session: OnceLock<bool>,
    multi: OnceLock<bool>,
    perf: OnceLock<bool>,
}

impl link::Support for KnownLinks {
    fn has(&self, kind: LinkKind) -> bool {
        let known = match kind {
            LinkKind::Session => &self.session,
            LinkKind::Multi => &self.multi,
            LinkKind::Perf => &self.perf,
        };
        *known.get_or_init(|| features::knows(kind))
    }
}
