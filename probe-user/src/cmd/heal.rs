//! `ctrace doctor --heal PID` removes breakpoints that a killed tracer left in a process. The child
//! of ctrace that does it is here, too.

use super::{Failure, print};
use crate::{
    cli::HealArgs,
    heal::{self, Outcome},
};
use ctrace_core::{report::render::clean::clean, units::Pid};
use serde::Serialize;
use std::time::Duration;

/// Time limit for the places of the process. Its user is ready to wait.
const LIMIT: Duration = Duration::from_secs(60);

/// The object that `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    /// True if something is left, or may be.
    remains: bool,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

/// The exit status is 0 when nothing is left.
pub(super) fn asked(pid: u32, json: bool) -> Result<u8, Failure> {
    let outcome = heal::process(Pid(pid), LIMIT, None)?;
    let remains = outcome.remains();
    if json {
        let report = Report { schema: "ctrace.heal.v1", remains, outcome: &outcome };
        print(&serde_json::to_string_pretty(&report)?)?;
    } else {
        let lines: Vec<_> = outcome.lines().iter().map(|line| clean(line).into_owned()).collect();
        print(&lines.join("\n"))?;
    }
    Ok(u8::from(remains))
}

pub(super) fn main(args: &HealArgs) -> Result<u8, Failure> {
    heal::answer(args.pid, Duration::from_secs(args.seconds))?;
    Ok(0)
}
