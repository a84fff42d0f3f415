//! Markers of a session: their runtimes' sites, buffers that were there before, and the switches.
//!
//! Order matters. First the sites where events come out, then a look at what is in the buffers
//! already, and last the semaphores of the chosen scopes: from then on all events are ours.

use super::Tracer;
use crate::{
    bpf::{self, BpfError, Role, Site},
    session::{
        arm::attach_some,
        buffers::OwnedBuffer,
        markers::{MarkerPlan, chosen, switches},
        memory::{Memory, walk},
        plan::{Identity, ObjectPlan, identity},
    },
    target::{bias::CodeSegments, maps::MappedObject, process::Process},
};
use ctrace_common::Cookie;
use ctrace_core::{
    marker::{BufferId, MarkerObject, MarkerRuntime, ObjectId},
    units::{FuncId, Pid, Tid},
};
use std::collections::HashMap;

/// An object with scopes or a runtime that is armed.
pub(super) struct ArmedMarkers {
    object: ObjectId,
    identity: Identity,
    code: CodeSegments,
    /// Addresses of the words that lead to the first buffers, as the object's headers count.
    lists: Vec<u64>,
}

impl Tracer {
    /// Makes the places known where events of an object's scopes come out. `first` is the id of the
    /// object's first function.
    pub(super) fn attach_runtimes(
        &mut self,
        object: &ObjectPlan,
        first: usize,
    ) -> Result<(), BpfError> {
        let MarkerPlan { runtimes, code, sites } = &object.markers;
        let parts = &mut self.parts;
        let markers = parts.engine.markers();
        let id = |index| FuncId((first + index) as u32);
        let functions = chosen(sites.clone(), &object.functions, id);
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
        for (role, sites) in [(Role::Flush, &flushes), (Role::Register, &registers)] {
            let (path, links) = (&object.open_path, parts.links);
            attach_some(&parts.kernel, path, role, sites, links, &mut self.attachments)?;
        }
        self.markers.push(ArmedMarkers {
            object: known,
            identity: object.identity,
            code: code.clone(),
            lists: runtimes.iter().map(|runtime| runtime.list).collect(),
        });
        Ok(())
    }

    /// Raises the semaphores of the chosen scopes.
    pub(super) fn switch_on(&mut self, object: &ObjectPlan) -> Result<(), BpfError> {
        if self.budget.is_some() {
            return self.switch_groups_on(object);
        }
        let sites = switches(&object.functions);
        let (parts, path) = (&self.parts, &object.open_path);
        attach_some(&parts.kernel, path, Role::Switch, &sites, parts.links, &mut self.attachments)
    }

    /// Where a process has mapped what is armed. Runtimes tell it as well, but not of scopes whose
    /// runtime is in another object.
    pub(super) fn locate_markers(&mut self, pid: Pid, mapped: &[MappedObject]) {
        let now = bpf::now();
        for armed in &self.markers {
            for object in mapped.iter().filter(|object| identity(object) == armed.identity) {
                for bias in armed.code.biases(object) {
                    self.parts.engine.markers().map_object(pid, armed.object, bias, now);
                }
            }
        }
    }

    /// Buffers that a process has already. What is in them is of somebody else's tracing.
    pub(super) fn adopt_buffers(&mut self, pid: Pid, mapped: &[MappedObject]) {
        let lists = self.markers.iter().any(|armed| !armed.lists.is_empty());
        let Some(memory) = lists.then(|| Memory::open(pid)).and_then(Result::ok) else { return };
        let own_ids: HashMap<u32, Tid> = Process::thread_ids_inside(pid.0)
            .into_iter()
            .map(|(inside, tid)| (inside, Tid(tid)))
            .collect();
        let now = bpf::now();
        let mut by_thread: HashMap<(Tid, u32), Vec<u64>> = HashMap::new();
        for armed in &self.markers {
            let objects = mapped.iter().filter(|object| identity(object) == armed.identity);
            for bias in objects.flat_map(|object| armed.code.biases(object)) {
                for list in &armed.lists {
                    walk(&memory, list.wrapping_add(bias), |address, bytes, header| {
                        let id = BufferId { pid, address };
                        if !self.adopted_before.insert(id) {
                            return;
                        }
                        self.parts.engine.markers().adopt(id, &bytes, now);
                        if let Some(&tid) = own_ids.get(&header.tid) {
                            by_thread.entry((tid, header.tid)).or_default().push(address);
                            // The reader ends with the session, and then nobody needs it.
                            let owned = OwnedBuffer { id, tid, inside: header.tid };
                            let _ = self.adopt.send(owned);
                        }
                    });
                }
            }
        }
        for ((tid, inside), addresses) in by_thread {
            if let Err(error) = self.parts.kernel.set_marker_buffers(tid, inside, &addresses) {
                tracing::warn!("thread {}: {error}", tid.0);
            }
        }
    }
}
