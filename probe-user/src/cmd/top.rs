//! `ctrace top`: shows a process, a command, or the daemon's processes on a live screen.

use super::{Failure, process, run, spec};
use crate::{
    bpf,
    cli::{ProgramSelectArgs, SelectArgs, TopArgs, ValuesArgs, WhatArgs},
    session::run::{launch::Streams, subject::Subject},
    top::{self, TopColumn},
};
use anyhow::bail;

pub(super) fn main(args: TopArgs) -> Result<u8, Failure> {
    if !args.daemon {
        spec::refuse_locks(&args.what.values)?;
    }
    spec::refuse_wakers(&args.what.probes)?;
    let sort = args.sort.as_deref().map_or(Ok(TopColumn::DEFAULT), str::parse)?;
    top::check()?;
    let user = args.user.user.as_deref();
    if args.daemon {
        run::check_no_user(user)?;
        check_nothing_chosen(&args.what)?;
        top::run_with_daemon(&args.socket, args.interval, sort)?;
        return Ok(0);
    }
    let mut spec = spec::trace(&args.what);
    let subject = if args.command.is_empty() {
        let names = args.by.all_of_user(args.process.as_slice(), user)?;
        bpf::require()?;
        let chosen = process::choose(names, args.user.later, None, &mut spec.probes)?;
        Subject::Processes(Box::new(chosen))
    } else {
        let (resolved, user) = run::resolve("top", &args.command, user)?;
        bpf::require()?;
        let (words, streams) = (args.command, Streams::NoTerminal);
        Subject::Command { words, resolved, user, streams }
    };
    top::run(spec, args.interval, sort, subject)?;
    Ok(0)
}

/// Refuses a selection with `--daemon`: the daemon's targets have their own.
fn check_nothing_chosen(what: &WhatArgs) -> anyhow::Result<()> {
    let SelectArgs { functions, usdt, markers, exclude } = &what.select;
    let ValuesArgs { arguments, results, conditions, locks } = &what.values;
    if what.program != ProgramSelectArgs::default()
        || [functions, usdt, markers, exclude].iter().any(|list| !list.is_empty())
        || [arguments, results, conditions].iter().any(|list| !list.is_empty())
        || *locks
    {
        bail!(
            "--daemon shows what the daemon has chosen: leave out -f, -u, -m, -x, --pair, --no-pairs, --provider, \
             --with-callees, --with-callers, --arg, --ret, --where and --locks, or give a process instead of --daemon"
        );
    }
    Ok(())
}
