//! Places functions once more whose return probes have to go.
//!
//! The object is read again then: a library that forbids return probes rarely comes late, and the
//! ways out of all functions would take memory in every session.

use super::{Identity, ObjectPlan, Planner, Sites};
use crate::target::{
    budget::Budget,
    object::Object,
    plan::{ExitPlacement, Placement},
};
use anyhow::ensure;
use ctrace_core::units::FuncId;
use std::{
    collections::HashMap,
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

impl Planner {
    /// Places the probes of these functions by the rules that hold by now. `open_path` opens their
    /// object.
    pub(crate) fn place_again(
        &mut self,
        probed: &ReturnProbed,
        open_path: &Path,
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
            Some((*id, placer.place(function).ok()?))
        });
        let mut placed: Vec<_> = placed.collect();
        placed.iter_mut().for_each(|(_, placement)| _ = self.jumps.fit(placement));
        Ok(placed)
    }
}
