//! Decode, call tree and statistics from memory, on one core: an example of ctrace-core.

use super::{Row, call, output};
use crate::paths;
use anyhow::Result;

pub(super) fn run() -> Result<Vec<Row>> {
    if !paths::root().join("probe-user/core/examples/throughput.rs").exists() {
        return Ok(vec![Row::new("decode, tree and statistics", "no example `throughput` yet")]);
    }
    let mut command = paths::cargo();
    command.args(["run", "--release", "--package", "ctrace-core", "--example", "throughput"]);
    let printed = output("engine", &mut command)?;
    let rate = call::value(&printed, "calls_per_second")?;
    Ok(vec![
        Row::new("decode, tree and statistics, one core", format!("{:.1} M calls/s", rate / 1e6))
            .goal("at least 20 M calls/s", rate >= 20e6),
    ])
}
