//! What a running daemon is asked at its control socket: the processes it traces, and what it has of
//! one of them in its interval so far.

use crate::{
    daemon::control::{Ask, Whom, client},
    session::live::Snapshot,
};
use anyhow::Context;
use ctrace_core::{report::Report, units::Nanos};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::path::Path;

/// A process that the daemon traces.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Traced {
    pub(super) target: String,
    pub(super) process: Process,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Process {
    pub(super) pid: u32,
    #[serde(default)]
    pub(super) exe: Value,
    #[serde(default)]
    pub(super) since_s: u64,
    #[serde(default)]
    pub(super) state: String,
    #[serde(default)]
    pub(super) last: Last,
}

/// The process's last report.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Last {
    pub(super) calls: u64,
    pub(super) lost: u64,
    pub(super) cost_percent: Option<f64>,
}

#[derive(Deserialize)]
struct Targets {
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    target: String,
    #[serde(default)]
    processes: Vec<Process>,
}

#[derive(Deserialize)]
struct Reports {
    reports: Vec<OfDaemon>,
}

#[derive(Deserialize)]
struct OfDaemon {
    daemon: Facts,
    #[serde(flatten)]
    report: Report,
}

#[derive(Deserialize)]
struct Facts {
    cost_ns: Nanos,
}

/// All processes of all targets.
pub(super) fn processes(socket: &Path) -> anyhow::Result<Vec<Traced>> {
    let Targets { targets } = ask(socket, Ask::Targets)?;
    let of = |Target { target, processes }: Target| {
        processes.into_iter().map(move |process| Traced { target: target.clone(), process })
    };
    Ok(targets.into_iter().flat_map(of).collect())
}

/// The interval so far, and what its probes cost.
pub(super) fn report(socket: &Path, pid: u32) -> anyhow::Result<(Snapshot, Nanos)> {
    let whom = Whom { target: None, pid: Some(pid) };
    let Reports { reports } = ask(socket, Ask::Report { whom, table: false })?;
    let first = reports.into_iter().next();
    let OfDaemon { daemon, report } =
        first.with_context(|| format!("the daemon has no report of process {pid}"))?;
    Ok((Snapshot { report, spent: Vec::new(), cpu: None }, daemon.cost_ns))
}

fn ask<T: DeserializeOwned>(socket: &Path, question: Ask) -> anyhow::Result<T> {
    let (reply, _) = client::ask(socket, question)?;
    serde_json::from_value(Value::Object(reply.what)).context(client::NO_SENSE)
}
