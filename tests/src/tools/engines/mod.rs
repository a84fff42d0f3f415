//! The engines that have queries in `docs/fleet`, from PyPI, in a folder of the build.

use super::has;
use crate::env::workspace;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

const QUERIES: &str = include_str!("queries.py");

/// An engine, in a Python that has it.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Its name in `queries.py`, and that of its file of queries.
    pub name: &'static str,
    python: PathBuf,
}

impl Engine {
    pub fn duckdb(folder: &Path) -> Result<Engine, String> {
        find(folder, "duckdb", &["duckdb"], "duckdb")
    }

    /// Finds chDB, which is ClickHouse in a library. What it depends on is for data frames.
    pub fn clickhouse(folder: &Path) -> Result<Engine, String> {
        find(folder, "clickhouse", &["--no-deps", "chdb-core"], "chdb.session")
    }

    /// Finds the grammar of Trino, and a translator from its language to DuckDB's: there is no Trino.
    pub fn trino(folder: &Path) -> Result<Engine, String> {
        let packages = ["duckdb", "sqlglot", "trino-query-parser"];
        find(folder, "trino", &packages, "duckdb, sqlglot, trino_query_parser")
    }

    pub fn spark(folder: &Path) -> Result<Engine, String> {
        has("java")?;
        find(folder, "spark", &["pyspark"], "pyspark")
    }

    /// Runs its file of queries on the tables of a fleet. Returns the rows of each query by its name.
    /// `two builds` compares the builds whose ids begin so.
    pub fn queries(&self, tables: &Path, builds: [&str; 2]) -> Result<Value> {
        let file = workspace().join(format!("docs/fleet/{}.sql", self.name));
        let mut command = Command::new(&self.python);
        command.args(["-c", QUERIES, self.name]).arg(file).arg(tables).args(builds);
        let output = command.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).context("no JSON")
    }
}

/// One installs at a time: they share a folder.
static INSTALLING: Mutex<()> = Mutex::new(());

/// Finds or makes a Python with packages of PyPI. `folder`: that of the build's temporary files.
fn find(
    folder: &Path,
    name: &'static str,
    packages: &[&str],
    modules: &str,
) -> Result<Engine, String> {
    let _only = INSTALLING.lock().map_err(|error| error.to_string())?;
    let folder = folder.join("engines");
    let python = folder.join("bin/python");
    let succeeds = |command: &mut Command| command.output().is_ok_and(|it| it.status.success());
    let has = || succeeds(Command::new(&python).args(["-c", &format!("import {modules}")]));
    let install = ["-m", "pip", "install", "--quiet"];
    let is_made =
        || python.exists() || succeeds(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    let made =
        has() || is_made() && succeeds(Command::new(&python).args(install).args(packages)) && has();
    match made {
        true => Ok(Engine { name, python }),
        false => Err(format!("{name}: no python3, or not all of {} from PyPI", packages.join(" "))),
    }
}
