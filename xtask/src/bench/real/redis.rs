//! redis-server answers GET, for 20 clients on a unix socket.

use super::compare::rows;
use super::process::{Server, bounded, tied};
use super::turns::{Load, Rate, Started, Work};
use crate::bench::{Row, output, redis};
use anyhow::{Context, Result};
use std::path::Path;

const REQUESTS: f64 = 150_000.0;

const THREE: &[&str] = &["processCommand", "call", "readQueryFromClient"];

/// The path of a command.
const TWELVE: &[&str] = &[
    "readQueryFromClient",
    "processInputBuffer",
    "processMultibulkBuffer",
    "processCommand",
    "ACLCheckAllPerm",
    "call",
    "getCommand",
    "lookupKey",
    "addReplyBulk",
    "slowlogPushEntryIfNeeded",
    "resetClient",
    "writeToClient",
];

pub(in crate::bench) fn run() -> Result<Vec<Row>> {
    let mut all = Vec::new();
    for (name, functions) in
        [("redis GET, 3 functions", THREE), ("redis GET, 12 functions", TWELVE)]
    {
        let Some(program) = redis::server()? else {
            return Ok(vec![Row::new("redis GET", "redis-tools is not installed")]);
        };
        let server = program.clone();
        let start = Box::new(move || start(&server));
        all.extend(rows(&Load {
            name,
            rate: Rate::PerSecond("request"),
            program,
            functions,
            start,
        })?);
    }
    Ok(all)
}

fn start(program: &Path) -> Result<Started> {
    let dir = tempfile::tempdir()?;
    let (socket, log) = (dir.path().join("socket"), dir.path().join("log"));
    let mut command = tied(program);
    command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]);
    command.arg(&socket).arg("--dir").arg(dir.path());
    let mut server = Server::start(&mut command, &log)?;
    server.until_ready(&log, || Ok(socket.exists()))?;
    load(&socket, "set", 1.0)?;
    let pid = server.id();
    let work = move || {
        let _alive = (&dir, &server);
        load(&socket, "get", REQUESTS)
    };
    Ok(Started { pid, work: Box::new(work) })
}

fn load(socket: &Path, command: &str, requests: f64) -> Result<Work> {
    let mut client = bounded(Path::new("redis-benchmark"));
    client.arg("-s").arg(socket).args(["-t", command, "-n", &requests.to_string()]);
    let printed = output("redis-benchmark", client.args(["-c", "20", "--csv"]))?;
    let rate = rate(&printed).with_context(|| format!("no rate in: {printed}"))?;
    Ok(Work { units: requests, seconds: requests / rate, printed })
}

/// Finds the rate in `"GET","74962.52",…`, behind a heading.
fn rate(printed: &str) -> Option<f64> {
    let fields = printed.lines().last()?.split(',').nth(1)?;
    fields.trim_matches('"').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_second_field() {
        let printed = "\"test\",\"rps\",\"avg_latency_ms\"\n\"GET\",\"74962.52\",\"0.139\"\n";
        assert_eq!(rate(printed), Some(74_962.52));
        assert_eq!(rate("Could not connect"), None);
    }
}
