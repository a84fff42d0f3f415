//! The JSON parts of a recording: its description and the definitions of ids. Later versions only
//! add keys.

use super::addresses::AddressRecord;
use super::block::{Block, BlockKind};
use crate::function::{FunctionInfo, ProbeCost};
use crate::report::TargetReport;
use crate::units::{FuncId, Nanos, Pid, ThreadId, Tid};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The target, the machine and the settings of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Start {
    /// Version of the ctrace that wrote it.
    pub ctrace: String,
    /// The machine it was recorded on.
    pub host: Host,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC. All times are CLOCK_MONOTONIC.
    pub epoch_offset_ns: i64,
    /// Local time minus UTC.
    pub zone_ns: i64,
    /// The time at which tracing was armed.
    pub start_ns: Nanos,
    /// The program that was traced.
    pub target: TargetReport,
    /// The command line of ctrace.
    pub arguments: Vec<String>,
    /// The name of the target in `ctrace daemon`, which removes only recordings with that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_target: Option<String>,
}

/// The machine that a trace was recorded on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Name of the host.
    pub name: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Machine type as `uname -m` prints it.
    pub machine: String,
    /// Number of CPUs that were online.
    pub cpus: u32,
}

/// Definitions since the last block of names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Names {
    /// Functions by id; ids ascend from 0 over all blocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) functions: Vec<FunctionInfo>,
    /// Threads; the last record of an id counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) threads: Vec<ThreadRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) objects: Vec<ObjectRecord>,
    /// New costs of functions that were defined before, and have got other probes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) costs: Vec<CostRecord>,
    /// Names of addresses that are values of calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) addresses: Vec<AddressRecord>,
}

impl Names {
    /// Splits the definitions into blocks: a program with very many functions needs several.
    pub(crate) fn to_blocks(&self) -> serde_json::Result<Vec<Block>> {
        let Self { functions, threads, objects, costs, addresses } = self;
        let lengths = [functions.len(), threads.len(), objects.len(), costs.len(), addresses.len()];
        let most = lengths.into_iter().max().unwrap_or(0);
        let firsts = (0..most).step_by(IN_A_BLOCK);
        let blocks = firsts.map(|first| {
            let names = Self {
                functions: part(functions, first),
                threads: part(threads, first),
                objects: part(objects, first),
                costs: part(costs, first),
                addresses: part(addresses, first),
            };
            Ok(Block::new(BlockKind::Names, serde_json::to_vec(&names)?))
        });
        blocks.collect()
    }
}

/// The cost of a function's probes from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CostRecord {
    pub(crate) function: FuncId,
    pub(crate) cost: ProbeCost,
}

impl CostRecord {
    pub(super) fn apply(&self, functions: &mut [FunctionInfo]) {
        if let Some(info) = functions.get_mut(self.function.index()) {
            info.probe = Some(self.cost);
        }
    }
}

/// Definitions of each kind in a block, at most: the size of a block is bounded.
const IN_A_BLOCK: usize = 500;

fn part<T: Clone>(names: &[T], first: usize) -> Vec<T> {
    names.iter().skip(first).take(IN_A_BLOCK).cloned().collect()
}

/// A thread of the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// The id used in [`ThreadCalls::thread`](super::ThreadCalls::thread). Unlike the system's id,
    /// it is never reused.
    pub id: ThreadId,
    /// Its process.
    pub pid: Pid,
    /// Its system thread id.
    pub tid: Tid,
    /// The last name it had.
    pub name: Arc<str>,
    /// The name of the program that its process ran, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Arc<str>>,
    /// The control group that its process was in, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Arc<str>>,
    /// For calls of a pair of USDT probes that overlap with other calls of their thread, the id of
    /// that thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<ThreadId>,
    /// The most that it may have worked in its life, once it has ended and if that is known: for how long it had
    /// a processor or waited for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_ns: Option<Nanos>,
}

/// A program or library that contains functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRecord {
    /// The name used in [`FunctionInfo::object`].
    pub name: Arc<str>,
    /// The path of the file.
    pub path: String,
    /// Build id in hexadecimal digits.
    pub build_id: Option<String>,
}

/// The end of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// The time at which tracing ended.
    pub end_ns: Nanos,
    /// The program that was traced, and how it ended.
    pub target: TargetReport,
    /// Remarks for the reader that are not losses.
    pub notes: Vec<String>,
    /// Functions whose probes could never be placed: they have no calls even if they ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unarmed: Vec<FuncId>,
}
