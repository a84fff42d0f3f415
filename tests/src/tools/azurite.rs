//! A server of Azure's blobs that checks signatures: `azurite` of npm, in a folder of the build.

use super::has;
use super::installing::npm;
use crate::look::wait_until;
use crate::process::{Running, run};
use anyhow::{Result, ensure};
use rustix::process::Signal;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const PACKAGE: &str = "azurite@3.37.0";
const CLIENT: &str = include_str!("azurite.mjs");
/// The account that it has, and its key, which everybody knows.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Finds or installs the server. `folder`: that of the build's temporary files.
pub fn find(folder: &Path) -> Result<PathBuf, String> {
    has("node")?;
    npm(folder, "azurite", PACKAGE, "azurite-blob")
}

/// A server, which ends with it.
pub struct Azurite {
    running: Running,
    endpoint: String,
    container: String,
}

impl Azurite {
    /// Starts one that keeps blobs in this folder, with a container.
    pub fn start(program: &Path, folder: &Path, container: &str) -> Result<Azurite> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new("node");
        // What the client speaks may be newer.
        command.arg(program).args(["--silent", "--skipApiVersionCheck", "--disableTelemetry"]);
        command.args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()]);
        let mut running = Running::start(command.arg("--location").arg(folder))?;
        wait_until("the server answers", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok() || !running.is_running()
        })?;
        ensure!(running.is_running(), "the server ended: {}", running.said());
        let endpoint = format!("http://127.0.0.1:{port}");
        let server = Azurite { running, endpoint, container: container.to_owned() };
        server.ask(None)?;
        Ok(server)
    }

    /// Returns the environment of a client with this key, or with the right one.
    pub fn variables(&self, key: Option<&str>) -> Vec<(String, String)> {
        let all = [
            ("AZURITE_BLOB_STORAGE_URL", &*self.endpoint),
            ("AZURE_STORAGE_USE_EMULATOR", "true"),
            ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT),
            ("AZURE_STORAGE_ACCOUNT_KEY", key.unwrap_or(KEY)),
        ];
        all.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }

    /// Puts a blob into a file.
    pub fn read(&self, blob: &str, to: &Path) -> Result<()> {
        self.ask(Some((blob, to)))
    }

    /// Makes the container, or puts a blob into a file.
    fn ask(&self, blob: Option<(&str, &Path)>) -> Result<()> {
        let mut command = Command::new("node");
        command.args(["--input-type=module", "-e", CLIENT, &self.endpoint, ACCOUNT, KEY]);
        command.arg(&self.container);
        if let Some((name, file)) = blob {
            command.arg(name).arg(file);
        }
        let finished = run(&mut command, Duration::from_secs(60))?;
        ensure!(finished.shell_code() == 0, "{}", finished.stderr);
        Ok(())
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        let _ = self.running.signal(Signal::KILL);
    }
}
