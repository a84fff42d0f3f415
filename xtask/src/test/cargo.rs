//! Runs the tests that trace nothing: unit tests, integration tests and documentation tests.

use super::programs::{self, Way, judge};
use super::{Options, live};
use crate::summary::{Counts, Outcome};
use crate::{paths, progress};
use anyhow::Result;

pub(super) fn unit_tests(_: &Options) -> Result<(Outcome, Counts)> {
    let mut chosen = programs::build()?;
    chosen.retain(|program| !live::is_live(program));
    // While one program waits, the other works.
    programs::run("unit tests", &chosen, Way { at_once: 2, ..Way::default() })
}

pub(super) fn examples_in_documentation(_: &Options) -> Result<(Outcome, Counts)> {
    let mut command = paths::cargo();
    command.args(["test", "--locked", "--workspace", "--doc", "--no-fail-fast"]);
    let stage = "examples in documentation";
    let done = progress::run(stage, &mut command)?;
    Ok(judge(stage, &done))
}
