//! A server of S3 that keeps objects in files: `s3rver` of npm, in a folder of the build. It knows keys by
//! their ids, and does not check signatures.

use super::has;
use super::installing::npm;
use crate::look::{files, wait_until};
use crate::process::Running;
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The bucket that every server has.
pub const BUCKET: &str = "fleet";
/// The id of the key that it knows.
pub const KEY: &str = "S3RVER";
const SECRET: &str = "S3RVER-secret";
const PACKAGE: &str = "s3rver@3.7.1";
/// The end of the names of files that hold objects.
const OBJECT: &str = "._S3rver_object";

/// Finds or installs the server. `folder`: that of the build's temporary files.
pub fn find(folder: &Path) -> Result<PathBuf, String> {
    has("node")?;
    npm(folder, "s3rver", PACKAGE, "s3rver")
}

/// A server, which can be away for a while.
pub struct S3 {
    program: PathBuf,
    /// The place of all objects.
    folder: PathBuf,
    port: u16,
    running: Option<Running>,
}

impl S3 {
    pub fn start(program: &Path, folder: PathBuf) -> Result<S3> {
        std::fs::create_dir_all(&folder)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut server = S3 { program: program.to_owned(), folder, port, running: None };
        server.start_again()?;
        Ok(server)
    }

    pub fn start_again(&mut self) -> Result<()> {
        let mut command = Command::new("node");
        command.arg(&self.program).args(["--silent", "--address", "127.0.0.1", "--port"]);
        command.arg(self.port.to_string()).arg("--directory").arg(&self.folder);
        command.args(["--configure-bucket", BUCKET]);
        let mut running = Running::start(&mut command)?;
        wait_until("the server answers", || {
            TcpStream::connect(("127.0.0.1", self.port)).is_ok() || !running.is_running()
        })?;
        ensure!(running.is_running(), "the server ended: {}", running.said());
        self.running = Some(running);
        Ok(())
    }

    pub fn kill(&mut self) -> Result<()> {
        let running = self.running.take().context("it runs")?;
        running.signal(Signal::KILL)?;
        running.wait(Duration::from_secs(60)).map(drop)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the environment of a client with this key.
    pub fn variables(&self, id: &str) -> Vec<(String, String)> {
        variables(self.port, id)
    }

    /// Returns the objects below a prefix: their names below it, and the files that hold them.
    pub fn objects(&self, prefix: &str) -> Vec<(PathBuf, PathBuf)> {
        let root = self.folder.join(BUCKET).join(prefix);
        let object = |file: PathBuf| {
            let name = file.strip_prefix(&root).ok()?.to_str()?.strip_suffix(OBJECT)?;
            Some((PathBuf::from(name), file.clone()))
        };
        files(&root).into_iter().filter_map(object).collect()
    }

    /// Returns the number of all files that it keeps: also of parts.
    pub fn files(&self) -> usize {
        files(&self.folder).len()
    }
}

/// Returns the environment of a client with this key, for which the server has this port.
pub fn variables(port: u16, id: &str) -> Vec<(String, String)> {
    let endpoint = format!("http://127.0.0.1:{port}");
    let all = [
        ("AWS_ENDPOINT", &*endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", id),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
    ];
    all.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

impl Drop for S3 {
    fn drop(&mut self) {
        // It runs unless a test has killed it.
        let _ = self.kill();
    }
}
