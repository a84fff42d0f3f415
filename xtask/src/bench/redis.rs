//! Records a real server: all functions of redis under redis-benchmark.

use super::output;
use crate::{machine::which, paths};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The server's binary. Debian ships the very file in redis-tools under another name.
pub(super) fn server() -> Result<Option<PathBuf>> {
    let (Some(checker), Some(_)) = (which("redis-check-rdb"), which("redis-benchmark")) else {
        return Ok(None);
    };
    let dir = paths::target().join("bench");
    std::fs::create_dir_all(&dir)?;
    let link = dir.join("redis-server");
    // It may be an old one.
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(checker, &link)?;
    Ok(Some(link))
}

/// ctrace and the server that it runs. Dropping this ends both.
struct Recorder {
    ctrace: Child,
    socket: PathBuf,
}

impl Recorder {
    fn wait_for_answers(&mut self) -> Result<()> {
        for _ in 0..600 {
            let answer = client(&self.socket).arg("ping").output().context("redis-cli")?;
            if answer.stdout.starts_with(b"PONG") {
                return Ok(());
            }
            if let Some(status) = self.ctrace.try_wait()? {
                bail!("recording redis ended with {status}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        bail!("redis does not answer within a minute")
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Both may have ended already.
        let _ = client(&self.socket).args(["shutdown", "nosave"]).output();
        let _ = self.ctrace.kill();
        let _ = self.ctrace.wait();
    }
}

/// Records the server while it answers a mix of commands.
pub(super) fn record(server: &Path, file: &Path) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let socket = dir.path().join("redis.sock");
    let mut command = Command::new(paths::ctrace());
    command.args(["record", "--force", "-f", "*", "-o"]).arg(file).arg("--").arg(server);
    command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]);
    command.arg(&socket).arg("--dir").arg(dir.path());
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut recorder = Recorder { ctrace: command.spawn()?, socket: socket.clone() };
    recorder.wait_for_answers()?;
    let mut load = Command::new("redis-benchmark");
    load.arg("-s").arg(&socket).args(["-n", "500", "-c", "10", "--csv"]);
    output("redis-benchmark", load.args(["-t", "set,get,incr,lpush,lrange_100,mset"]))?;
    output("end redis", client(&socket).args(["shutdown", "nosave"]))?;
    let status = recorder.ctrace.wait()?;
    ensure!(status.success(), "recording redis ended with {status}");
    Ok(())
}

fn client(socket: &Path) -> Command {
    let mut command = Command::new("redis-cli");
    command.arg("-s").arg(socket);
    command
}
