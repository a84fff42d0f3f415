//! Opens a page in Chromium, in real time, and waits for what the script in it reports.
//!
//! The page leaves for an address of this process, with its report behind the question mark: no policy of a
//! page forbids that.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const FLAGS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--disable-features=SpareRendererForSitePerProcess",
    // WebGL without a graphics processor.
    "--enable-unsafe-swiftshader",
    // The page has 1920×1080 of it.
    "--window-size=1920,1223",
];
/// The time in which a browser has a process for the page.
const STARTS: Duration = Duration::from_secs(20);

/// What a page reported, or why it did not.
pub(crate) enum Seen {
    /// The report, and the browser's memory in MiB at its time.
    Report(Value, u64),
    Failed(String),
}

/// The place that pages report to.
pub(crate) struct Reports(TcpListener);

impl Reports {
    pub(crate) fn listen() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        Ok(Self(listener))
    }

    /// Returns a script with `reportSeen(look)`, which leaves the page for here with what `look` saw.
    pub(crate) fn script(&self) -> Result<String> {
        let address = self.0.local_addr()?;
        Ok(format!("const REPORT = 'http://{address}/seen?';\n{}", include_str!("report.js")))
    }

    /// Opens a page and waits for its report.
    pub(crate) fn of(&self, url: &str, limit: Duration) -> Result<Seen> {
        let browser = Browser::open(url)?;
        let begin = Instant::now();
        while begin.elapsed() < limit {
            if let Ok((connection, _)) = self.0.accept()
                && let Some(report) = report(connection)
            {
                let report: Value = serde_json::from_str(&report).context("a report")?;
                return Ok(match report["error"].as_str() {
                    Some(error) => Seen::Failed(error.to_owned()),
                    None => Seen::Report(report, browser.memory_mib()),
                });
            }
            if begin.elapsed() > STARTS && !browser.has_page() {
                return Ok(Seen::Failed("the process of the page has ended".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(Seen::Failed(format!("nothing after {} s", limit.as_secs())))
    }
}

/// Reads the request of a page that leaves with its report.
fn report(mut connection: TcpStream) -> Option<String> {
    connection.set_nonblocking(false).ok()?;
    // Browsers also connect without asking for anything.
    connection.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    let mut line = String::new();
    BufReader::new(&connection).read_line(&mut line).ok()?;
    connection
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .ok()?;
    decoded(line.strip_prefix("GET /seen?")?.split(' ').next()?)
}

/// Decodes what `encodeURIComponent` makes.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// A browser with a profile of its own. Both end with this.
struct Browser {
    child: Child,
    _profile: tempfile::TempDir,
}

impl Browser {
    fn open(url: &str) -> Result<Self> {
        let profile = tempfile::tempdir()?;
        let mut command = Command::new("chromium");
        command.args(FLAGS).arg(format!("--user-data-dir={}", profile.path().display()));
        let child = command.arg(url).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        match child {
            Ok(child) => Ok(Self { child, _profile: profile }),
            Err(error) => bail!("cannot run chromium: {error}"),
        }
    }

    /// Returns the ids of its processes.
    fn processes(&self) -> Vec<u32> {
        let mut all = vec![self.child.id()];
        let mut next = 0;
        while let Some(id) = all.get(next) {
            next += 1;
            let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten();
            let lists: Vec<PathBuf> =
                tasks.flatten().map(|task| task.path().join("children")).collect();
            for list in lists {
                let text = std::fs::read_to_string(list).unwrap_or_default();
                all.extend(text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
            }
        }
        all
    }

    fn has_page(&self) -> bool {
        self.processes().iter().any(|id| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("--type=renderer")
        })
    }

    /// Returns its memory, shared pages counted once.
    fn memory_mib(&self) -> u64 {
        let of = |id: &u32| {
            let text = std::fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        };
        self.processes().iter().filter_map(of).sum::<u64>() >> 10
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its other processes end with the first.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_decoded() {
        assert_eq!(decoded("%7B%22a%22%3A1%7D"), Some(r#"{"a":1}"#.to_owned()));
        assert_eq!(decoded("a%E2%80%A6b"), Some("a…b".to_owned()));
        assert_eq!((decoded("%7"), decoded("%zz")), (None, None));
    }

    #[test]
    fn a_page_reports_by_leaving() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut page =
            TcpStream::connect(listener.local_addr().expect("a port")).expect("it listens");
        page.write_all(b"GET /seen?%5B1%5D HTTP/1.1\r\n\r\n").expect("it reads");
        let (connection, _) = listener.accept().expect("it has connected");
        assert_eq!(report(connection), Some("[1]".to_owned()));
    }
}
