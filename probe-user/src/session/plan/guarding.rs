//! Gathers the guard sites of a process, and the reasons that stand against return probes.
//!
//! Return probes are guarded in a process only if all guard sites of all of its objects are known.
//! Otherwise the rules without guards hold for the whole process.

use super::{Identity, identity};
use crate::target::{
    object::Object,
    place::{CodeMap, Returns, Unguardable, guards, runtime},
    plan::GuardSite,
    process::{later, maps::MappedObject},
    read::budget::{Budget, ObjectLimits},
};
use std::{collections::HashSet, path::PathBuf, sync::Arc};

/// The places to guard in one file.
pub struct ObjectGuards {
    pub identity: Identity,
    /// A path that opens the very inode that is mapped.
    pub open_path: PathBuf,
    /// Its file name.
    pub name: Arc<str>,
    /// Never empty.
    pub sites: Vec<GuardSite>,
}

/// The knowledge about the objects of a process so far.
#[derive(Default)]
pub(super) struct Guarding {
    /// True if guards are wanted and the kernel has them.
    pub(super) is_asked: bool,
    /// Files whose sites have been handed out.
    known: HashSet<Identity>,
    fresh: Vec<ObjectGuards>,
    /// Files of other processes that can be guarded.
    guardable: HashSet<Identity>,
    /// The objects that cannot be guarded, each with the reason.
    unguardable: Vec<String>,
    /// The reason why the process gets no return probes any more, although it is guarded.
    given_up: Option<String>,
    /// An object with an unwinder.
    unwinder: Option<String>,
    /// An object that switches stacks, or has a runtime that reads return addresses itself.
    switch: Option<String>,
}

impl Guarding {
    /// Returns whether the return probes of the process are guarded.
    pub(super) fn guards(&self) -> bool {
        self.is_guarded() && self.given_up.is_none()
    }

    /// Returns whether guards are placed in the process. They still are when it gets no return probes
    /// any more: it may get those of a session that traces another process of the same file.
    fn is_guarded(&self) -> bool {
        self.is_asked && self.unguardable.is_empty()
    }

    pub(super) fn may_unwind(&self) -> bool {
        self.unwinder.is_some()
    }

    pub(super) fn switches_stacks(&self) -> bool {
        self.switch.is_some()
    }

    /// Returns whether return probes are allowed in the process.
    pub(super) fn allows(&self, returns: Returns) -> bool {
        let unwinds = returns != Returns::ReturnProbe && self.may_unwind();
        self.guards() || !self.switches_stacks() && !unwinds
    }

    /// Ends return probes in the process, for a reason that only its run shows. It is told with the
    /// object that switches stacks.
    pub(super) fn give_up(&mut self, why: &str) {
        let known = self.switch.get_or_insert_with(|| why.to_owned());
        let both = if known == why { why.to_owned() } else { format!("{known}, and {why}") };
        self.given_up.get_or_insert(both);
    }

    /// Takes note of an object that cannot be read: its contents are unknown.
    pub(super) fn miss(&mut self, object: &MappedObject) {
        let why = unreadable(object);
        self.switch.get_or_insert_with(|| why.clone());
        self.unguardable.push(why);
    }

    /// Looks at new objects.
    pub(super) fn look(
        &mut self,
        mapped: &[MappedObject],
        objects: &[Object],
        returns: Returns,
        limits: ObjectLimits,
    ) {
        let unwinder = |object: &Object| {
            object.unwinder().map(|name| format!("{} has an unwinder ({name})", object.name()))
        };
        self.unwinder = self.unwinder.take().or_else(|| objects.iter().find_map(unwinder));
        if returns == Returns::RetSites {
            return;
        }
        if self.is_guarded() {
            objects.iter().for_each(|object| self.look_for_guards(object));
            self.look_at_later_files(mapped, limits);
        }
        // Reading all code takes time.
        if !self.guards() && self.allows(returns) {
            let switch = |object: &Object| {
                let why = CodeMap::stack_switch(object.source())?;
                Some(format!("{} {why}", object.name()))
            };
            self.switch = objects.iter().find_map(walks_stacks);
            self.switch = self.switch.take().or_else(|| objects.iter().find_map(switch));
        }
    }

    fn look_for_guards(&mut self, object: &Object) {
        match guards(object) {
            Ok(found) => {
                let switch = found.switch.map(|why| format!("{} {why}", object.name()));
                self.switch = self.switch.take().or(switch);
                self.add(object, found.sites);
            }
            Err(why) => self.unguardable.push(format!("{} {why}", object.name())),
        }
    }

    /// Adds the sites of files that the process will load by itself.
    fn look_at_later_files(&mut self, mapped: &[MappedObject], limits: ObjectLimits) {
        let all = Budget::of_all(limits);
        for file in later::files(mapped) {
            if self.known.contains(&identity(&file)) {
                continue;
            }
            // If it is loaded after all, it is looked at again.
            if let Ok(object) = Object::open_one_of(&file, limits, &all)
                && let Ok(found) = guards(&object)
            {
                self.add(&object, found.sites);
            }
        }
    }

    /// Looks at objects of a process that may be left alone. Returns the reason why the first that
    /// cannot be guarded cannot.
    pub(super) fn first_unguardable(
        &mut self,
        mapped: &[MappedObject],
        limits: ObjectLimits,
    ) -> Option<String> {
        let all = Budget::of_all(limits);
        for one in mapped {
            let file = identity(one);
            if self.known.contains(&file) || self.guardable.contains(&file) {
                continue;
            }
            let Ok(object) = Object::open_one_of(one, limits, &all) else {
                return Some(unreadable(one));
            };
            if let Err(why) = guards(&object) {
                return Some(format!("{} {why}", one.name));
            }
            self.guardable.insert(file);
        }
        None
    }

    fn add(&mut self, object: &Object, sites: Vec<GuardSite>) {
        if !sites.is_empty() && self.known.insert(object.identity()) {
            self.fresh.push(ObjectGuards {
                identity: object.identity(),
                open_path: object.open_path().to_owned(),
                name: Arc::clone(object.name()),
                sites,
            });
        }
    }

    /// Returns the sites found since the last time. There are none where not all are known.
    pub(super) fn take(&mut self) -> Vec<ObjectGuards> {
        let fresh = std::mem::take(&mut self.fresh);
        if self.is_guarded() { fresh } else { Vec::new() }
    }

    /// Returns what stands against guards, where they are asked for.
    pub(super) fn unguarded(&self) -> Vec<String> {
        let all = self.unguardable.iter().chain(&self.given_up).filter(|_| self.is_asked);
        all.cloned().collect()
    }

    /// Returns what stands against return probes, one object for each danger.
    pub(super) fn against(&self, returns: Returns) -> Vec<String> {
        if self.allows(returns) {
            return Vec::new();
        }
        let unwinder = self.unwinder.iter().filter(|_| returns != Returns::ReturnProbe);
        unwinder.chain(&self.switch).cloned().collect()
    }
}

/// Returns the reason if a return probe would harm the object, whatever it does: it walks its own stacks.
fn walks_stacks(object: &Object) -> Option<String> {
    let why = Unguardable::Runtime(runtime(object)?);
    Some(format!("{} {why}", object.name()))
}

fn unreadable(object: &MappedObject) -> String {
    format!("{} cannot be read", object.name)
}

#[cfg(test)]
#[path = "guarding_tests.rs"]
mod tests;
