//! What a report tells of the traced program.

use super::ProcessorTimes;
use crate::units::Pid;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The traced program, or the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetReport {
    pub pid: Option<Pid>,
    /// The path of the program's file, without links.
    pub exe: Option<String>,
    /// The name of the program in reports: that of the link that started it, if one leads to `exe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    pub command: Vec<String>,
    pub exit: Option<TargetExit>,
    /// The number of child processes that were not traced.
    pub untraced_children: u64,
    /// How long threads had a processor while traced, and how long they waited for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<ProcessorTimes>,
    /// Functions that a thread was in, as it seems, when tracing began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub already_running: Vec<RunningBefore>,
}

impl TargetReport {
    /// Returns the name of the program, or the path of its file where that is all that is known.
    pub fn name(&self) -> Option<&str> {
        self.program.as_deref().or(self.exe.as_deref())
    }
}

/// A function that seems to have been running when tracing began: that call was not seen to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningBefore {
    pub name: Arc<str>,
    pub object: Arc<str>,
}

/// The way in which the target ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetExit {
    Code(i32),
    Signal(i32),
    /// It ended, but its parent took the status.
    Unknown,
}
