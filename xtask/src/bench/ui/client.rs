//! Asks the server of the timeline as a browser does: over one connection that stays open.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub(super) struct Client {
    connection: BufReader<TcpStream>,
    host: String,
    path: String,
}

/// An answer, and how long it took.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) ms: f64,
}

impl Client {
    /// Connects to an address as `ctrace ui` prints it.
    pub(super) fn new(url: &str) -> Result<Self> {
        let rest = url.strip_prefix("http://").context("an address")?;
        let (host, path) = rest.split_once('/').context("an address with a path")?;
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(600)))?;
        let connection = BufReader::with_capacity(1 << 16, stream);
        Ok(Self { connection, host: host.to_owned(), path: path.to_owned() })
    }

    pub(super) fn get(&mut self, what: &str) -> Result<Answer> {
        let begin = Instant::now();
        let Self { host, path, .. } = self;
        let request = format!("GET /{path}{what} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        self.connection.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.connection.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.with_context(|| format!("a status: {line:?}"))?;
        let mut length = 0;
        loop {
            line.clear();
            self.connection.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.connection.read_exact(&mut body)?;
        Ok(Answer { status, body, ms: begin.elapsed().as_secs_f64() * 1e3 })
    }

    /// Returns an answer that must be one.
    pub(super) fn must(&mut self, what: &str) -> Result<Answer> {
        let answer = self.get(what)?;
        let said = || String::from_utf8_lossy(&answer.body).into_owned();
        ensure!(answer.status == 200, "{what}: {} {}", answer.status, said());
        Ok(answer)
    }

    /// Asks until all calls were read.
    pub(super) fn about(&mut self) -> Result<Value> {
        loop {
            let answer = self.get("api/about")?;
            match answer.status {
                503 => std::thread::sleep(Duration::from_millis(2)),
                _ => {
                    let said = || String::from_utf8_lossy(&answer.body).into_owned();
                    ensure!(answer.status == 200, "api/about: {}", said());
                    return Ok(serde_json::from_slice(&answer.body)?);
                }
            }
        }
    }
}
