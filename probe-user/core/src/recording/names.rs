//! The parts of a recording that are JSON: what it is of, and what ids stand for. Keys are only ever
//! added.

use super::block::{Block, BlockKind};
use crate::function::FunctionInfo;
use crate::report::TargetReport;
use crate::units::{FuncId, Nanos, Pid, ThreadId, Tid};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What was recorded, where and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Start {
    /// Version of the ctrace that wrote it.
    pub ctrace: String,
    /// Where.
    pub host: Host,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, which all times are on.
    pub epoch_offset_ns: i64,
    /// What local time was ahead of UTC.
    pub zone_ns: i64,
    /// When tracing was armed.
    pub start_ns: Nanos,
    /// The program that was traced.
    pub target: TargetReport,
    /// The command line of ctrace.
    pub arguments: Vec<String>,
    /// The target of `ctrace daemon` that it is of; the daemon removes only what has its name here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_target: Option<String>,
}

/// The machine that a trace was recorded on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Of the host.
    pub name: String,
    /// Release of the kernel.
    pub kernel: String,
    /// As `uname -m` has it.
    pub machine: String,
    /// CPUs that were online.
    pub cpus: u32,
}

/// What is new since the last block of names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Names {
    /// In the order of their ids, which ascend from 0 over all blocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) functions: Vec<FunctionInfo>,
    /// The last name of an id counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) threads: Vec<ThreadRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) objects: Vec<ObjectRecord>,
}

impl Names {
    /// As blocks, of which a program with very many functions needs more than one.
    pub(crate) fn to_blocks(&self) -> serde_json::Result<Vec<Block>> {
        let Self { functions, threads, objects } = self;
        let most = functions.len().max(threads.len()).max(objects.len());
        let firsts = (0..most).step_by(IN_A_BLOCK);
        let blocks = firsts.map(|first| {
            let names = Self {
                functions: part(functions, first),
                threads: part(threads, first),
                objects: part(objects, first),
            };
            Ok(Block::new(BlockKind::Names, serde_json::to_vec(&names)?))
        });
        blocks.collect()
    }
}

/// Names of each kind in a block, whose size is bounded.
const IN_A_BLOCK: usize = 1_000;

fn part<T: Clone>(names: &[T], first: usize) -> Vec<T> {
    names.iter().skip(first).take(IN_A_BLOCK).cloned().collect()
}

/// A thread of the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// As in [`ThreadCalls::thread`](super::ThreadCalls::thread): one id of the system may be several threads' in turn.
    pub id: ThreadId,
    /// Its process.
    pub pid: Pid,
    /// Its id in the system.
    pub tid: Tid,
    /// The last one it had.
    pub name: Arc<str>,
}

/// A program or library that functions are of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRecord {
    /// As in [`FunctionInfo::object`].
    pub name: Arc<str>,
    /// Where the file was.
    pub path: String,
    /// In hexadecimal digits.
    pub build_id: Option<String>,
}

/// How a recording ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// When tracing ended.
    pub end_ns: Nanos,
    /// The program that was traced, and how it ended.
    pub target: TargetReport,
    /// Facts for the reader that are no loss.
    pub notes: Vec<String>,
    /// Functions whose probes could never be placed: that they have no calls says nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unarmed: Vec<FuncId>,
}
