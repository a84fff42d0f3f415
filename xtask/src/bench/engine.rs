//! Measures decoding, call tree and statistics from memory, on one core, by an example of
//! ctrace-core.

use super::{Row, output};
use crate::paths;
use anyhow::{Context, Result};

pub(super) fn run() -> Result<Vec<Row>> {
    if !paths::root().join("probe-user/core/examples/throughput.rs").exists() {
        return Ok(vec![Row::new("decode, tree and statistics", "no example `throughput` yet")]);
    }
    let mut command = paths::cargo();
    command.args(["run", "--release", "--package", "ctrace-core", "--example", "throughput"]);
    let printed = output("engine", &mut command)?;
    let rate = best(&printed).with_context(|| format!("no rate in: {printed}"))?;
    Ok(vec![
        Row::new("decode, tree and statistics, one core", format!("{rate:.1} M calls/s"))
            .goal("at least 20 M calls/s", rate >= 20.0),
    ])
}

/// The best of the example's lines `round N: … calls, X M calls/s …`.
fn best(printed: &str) -> Option<f64> {
    printed
        .lines()
        .filter(|line| line.starts_with("round "))
        .filter_map(|line| line.split(" M calls/s").next()?.rsplit(' ').next()?.parse().ok())
        .reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_round_counts() {
        let printed =
            "round 1: 5 calls, 20.5 M calls/s (x)\nround 2: 5 calls, 23.1 M calls/s (y)\n";
        assert_eq!(best(printed), Some(23.1));
        assert_eq!(best("nothing"), None);
    }
}
