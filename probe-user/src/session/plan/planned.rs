//! The parts of a plan: objects, and what is traced in each.

use super::{Identity, markers::MarkerPlan, pairs::PairSites, values::Point};
use crate::bpf::CallSources;
use crate::target::{markers::MarkerSite, place::Refusal, plan::Placement};
use ctrace_core::function::FunctionInfo;
use std::{ops::Range, path::PathBuf, sync::Arc};

/// The functions to trace in one file.
pub struct ObjectPlan {
    pub identity: Identity,
    /// A path that opens the very inode that is mapped.
    pub open_path: PathBuf,
    /// The path from which the target mapped it.
    pub path: PathBuf,
    /// The build id in hexadecimal digits.
    pub build_id: Option<String>,
    /// Its file name.
    pub name: Arc<str>,
    /// Empty if only its marker runtime is of interest.
    pub functions: Vec<Planned>,
    pub(crate) markers: MarkerPlan,
}

/// One function, USDT probe or marker scope and its sites.
pub struct Planned {
    pub info: FunctionInfo,
    pub sites: Sites,
    /// For a function, the sources of its values, if it has any.
    pub sources: Option<Box<CallSources>>,
    /// For a function, its code as offsets in the file.
    pub(crate) code: Range<u64>,
    /// The functions to which its jumps lead, by place in the plan, if their ends are those of its calls.
    pub(crate) successors: Vec<usize>,
}

impl Planned {
    pub(crate) fn new(info: FunctionInfo, sites: Sites) -> Self {
        Self { info, sites, sources: None, code: 0..0, successors: Vec::new() }
    }

    /// Returns true for a function whose calls are those of goroutines.
    pub(crate) fn is_go(&self) -> bool {
        matches!(&self.sites, Sites::Function(placement) if placement.go.is_some())
    }

    pub(crate) fn is_marker(&self) -> bool {
        matches!(self.sites, Sites::Marker { .. })
    }
}

pub enum Sites {
    Function(Placement),
    Usdt(Vec<Point>),
    Pair(PairSites),
    Marker { sites: Vec<MarkerSite>, is_named_late: bool },
}

/// A selected function that cannot be traced.
pub struct Refused {
    pub name: Arc<str>,
    pub object: Arc<str>,
    pub why: Refusal,
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
