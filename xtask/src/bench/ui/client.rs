//! Asks the server of the timeline as a browser does: it answers one request a connection.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// An address as `ctrace ui` prints it.
pub(super) struct Client<'a> {
    host: &'a str,
    path: &'a str,
}

/// An answer, and how long it took with its connection.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) ms: f64,
}

impl<'a> Client<'a> {
    pub(super) fn new(url: &'a str) -> Result<Self> {
        let rest = url.strip_prefix("http://").context("ctrace ui has printed no address")?;
        let (host, path) = rest.split_once('/').context("an address with a path")?;
        Ok(Self { host, path })
    }

    pub(super) fn get(&self, what: &str) -> Result<Answer> {
        let begin = Instant::now();
        let Self { host, path } = self;
        let mut stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(600)))?;
        write!(stream, "GET /{path}{what} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        let ms = begin.elapsed().as_secs_f64() * 1e3;
        let head = bytes.windows(4).position(|at| at == b"\r\n\r\n").context("an answer")?;
        let body = bytes.split_off(head + 4);
        let first = String::from_utf8_lossy(&bytes);
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        Ok(Answer { status: status.context("a status")?, body, ms })
    }

    /// Returns an answer that must be one.
    pub(super) fn must(&self, what: &str) -> Result<Answer> {
        let answer = self.get(what)?;
        let said = || String::from_utf8_lossy(&answer.body).into_owned();
        ensure!(answer.status == 200, "{what}: {} {}", answer.status, said());
        Ok(answer)
    }

    /// Asks until all calls were read, also for what is estimated meanwhile.
    pub(super) fn read(&self) -> Result<Value> {
        loop {
            let about = self.about()?;
            if about["reading"].is_null() {
                return Ok(about);
            }
            // Each answer describes all functions.
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks until there is something to show.
    pub(super) fn about(&self) -> Result<Value> {
        while self.get("api/about")?.status == 503 {
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(serde_json::from_slice(&self.must("api/about")?.body)?)
    }
}
