//! Finds files once more whose mappings moved, and places functions once more whose return probes
//! have to go.
//!
//! The object is read again then: a library that forbids return probes rarely comes late, and the
//! ways out of all functions would take memory in every session.

use super::{Identity, ObjectPlan, Plan, Planner, Sites, identity};
use crate::target::{
    object::Object,
    plan::{ExitPlacement, Placement},
    process::{Process, maps::MapsError},
    read::{budget::Budget, regular::open_regular},
};
use anyhow::ensure;
use ctrace_core::units::FuncId;
use std::{
    collections::HashMap,
    fs::File,
    io,
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
};

/// The functions of an object that have return probes.
pub(crate) struct ReturnProbed {
    pub(crate) identity: Identity,
    path: PathBuf,
    /// A path that opened the object when its probes were placed.
    pub(crate) open_path: PathBuf,
    /// The functions by their offset in the file.
    functions: HashMap<u64, FuncId>,
}

impl ReturnProbed {
    /// Returns those of an object; `first` is the id of its first function.
    pub(crate) fn of(object: &ObjectPlan, first: usize) -> Option<Self> {
        let functions = object.functions.iter().zip(first..).filter_map(|(planned, id)| {
            let Sites::Function(placement) = &planned.sites else { return None };
            let Placement { entry, exit, .. } = placement;
            let (ExitPlacement::ReturnProbe | ExitPlacement::Guarded(_)) = exit else {
                return None;
            };
            Some((entry.offset - u64::from(entry.skipped), FuncId(id as u32)))
        });
        let functions: HashMap<_, _> = functions.collect();
        (!functions.is_empty()).then(|| Self {
            identity: object.identity,
            path: object.path.clone(),
            open_path: object.open_path.clone(),
            functions,
        })
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = FuncId> {
        self.functions.values().copied()
    }
}

impl Plan {
    /// Finds paths for the files whose mappings have changed since they were read: the target's
    /// loader may have been at work. Probes of a file that is not mapped any more are left out.
    pub(crate) fn find_again(&mut self, process: &Process) -> Result<(), MapsError> {
        let is_there = |path: &Path| path.exists();
        let objects = self.objects.iter().map(|object| &object.open_path);
        if objects.chain(self.guards.iter().map(|it| &it.open_path)).all(|path| is_there(path)) {
            return Ok(());
        }
        let mapped = process.objects()?;
        let find = |of: Identity, path: &mut PathBuf| {
            let found = mapped.iter().find(|mapped| identity(mapped) == of);
            let found = found.filter(|_| !is_there(path));
            found.inspect(|found| path.clone_from(&found.open_path));
            is_there(path)
        };
        self.objects.retain_mut(|object| find(object.identity, &mut object.open_path));
        self.guards.retain_mut(|guards| find(guards.identity, &mut guards.open_path));
        Ok(())
    }

    /// Opens the files and gives them paths that lead to them as long as these are kept, also when the
    /// process has ended.
    pub(crate) fn hold(&mut self) -> io::Result<Vec<File>> {
        let objects = self.objects.iter_mut().map(|object| &mut object.open_path);
        let guards = self.guards.iter_mut().map(|guards| &mut guards.open_path);
        let hold = |path: &mut PathBuf| -> io::Result<File> {
            let file = open_regular(path)?.ok_or(io::ErrorKind::NotFound)?;
            *path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into();
            Ok(file)
        };
        objects.chain(guards).map(hold).collect()
    }
}

impl Planner {
    /// Places the probes of these functions by the rules that hold by now. `open_path` opens their
    /// object.
    pub(crate) fn place_again(
        &mut self,
        probed: &ReturnProbed,
        open_path: &Path,
        reads_arguments: impl Fn(FuncId) -> bool,
    ) -> anyhow::Result<Vec<(FuncId, Placement)>> {
        let budget = Budget::new(self.objects);
        let object = Object::open_within(&probed.path, open_path, budget)?;
        ensure!(
            object.identity() == probed.identity,
            "{} is another file by now",
            probed.path.display()
        );
        let placer = self.placer(&object)?;
        let placed = object.functions().iter().filter_map(|function| {
            let id = probed.functions.get(&function.file_offset)?;
            Some((*id, placer.place(function, reads_arguments(*id)).ok()?))
        });
        let mut placed: Vec<_> = placed.collect();
        placed.iter_mut().for_each(|(_, placement)| _ = self.jumps.fit(placement));
        Ok(placed)
    }
}
