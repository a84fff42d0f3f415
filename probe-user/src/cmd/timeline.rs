//! `ctrace ui`: the timeline of a recording, or of a session, in a browser.

use super::{Failure, live_timeline, open::open, print};
use crate::{
    cli::{LensArgs, UiArgs},
    timeline_server::{Options, Server, saved, stopped_by_signals},
    ui,
    user::{self, Account, UserError},
};
use anyhow::anyhow;
use std::path::PathBuf;
use tokio::sync::oneshot;

pub(super) fn main(args: UiArgs) -> Result<u8, Failure> {
    if args.live {
        return live_timeline::main(args);
    }
    if !args.is_of_recording() {
        let why = "options that choose what to trace are for a process or a command: add --live, or \
                   leave them out";
        return Err(anyhow!(why).into());
    }
    // Nothing here needs root.
    let caller = take_rights_of_caller()?;
    let lens = LensArgs { max_calls: args.max_calls, ..LensArgs::default() };
    let files = args.recording();
    let recording = open(&files, &lens)?;
    let names = |files: &[PathBuf]| files.iter().map(|file| file.display().to_string()).collect();
    let home = caller.as_ref().map(|caller| &*caller.home);
    // With a limit on calls, some may not be read.
    let cache = saved::folder(home).filter(|_| !args.no_cache && args.max_calls.is_none());
    let options = Options { cache, ..options(&args, names(&files)) };
    let server = match &args.against[..] {
        [] => Server::start(recording, options)?,
        against => {
            let old = (open(against, &lens)?, names(against));
            Server::compare(recording, old, options)?
        }
    };
    serve(server, stopped_by_signals()?)?;
    Ok(0)
}

/// Takes on the rights of the user who called sudo, and returns that user. Threads that this one starts later have the
/// same rights.
pub(super) fn take_rights_of_caller() -> Result<Option<Account>, UserError> {
    let caller = user::caller()?;
    caller.as_ref().map_or(Ok(()), |caller| caller.rights.take_on())?;
    Ok(caller)
}

pub(super) fn options(args: &UiArgs, files: Vec<String>) -> Options {
    Options { port: args.port, folder: args.ui_dir.clone(), files, cache: None }
}

/// Prints the address, and answers until `stop` is used or dropped.
pub(super) fn serve(server: Server, stop: oneshot::Receiver<()>) -> Result<(), Failure> {
    ui::say("open this address in a browser on this machine; Ctrl-C ends");
    print(&server.url())?;
    Ok(server.serve(stop)?)
}
