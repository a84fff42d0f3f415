//! From a selection to probes: what is traced in each object, where, and what had to be refused.

use crate::target::{
    maps::{Identity, MappedObject},
    object::Object,
    place::{self, CodeMap, Policy},
    plan::{ExitPlacement, Placement},
    select::{Item, Selection, Selector},
    usdt::UsdtProbe,
};
use anyhow::Context;
use ctrace_core::function::{ExitSeen, FunctionInfo, FunctionKind};
use std::{path::PathBuf, sync::Arc};

/// What is to be traced.
#[derive(Default)]
pub struct Plan {
    pub objects: Vec<ObjectPlan>,
    pub refused: Vec<Refused>,
}

/// What is to be traced in one file.
pub struct ObjectPlan {
    /// A path that opens the very inode that is mapped.
    pub open_path: PathBuf,
    pub identity: Identity,
    pub functions: Vec<Planned>,
}

/// One function or USDT probe and its sites.
pub struct Planned {
    pub info: FunctionInfo,
    pub sites: Sites,
}

pub enum Sites {
    Function(Placement),
    Usdt(UsdtProbe),
}

/// A selected function that cannot be traced.
pub struct Refused {
    pub name: Arc<str>,
    pub object: Arc<str>,
    pub why: String,
}
