//! The client's end of the socket.

use super::{Ask, Reply, RequestLine, VERSION, Whom};
use anyhow::{Context, bail};
use ctrace_core::report::render::clean::clean;
use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

/// Time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Limit of an answer in bytes; reports of ten thousand functions have some megabytes.
const LONGEST: u64 = 256 << 20;
/// The error for a malformed answer.
pub(crate) const NO_SENSE: &str = "the daemon's answer makes no sense";

/// Asks once. Also returns the raw line.
pub(crate) fn ask(socket: &Path, ask: Ask) -> anyhow::Result<(Reply, String)> {
    let mut stream = UnixStream::connect(socket).map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => "root may ask, and the members of `group` in [daemon]",
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                "no daemon listens there; `ctrace daemon` starts one, --socket names another place"
            }
            _ => "--socket names another place",
        };
        anyhow::anyhow!("cannot ask the daemon at {}: {error}; {remedy}", socket.display())
    })?;
    stream.set_read_timeout(patience(&ask))?;
    let line = serde_json::to_string(&RequestLine { v: VERSION, ask })?;
    // A refused client may fail to write, but still gets an answer.
    let written = stream.write_all(line.as_bytes()).and_then(|()| stream.write_all(b"\n"));
    let mut line = String::new();
    let mut reader = BufReader::new(stream.take(LONGEST));
    let read = reader.read_line(&mut line);
    written.or_else(|error| if line.is_empty() { Err(error) } else { Ok(()) })?;
    read.context("the daemon does not answer")?;
    if line.is_empty() {
        bail!("the daemon went away without an answer; its log tells why");
    }
    let reply: Reply = serde_json::from_str(&line).context(NO_SENSE)?;
    if let Some(error) = &reply.error {
        bail!("{}", clean(error));
    }
    Ok((reply, line))
}

/// Returns the time limit. Recordings, probes and reports of many processes take long.
fn patience(ask: &Ask) -> Option<Duration> {
    match ask {
        Ask::Record { .. }
        | Ask::Attach { .. }
        | Ask::Detach { .. }
        | Ask::Report { whom: Whom { pid: None, .. }, .. } => None,
        _ => Some(PATIENCE),
    }
}
