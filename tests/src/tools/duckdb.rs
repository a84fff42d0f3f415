//! DuckDB from PyPI, in a folder of the build.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Prints the rows of the queries in a file, each as JSON, below the names of the queries. `-- query: NAME`
/// begins one, and what is before the first is run for its effects.
const QUERIES: &str = "
import duckdb, json, sys
session = duckdb.connect()
session.execute(\"SET VARIABLE fleet = '\" + sys.argv[2] + \"'\")
head, *queries = open(sys.argv[1]).read().split('\\n-- query: ')
session.execute(head)
found = {}
for query in queries:
    name, text = query.split('\\n', 1)
    rows = session.execute(text)
    names = [column[0] for column in rows.description]
    found[name] = [dict(zip(names, row)) for row in rows.fetchall()]
print(json.dumps(found, default=str))
";

/// Returns a Python that has DuckDB, made once, or the reason why there is none. `folder`: that of the
/// build's temporary files.
fn python(folder: &Path) -> Result<&'static Path, String> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let succeeds = |command: &mut Command| command.output().is_ok_and(|it| it.status.success());
    let make = || {
        let folder = folder.join("duckdb");
        let python = folder.join("bin/python");
        let has = || succeeds(Command::new(&python).args(["-c", "import duckdb"]));
        let made = has()
            || succeeds(Command::new("python3").args(["-m", "venv"]).arg(&folder))
                && succeeds(
                    Command::new(&python).args(["-m", "pip", "install", "--quiet", "duckdb"]),
                )
                && has();
        made.then_some(python)
    };
    let found = PYTHON.get_or_init(make).as_deref();
    found.ok_or_else(|| "no python3, or no duckdb from PyPI".to_owned())
}

/// Returns whether DuckDB is there, or can be had.
pub fn is_there(folder: &Path) -> Result<(), String> {
    python(folder).map(drop)
}

/// Runs the queries of a file on the tables of a fleet. Returns the rows of each by its name.
pub fn queries(folder: &Path, file: &Path, tables: &Path) -> Result<serde_json::Value> {
    let python = python(folder).map_err(anyhow::Error::msg)?;
    let output = Command::new(python).args(["-c", QUERIES]).arg(file).arg(tables).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("no JSON")
}
