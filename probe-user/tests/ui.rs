//! `ctrace ui` as a user calls it. The answers of its server are tested beside it.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/demo.ctrace");

fn ctrace(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ctrace"));
    // No line is wrapped.
    command.args(arguments).env("COLUMNS", "250").output().unwrap()
}

/// A running `ctrace ui`. It ends with the test.
struct Running {
    child: Child,
    /// The address and the port of the server, and the path of the page.
    address: String,
    path: String,
}

impl Running {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ctrace"));
        let mut child = command.args(["ui", DEMO]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("http://").unwrap();
        let (address, path) = url.split_once('/').unwrap();
        Self { child, address: address.to_owned(), path: format!("/{path}") }
    }

    /// Returns the body of an answer, as soon as all calls were read.
    fn get(&self, name: &str) -> String {
        loop {
            let mut stream = TcpStream::connect(&self.address).unwrap();
            let (path, address) = (&self.path, &self.address);
            write!(stream, "GET {path}{name} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            if !head.starts_with("HTTP/1.1 503 ") {
                assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
                return body.to_owned();
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_range_has_the_numbers_of_report() {
    let running = Running::start();
    assert!(running.address.starts_with("127.0.0.1:"), "{}", running.address);
    for (from, to) in [(0, 617_135_553), (123_456_789, 300_000_001), (12_345_678, 12_345_679)] {
        let time = format!("{from}ns..{to}ns");
        let report = ctrace(&["report", DEMO, "--color", "never", "--time", &time]);
        assert!(report.status.success());
        let page = String::from_utf8(report.stdout).unwrap();
        let shown = running.get(&format!("api/report?from={from}&to={to}"));
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let rows = shown["rows"].as_array().unwrap();
        assert_eq!(page.lines().filter(|line| line.contains("demo.c:")).count(), rows.len());
        for row in rows {
            let of_row = |line: &&str| line.split(' ').next() == row["name"].as_str();
            let mut rest = page.lines().find(of_row).unwrap_or_else(|| panic!("{row}: {page}"));
            // The marks, then the numbers, in this order.
            let cells = row["numbers"].as_array().unwrap().iter();
            for cell in std::iter::once(&row["marks"]).chain(cells) {
                let cell = cell.as_str().unwrap();
                let (_, behind) = rest.split_once(cell).unwrap_or_else(|| panic!("{row}: {page}"));
                rest = behind;
            }
        }
        let remarks = shown["remarks"].as_array().unwrap().iter().filter(|_| !rows.is_empty());
        let below = remarks.chain([&shown["loss"]]);
        for line in below.map(|line| line.as_str().unwrap()) {
            assert!(page.contains(line), "{line}: {page}");
        }
    }
}

#[test]
fn it_ends_on_ctrl_c() {
    let mut running = Running::start();
    running.get("api/about");
    let pid = Pid::from_child(&running.child);
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_is_no_recording_is_refused_in_a_line() {
    let refused = ctrace(&["ui", "/dev/null"]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!((refused.status.code(), message.lines().count()), (Some(125), 1), "{message}");
}
