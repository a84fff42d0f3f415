//! The asker's end of the socket.

use super::{Ask, Line, Reply, VERSION};
use anyhow::{Context, bail};
use std::{
    io::{BufRead, BufReader, ErrorKind, Write},
    os::unix::net::UnixStream,
    path::Path,
};

/// Asks once. The line is as it came.
pub fn ask(socket: &Path, ask: Ask) -> anyhow::Result<(Reply, String)> {
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
    let line = serde_json::to_string(&Line { v: VERSION, ask })?;
    stream.write_all(line.as_bytes()).and_then(|()| stream.write_all(b"\n"))?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).context("the daemon went away")?;
    if line.is_empty() {
        bail!("the daemon went away without an answer; its log tells why");
    }
    let reply: Reply = serde_json::from_str(&line).context("the daemon's answer makes no sense")?;
    if let Some(error) = &reply.error {
        bail!("{error}");
    }
    Ok((reply, line))
}
