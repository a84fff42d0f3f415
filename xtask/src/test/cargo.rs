//! Runs the tests that trace nothing: unit tests, integration tests and documentation tests.

use super::programs::{self, Way, judge};
use super::{Extent, Options, live};
use crate::summary::{Counts, Outcome};
use crate::{paths, progress};
use anyhow::Result;

/// Test files that compile many programs, look at many of others, or let threads and signals fight for
/// long. The quick run leaves them out.
const SLOW: &[&str] = &["builds", "c_header", "placement", "threads"];

pub(super) fn unit_tests(options: &Options) -> Result<(Outcome, Counts)> {
    let mut chosen = programs::build()?;
    let is_quick = options.extent() == Extent::Quick;
    chosen.retain(|program| {
        let is_left_out = is_quick && SLOW.contains(&program.name.as_str());
        !live::is_live(program) && !is_left_out
    });
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
