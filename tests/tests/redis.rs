//! Traces everything in a real server under load: it always answers, and ends well.

use anyhow::{Context, Result, ensure};
use ctrace_tests::env::{Env, Link, target_dir};
use ctrace_tests::probes::wait_until_armed;
use ctrace_tests::process::{Running, run};
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Finds the server's binary. Debian has the same file in redis-tools under another name. Called by
/// this name it is the server, so no service needs to be installed.
fn server() -> Result<PathBuf, String> {
    let installed = Path::new("/usr/bin/redis-server");
    if installed.exists() {
        return Ok(installed.into());
    }
    let checker = Path::new("/usr/bin/redis-check-rdb");
    if !checker.exists() {
        return Err("redis-tools is not installed: run `cargo xtask setup`".into());
    }
    let link = target_dir().join("test-targets/redis-server");
    std::fs::create_dir_all(target_dir().join("test-targets"))
        .map_err(|error| error.to_string())?;
    match std::os::unix::fs::symlink(checker, &link) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.to_string()),
        _ => Ok(link),
    }
}

fn client(socket: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("redis-cli");
    command.arg("-s").arg(socket).args(arguments);
    Ok(run(&mut command, Duration::from_secs(60))?.stdout)
}

fn wait_for(socket: &Path) -> Result<()> {
    for _ in 0..600 {
        if client(socket, &["ping"])?.trim() == "PONG" {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    anyhow::bail!("redis does not answer within a minute")
}

fn benchmark(socket: &Path) -> Result<()> {
    let mut command = Command::new("redis-benchmark");
    command.arg("-s").arg(socket);
    command.args(["-n", "300", "-c", "10", "-t", "set,get,incr,lpush,lrange_100,mset", "-q"]);
    let finished = run(&mut command, Duration::from_secs(240))?;
    ensure!(finished.shell_code() == 0, "redis-benchmark: {}", finished.stderr);
    ensure!(finished.stdout.contains("requests per second"), "{}", finished.stdout);
    Ok(())
}

fn under_trace(env: &Env) -> Result<()> {
    let server = server().map_err(anyhow::Error::msg)?;
    let dir = tempfile::tempdir()?;
    let socket = dir.path().join("redis.sock");
    let mut command = Command::new(&server);
    command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]);
    command.arg(&socket).arg("--dir").arg(dir.path());
    let mut target = Running::start(&mut command)?;
    wait_for(&socket)?;
    client(&socket, &["set", "kept", "value"])?;
    let started = Trace::attach(env, target.pid())?
        .function("*")
        .args(["--spool", "64MiB"])
        .limit(Duration::from_secs(300))
        .start()?;
    wait_until_armed(target.pid(), &server)?;
    benchmark(&socket)?;
    ensure!(client(&socket, &["get", "kept"])?.trim() == "value", "a value is gone");
    ensure!(target.is_running(), "redis died under trace");
    started.running.signal(Signal::INT)?;
    let traced = started.wait()?.expect_code(0)?;
    let report = traced.report()?;
    report.check_sums()?;
    let process_command = report.function("processCommand").context("processCommand is traced")?;
    ensure!(process_command.calls() >= 1800, "processCommand: {}", process_command.calls());
    benchmark(&socket)?;
    client(&socket, &["shutdown", "nosave"])?;
    let finished = target.wait(Duration::from_secs(30))?;
    ensure!(finished.shell_code() == 0, "redis ended with {}", finished.shell_code());
    Ok(())
}

#[test]
fn everything_selected() {
    let env = or_skip!(gate::live(Link::Session));
    or_skip!(server());
    if let Err(error) = under_trace(&env) {
        panic!("{error:#}");
    }
}
