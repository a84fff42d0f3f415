//! Runs the real Prometheus, which scrapes an address on this machine.

use crate::env::target_dir;
use crate::look::wait_until;
use crate::process::{Running, run};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Time limit of a query.
const LIMIT: Duration = Duration::from_secs(60);

/// The two programs.
#[derive(Clone, Debug)]
pub struct Programs {
    prometheus: PathBuf,
    promtool: PathBuf,
}

impl Programs {
    /// Finds installed ones, or those unpacked by `cargo xtask setup`.
    pub fn find() -> Result<Programs, String> {
        let folders = ["/usr/bin".into(), target_dir().join("peers/prometheus/usr/bin")];
        let found = folders.into_iter().find(|folder| folder.join("promtool").exists());
        let folder = found.ok_or("prometheus is not there: run `cargo xtask setup`")?;
        Ok(Programs { prometheus: folder.join("prometheus"), promtool: folder.join("promtool") })
    }

    /// Returns the complaints of `promtool check metrics`.
    pub fn check(&self, metrics: &Path) -> Result<String> {
        let mut command = Command::new(&self.promtool);
        command.args(["check", "metrics"]).stdin(fs::File::open(metrics)?);
        let output = command.output().context("promtool")?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        ensure!(output.status.success(), "promtool check metrics: {said}");
        Ok(said)
    }
}

/// A running Prometheus in its own folder.
#[derive(Debug)]
pub struct Prometheus {
    programs: Programs,
    address: SocketAddr,
    running: Running,
    _folder: TempDir,
}

/// Returns an unused port.
pub fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

impl Prometheus {
    /// Starts it, scraping once a second. `native` uses the binary format, for exponential
    /// histograms.
    pub fn start(programs: &Programs, target: SocketAddr, native: bool) -> Result<Prometheus> {
        Prometheus::start_for(programs, &[target.to_string()], native)
    }

    /// Starts one that scrapes several addresses.
    pub fn start_for(programs: &Programs, targets: &[String], native: bool) -> Result<Prometheus> {
        let (folder, address) = (tempfile::tempdir()?, free_address()?);
        let config = folder.path().join("prometheus.yml");
        fs::write(
            &config,
            format!(
                "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: ctrace\n    \
                 static_configs: [{{targets: {targets:?}}}]\n"
            ),
        )?;
        let mut command = Command::new(&programs.prometheus);
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        command.arg(format!("--web.listen-address={address}"));
        if native {
            command.arg("--enable-feature=native-histograms");
        }
        let running = Running::start(&mut command)?;
        let programs = programs.clone();
        let prometheus = Prometheus { programs, address, running, _folder: folder };
        wait_until("prometheus answers", || prometheus.query("vector(1)").is_ok())?;
        Ok(prometheus)
    }

    /// Returns the current values of an expression, each with its labels.
    pub fn query(&self, expression: &str) -> Result<Vec<(Value, f64)>> {
        let mut command = Command::new(&self.programs.promtool);
        command.args(["query", "--format=json", "instant"]);
        command.arg(format!("http://{}", self.address)).arg(expression);
        let finished = run(&mut command, LIMIT)?;
        ensure!(finished.shell_code() == 0, "{expression}: {}", finished.stderr);
        let answer: Value = serde_json::from_str(&finished.stdout)?;
        let rows = answer.as_array().context("a vector")?.iter().map(|row| {
            let value = row["value"][1].as_str().and_then(|value| value.parse().ok());
            Ok((row["metric"].clone(), value.with_context(|| row.to_string())?))
        });
        rows.collect()
    }

    /// Returns the value of an expression with a single one.
    pub fn number(&self, expression: &str) -> Result<f64> {
        let rows = self.query(expression)?;
        ensure!(rows.len() == 1, "{expression}: {rows:?}");
        Ok(rows[0].1)
    }

    pub fn end(self) -> Result<()> {
        self.running.signal(rustix::process::Signal::TERM)?;
        self.running.wait(LIMIT)?;
        Ok(())
    }
}
