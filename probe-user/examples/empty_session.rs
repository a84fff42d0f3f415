//! The kernel's floor under a traced call: runs a program with session programs that do nothing on
//! one function, at the very place where ctrace would put its probe.
//!
//! Usage: `empty_session FUNCTION -- PROGRAM ARGS`, as root. The program's output is its own.

use anyhow::{Context, bail};
use ctrace_common::Cookie;
use ctrace_user::testing::{
    bpf::{Site, attach_nothing},
    program::{Identity, Launched, Planner, Program, Sites, Streams, exit_code},
    target::{Patterns, Returns, Selector, resolve},
};
use std::{ffi::OsString, process::ExitCode};

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // The child that waits for its probes is this program once more, as with ctrace itself.
    if arguments.first().is_some_and(|word| word == "__exec") {
        return Ok(ctrace_user::main());
    }
    let [function, dashes, command @ ..] = arguments.as_slice() else { bail!(USAGE) };
    let (Some(function), Some(program)) = (function.to_str(), command.first()) else {
        bail!(USAGE)
    };
    if dashes != "--" {
        bail!(USAGE);
    }
    let resolved = resolve(program)?;
    let asked = [function.to_owned()];
    let selector = Selector::parse(Patterns { functions: &asked, ..Patterns::default() })?;
    let mut planner = Planner::new(selector, 1, Returns::Auto);
    let plan = planner.plan(&resolved.objects)?;
    let object = plan.objects.first().context("the function cannot be traced")?;
    let Some(Sites::Function(placement)) = object.functions.first().map(|one| &one.sites) else {
        bail!("{function} is no function");
    };
    let site = Site { offset: placement.entry.offset, ref_ctr_offset: 0, cookie: Cookie::plain(0) };
    let mut launched = Launched::waiting(&Program {
        words: command,
        resolved: &resolved,
        user: &Identity::Ours,
        streams: Streams::Ours,
    })?;
    let attachment = attach_nothing(&object.open_path, launched.pid(), &[site])?;
    launched.start()?;
    let status = launched.wait()?;
    attachment.detach()?;
    Ok(ExitCode::from(exit_code(status)))
}

const USAGE: &str = "usage: empty_session FUNCTION -- PROGRAM ARGS";
