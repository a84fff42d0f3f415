//! The engines that have queries in `docs/fleet`, from PyPI, in a folder of the build.

use super::{has, python};
use crate::env::workspace;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Finds or makes a Python with packages of PyPI. `folder`: that of the build's temporary files.
fn find(
    folder: &Path,
    name: &'static str,
    packages: &[&str],
    modules: &str,
) -> Result<Engine, String> {
    let python = python::find(folder, packages, modules);
    python.map(|python| Engine { name, python }).map_err(|why| format!("{name}: {why}"))
}
