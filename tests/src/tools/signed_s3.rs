//! A server of S3 that checks signatures: `moto` of PyPI. It keeps objects in its memory.

use super::python;
use crate::process::Running;
use anyhow::{Context, Result};
use rustix::process::Signal;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

const SERVER: &str = include_str!("signed_s3.py");

/// Finds or makes a Python that has the server.
pub fn find(folder: &Path) -> Result<PathBuf, String> {
    python::find(folder, &["moto[server,s3,iam]==5.2.5"], "moto.server, boto3")
}

/// A server, which ends with it.
pub struct SignedS3 {
    running: Running,
    /// The environment of its one user, who may do everything.
    pub variables: Vec<(String, String)>,
}

impl SignedS3 {
    pub fn start(python: &Path, bucket: &str) -> Result<SignedS3> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
        let mut command = Command::new(python);
        command.args(["-c", SERVER, &port, bucket]);
        let (running, _input, output) = Running::start_piped(&mut command)?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let (id, secret) = line.trim().split_once(' ').with_context(|| running.said())?;
        let endpoint = format!("http://127.0.0.1:{port}");
        let all = [
            ("AWS_ENDPOINT", &*endpoint),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", id),
            ("AWS_SECRET_ACCESS_KEY", secret),
        ];
        let variables = all.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Ok(SignedS3 { running, variables })
    }
}

impl Drop for SignedS3 {
    fn drop(&mut self) {
        let _ = self.running.signal(Signal::KILL);
    }
}
