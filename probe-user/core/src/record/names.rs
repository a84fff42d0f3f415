//! The parts of a recording that are JSON: what it is of, and what ids stand for. Keys are only ever
//! added.

use crate::function::FunctionInfo;
use crate::report::TargetReport;
use crate::units::{Nanos, Pid, ThreadId, Tid};
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
    /// When tracing was armed.
    pub start_ns: Nanos,
    /// The program that was traced.
    pub target: TargetReport,
    /// The command line of ctrace.
    pub arguments: Vec<String>,
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
    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.threads.is_empty() && self.objects.is_empty()
    }
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
}
