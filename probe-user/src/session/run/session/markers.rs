//! Markers of a session: the sites of their runtimes, buffers that existed before, and the
//! switches.
//!
//! Order matters. First come the sites where events come out, then a look at the present contents
//! of the buffers, and last the semaphores of the chosen scopes. From then on all events are ours.

use super::Session;
use crate::{
    bpf::{self, BpfError, Kernel, Role, Site},
    session::{
        collect::{
            buffers::{OwnedBuffer, Unread},
            memory::{Memory, walk},
        },
        plan::{
            Identity, ObjectPlan, identity,
            markers::{MarkerPlan, chosen, switches},
        },
        run::arm::attach_some,
        spec::OnFull,
    },
    target::process::{
        Process,
        bias::CodeSegments,
        maps::MappedObject,
        patience::{self, GivenUp},
    },
};
use ctrace_common::Cookie;
use ctrace_core::{
    engine::Engine,
    marker::{BUFFER_LEN, BufferId, Header, MarkerObject, MarkerRuntime, ObjectId},
    units::{FuncId, Nanos, Pid, Tid},
};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, mpsc},
};

/// An object with scopes or a runtime that is armed.
struct ArmedMarkers {
    object: ObjectId,
    identity: Identity,
    code: CodeSegments,
    /// Addresses of the words that point to the first buffers, in the object's own addresses.
    lists: Vec<u64>,
}

/// The armed marker probes, and the buffers that are known.
pub(super) struct MarkerProbes {
    armed: Vec<ArmedMarkers>,
    adopted_before: HashSet<BufferId>,
    /// Processes whose memory does not answer.
    stuck: HashSet<Pid>,
    /// The time that threads waited until their buffers were read, as of the last look at losses.
    pub(super) waited: Nanos,
    /// The channel to the reader of buffers: our end and the reader's.
    adopt: mpsc::Sender<OwnedBuffer>,
    adopted: Option<mpsc::Receiver<OwnedBuffer>>,
}

impl MarkerProbes {
    pub(super) fn new() -> Self {
        let (adopt, adopted) = mpsc::channel();
        Self {
            armed: Vec::new(),
            adopted_before: HashSet::new(),
            stuck: HashSet::new(),
            waited: Nanos::ZERO,
            adopt,
            adopted: Some(adopted),
        }
    }

    /// Takes the receiving end, for the one reader of buffers.
    pub(super) fn take_adopted(&mut self) -> Option<mpsc::Receiver<OwnedBuffer>> {
        self.adopted.take()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.armed.is_empty()
    }

    /// Tells the engine where a process has mapped armed objects. Runtimes tell it as well, but not
    /// for scopes whose runtime is in another object.
    fn locate(&self, pid: Pid, mapped: &[MappedObject], engine: &mut Engine) {
        let now = bpf::now();
        for armed in &self.armed {
            for object in mapped.iter().filter(|object| identity(object) == armed.identity) {
                for bias in armed.code.biases(object) {
                    engine.markers().map_object(pid, armed.object, bias, now);
                }
            }
        }
    }

    /// Takes over the buffers that a process has already. Their contents belong to an earlier
    /// trace.
    fn adopt_buffers(
        &mut self,
        pid: Pid,
        mapped: &[MappedObject],
        engine: &mut Engine,
        kernel: &Kernel,
    ) -> Result<(), GivenUp> {
        let heads = self.list_heads(mapped);
        if heads.is_empty() {
            return Ok(());
        }
        // Reading memory that is swapped out can exceed the time limit once.
        let heads = Arc::new(heads);
        let lists = || {
            let heads = Arc::clone(&heads);
            patience::within(pid, move || lists_of(pid, &heads))
        };
        let found = lists().or_else(|GivenUp| lists())?;
        let own_ids: HashMap<u32, Tid> = Process::thread_ids_inside(pid.0)
            .into_iter()
            .map(|(inside, tid)| (inside, Tid(tid)))
            .collect();
        let now = bpf::now();
        let mut by_thread: HashMap<(Tid, u32), Vec<u64>> = HashMap::new();
        for (address, bytes, header) in found {
            let id = BufferId { pid, address };
            if !self.adopted_before.insert(id) {
                continue;
            }
            engine.markers().adopt(id, &bytes, now);
            if let Some(&tid) = own_ids.get(&header.tid) {
                by_thread.entry((tid, header.tid)).or_default().push(address);
                // If the reader has ended, so has the session, and nobody needs it.
                let owned = OwnedBuffer { id, tid, inside: header.tid };
                let _ = self.adopt.send(owned);
            }
        }
        for ((tid, inside), addresses) in by_thread {
            if let Err(error) = kernel.set_marker_buffers(tid, inside, &addresses) {
                tracing::warn!("thread {}: {error}", tid.0);
            }
        }
        Ok(())
    }

    /// Returns the addresses of the words that point to the first buffers of a process.
    fn list_heads(&self, mapped: &[MappedObject]) -> Vec<u64> {
        let heads = self.armed.iter().flat_map(|armed| {
            let objects = mapped.iter().filter(|object| identity(object) == armed.identity);
            let biases = objects.flat_map(|object| armed.code.biases(object));
            biases.flat_map(|bias| armed.lists.iter().map(move |list| list.wrapping_add(bias)))
        });
        heads.take(MOST_LISTS).collect()
    }
}

impl Session {
    /// Attaches to the places where events of an object's scopes come out. `first` is the id of the
    /// object's first function.
    pub(super) fn attach_runtimes(
        &mut self,
        object: &ObjectPlan,
        first: usize,
    ) -> Result<(), BpfError> {
        let MarkerPlan { runtimes, code, sites, .. } = &object.markers;
        let markers = self.engine.markers();
        let id = |index| FuncId((first + index) as u32);
        let functions = chosen(&object.markers, &object.functions, id);
        let known = markers.add_object(MarkerObject { section: sites.start, functions });
        let (mut flushes, mut registers) = (Vec::new(), Vec::new());
        for runtime in runtimes {
            let address = |offset| code.address_of(offset).unwrap_or_default();
            let (flush, register) = (runtime.flush.offset, runtime.register.offset);
            let number = markers.add_runtime(MarkerRuntime {
                object: known,
                flush: address(flush),
                register: address(register),
            });
            let cookie = Cookie::plain(number);
            flushes.push(Site { offset: flush, ref_ctr_offset: 0, cookie });
            registers.push(Site { offset: register, ref_ctr_offset: 0, cookie });
        }
        let (path, links) = (&object.open_path, self.arming.links);
        let flush = match links.on_full {
            OnFull::Drop => Role::Flush,
            OnFull::Wait => Role::FlushWaiting,
        };
        for (role, sites) in [(flush, &flushes), (Role::Register, &registers)] {
            attach_some(&self.kernel, path, role, sites, links, &mut self.arming.attachments)?;
        }
        self.markers.armed.push(ArmedMarkers {
            object: known,
            identity: object.identity,
            code: code.clone(),
            lists: runtimes.iter().map(|runtime| runtime.list).collect(),
        });
        Ok(())
    }

    /// Raises the semaphores of the chosen scopes.
    pub(super) fn switch_on(&mut self, object: &ObjectPlan) -> Result<(), BpfError> {
        if self.arming.budget.is_some() {
            return self.switch_groups_on(object);
        }
        let sites = switches(&object.functions, &object.markers.requests);
        let (path, links) = (&object.open_path, self.arming.links);
        attach_some(&self.kernel, path, Role::Switch, &sites, links, &mut self.arming.attachments)
    }

    pub(super) fn locate_markers(&mut self, pid: Pid, mapped: &[MappedObject]) {
        self.markers.locate(pid, mapped, &mut self.engine);
    }

    pub(super) fn adopt_buffers(&mut self, pid: Pid, mapped: &[MappedObject]) {
        let (engine, kernel) = (&mut self.engine, &self.kernel);
        let adopted = self.markers.adopt_buffers(pid, mapped, engine, kernel);
        if let Err(GivenUp) = adopted {
            self.leave_unread(pid, Unread::Stuck);
        }
    }

    /// Notes that a process's marker buffers are not all read, from now on or for a while.
    pub(super) fn leave_unread(&mut self, pid: Pid, why: Unread) {
        let is_new = why != Unread::Stuck || self.markers.stuck.insert(pid);
        if !is_new {
            return;
        }
        self.engine.markers().leave_unread();
        self.note(match why {
            Unread::Stuck => format!(
                "the memory of process {} did not answer within {} s, twice in a row, so its marker \
                 buffers were not looked into until it did: what its threads marked meanwhile came \
                 with full buffers only, and how many events are missing is not known",
                pid.0,
                patience::LIMIT.as_secs(),
            ),
            Unread::TooMany => format!(
                "process {} names more marker buffers than it can have threads: not all of them are \
                 looked into, and how many events are missing is not known",
                pid.0,
            ),
        });
    }
}

/// The limit for copies of a runtime whose buffers are read: a process may map an object as often
/// as it likes.
const MOST_LISTS: usize = 4_096;

type Found = (u64, Box<[u8; BUFFER_LEN]>, Header);

/// Returns the buffers in the lists that begin there.
fn lists_of(pid: Pid, heads: &[u64]) -> Vec<Found> {
    let Ok(memory) = Memory::open(pid) else { return Vec::new() };
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for head in heads {
        walk(&memory, *head, &mut seen, |address, bytes, header| {
            found.push((address, bytes, header));
        });
    }
    found
}
