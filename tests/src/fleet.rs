//! Tables of a fleet in tests: the program that sends them, and what is in them.

use crate::daemon::Daemon;
use crate::env::Env;
use crate::look::files;
use crate::process::run;
use crate::tools::s3::S3;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// Returns ctrace-store, which the daemon finds beside ctrace.
pub fn sender(env: &Env) -> Result<PathBuf, String> {
    let path = env.ctrace.with_file_name("ctrace-store");
    let why = "it is built by `cargo xtask test --only 'uploads to stores'`";
    if !path.is_file() {
        return Err(format!("no {}: {why}", path.display()));
    }
    match path.ancestors().find(|path| path.metadata().is_ok_and(|facts| facts.uid() != 0)) {
        Some(of_user) => {
            Err(format!("{} is not root's, so the daemon does not start it", of_user.display()))
        }
        None => Ok(path),
    }
}

pub fn ship_once(
    sender: &Path,
    folder: &Path,
    url: &str,
    variables: &[(String, String)],
) -> Command {
    let mut command = Command::new(sender);
    command.arg("ship").arg(folder).args([url, "--once"]);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command
}

/// Returns the number of whole files of tables below a folder.
pub fn parquet(folder: &Path) -> usize {
    files(folder).iter().filter(|file| file.extension().is_some_and(|end| end == "parquet")).count()
}

/// Copies wanted objects of a server into a folder of tables.
pub fn download(
    server: &S3,
    prefix: &str,
    folder: &Path,
    is_wanted: impl Fn(&Path) -> bool,
) -> Result<()> {
    for (name, file) in server.objects(prefix).into_iter().filter(|(name, _)| is_wanted(name)) {
        let to = folder.join(name);
        std::fs::create_dir_all(to.parent().context("a folder")?)?;
        std::fs::copy(file, to)?;
    }
    Ok(())
}

/// Returns the calls of each host in a folder of tables, all of which can be read.
pub fn calls_by_host(env: &Env, tables: &Path) -> Result<BTreeMap<String, u64>> {
    let mut command = Command::new(&env.ctrace);
    command.args(["fleet", "report", "--by", "host", "--format", "json"]).arg(tables);
    let finished = run(&mut command, LIMIT)?;
    ensure!(finished.shell_code() == 0, "{}", finished.stderr);
    let all: Value = serde_json::from_str(&finished.stdout)?;
    ensure!(all["damaged"] == Value::Array(Vec::new()), "{}", all["damaged"]);
    let parts = all["parts"].as_array().context("no parts")?;
    let calls = |part: &Value| {
        let functions = part["report"]["functions"].as_array()?;
        let calls = functions.iter().filter_map(|row| row["calls"].as_u64()).sum();
        Some((part["name"].as_str()?.to_owned(), calls))
    };
    parts.iter().map(|part| calls(part).context("a part without calls")).collect()
}

/// Returns a metric of a daemon that answers here.
pub fn metric(mut stream: impl std::io::Read + Write, name: &str) -> Option<f64> {
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let lines = answer
        .lines()
        .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{'])));
    let numbers: Option<Vec<f64>> =
        lines.map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
    numbers.filter(|numbers| !numbers.is_empty()).map(|numbers| numbers.iter().sum())
}

/// Returns true once the daemon has written that it does so.
pub fn says(daemon: &Daemon, what: &str) -> bool {
    daemon.said().contains(what)
}
