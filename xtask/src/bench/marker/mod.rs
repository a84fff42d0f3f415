//! The marker tier: scopes that programs carry, dormant and switched on.

mod arm;
mod burst;
mod cost;
mod peers;
mod rate;
mod site;

pub(super) use arm::run as arm;
pub(super) use burst::run as burst;
pub(super) use cost::run as cost;
pub(super) use peers::run as peers;
pub(super) use rate::run as rate;

use super::{Row, call::value, output, target};
use crate::paths;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The C program with scopes.
fn scopes() -> Result<PathBuf> {
    target::compile("scopes.c")
}

/// A program's times of a call, in nanoseconds: without and with a scope.
#[derive(Clone, Copy, Debug)]
struct Times {
    bare: f64,
    scope: f64,
}

impl Times {
    fn of(printed: &str) -> Result<Times> {
        Ok(Times { bare: value(printed, "bare_ns")?, scope: value(printed, "scope_ns")? })
    }

    /// Returns the cost of the scope.
    fn added(self) -> f64 {
        self.scope - self.bare
    }
}

/// The result of a command run under ctrace.
struct Traced {
    printed: String,
    /// The last report.
    report: Value,
}

impl Traced {
    /// Runs a program with all its scopes on. `options` are ctrace's.
    fn run(program: &Path, arguments: &[&str], options: &[&str]) -> Result<Traced> {
        let file = paths::target().join("bench/markers.json");
        let mut command = Command::new(paths::ctrace());
        command.args(["-v", "run", "-m", "*", "--format", "json", "-o"]).arg(&file);
        command.args(options).arg("--").arg(program).args(arguments);
        let printed = output("trace markers", &mut command)?;
        let text = std::fs::read_to_string(&file)?;
        let report = match serde_json::from_str(&text) {
            Ok(report) => report,
            // With an interval there is one report on each line.
            Err(_) => serde_json::from_str(text.lines().last().context("no report")?)?,
        };
        Ok(Traced { printed, report })
    }

    fn lost(&self) -> Result<u64> {
        self.report["loss"]["events"].as_u64().context("loss.events")
    }

    /// Returns the calls of all scopes, and how many of them have a duration.
    fn calls(&self) -> Result<(u64, u64)> {
        let scopes = self.report["functions"].as_array().context("functions")?;
        let sum = |field: &str| scopes.iter().filter_map(|scope| scope[field].as_u64()).sum();
        Ok((sum("calls"), sum("timed")))
    }
}
