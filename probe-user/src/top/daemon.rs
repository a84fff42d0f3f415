//! What a running daemon is asked at its control socket, a line of JSON each way: the processes it
//! traces, and what it has of one of them in its interval so far.

use crate::session::live::Snapshot;
use anyhow::{Context, bail};
use ctrace_core::{report::Report, units::Nanos};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

/// Of the protocol.
const VERSION: u32 = 1;
/// For an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of an answer; reports of ten thousand functions have some megabytes.
const LONGEST: u64 = 256 << 20;

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
    let Targets { targets } = ask(socket, &json!({ "v": VERSION, "do": "targets" }))?;
    let of = |Target { target, processes }: Target| {
        processes.into_iter().map(move |process| Traced { target: target.clone(), process })
    };
    Ok(targets.into_iter().flat_map(of).collect())
}

/// The interval so far, and what its probes cost.
pub(super) fn report(socket: &Path, pid: u32) -> anyhow::Result<(Snapshot, Nanos)> {
    let Reports { reports } = ask(socket, &json!({ "v": VERSION, "do": "report", "pid": pid }))?;
    let first = reports.into_iter().next();
    let OfDaemon { daemon, report } =
        first.with_context(|| format!("the daemon has no report of process {pid}"))?;
    Ok((Snapshot { report, spent: Vec::new(), cpu: None }, daemon.cost_ns))
}

fn ask<T: DeserializeOwned>(socket: &Path, question: &Value) -> anyhow::Result<T> {
    let mut stream = UnixStream::connect(socket).map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => "root may ask, and who the daemon's configuration names",
            _ => "`ctrace daemon` starts one, --socket names another place",
        };
        anyhow::anyhow!("cannot ask the daemon at {}: {error}; {remedy}", socket.display())
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{question}\n").as_bytes())?;
    let mut line = String::new();
    let mut reader = BufReader::new(stream.take(LONGEST));
    reader.read_line(&mut line).context("the daemon does not answer")?;
    let answer: Value =
        serde_json::from_str(&line).context("the daemon's answer makes no sense")?;
    if let Some(error) = answer.get("error").and_then(Value::as_str) {
        bail!("{}", ctrace_core::export::clean::clean(error));
    }
    serde_json::from_value(answer).context("the daemon's answer makes no sense")
}
