//! Builds and tests `ctrace-store`, which has a workspace of its own.

use super::programs::judge;
use super::{Options, PASSED};
use crate::summary::{Counts, Outcome};
use crate::{progress, store};
use anyhow::Result;

/// Other stages need the program, so it is built first.
pub(super) fn build_and_test(_: &Options) -> Result<(Outcome, Counts)> {
    store::build_for_tests()?;
    let stage = "uploads to stores";
    Ok(judge(stage, &progress::run(stage, &mut store::cargo("test"))?))
}

pub(super) fn clippy(_: &Options) -> Result<(Outcome, Counts)> {
    let mut command = store::cargo("clippy");
    command.args(["--all-targets", "--", "-D", "warnings"]);
    progress::must("clippy of ctrace-store", &mut command)?;
    Ok(PASSED)
}
