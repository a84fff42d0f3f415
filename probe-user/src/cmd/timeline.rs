//! `ctrace ui`: the timeline of a recording, or of a session, in a browser.

use super::{Failure, live_timeline, open::open, print};
use crate::{
    cli::{LensArgs, UiArgs},
    timeline_server::{Options, Server, stopped_by_signals},
    ui,
    user::{self, UserError},
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
    take_rights_of_caller()?;
    let lens = LensArgs { max_calls: args.max_calls, ..LensArgs::default() };
    let files = args.recording();
    let recording = open(&files, &lens)?;
    let names = |files: &[PathBuf]| files.iter().map(|file| file.display().to_string()).collect();
    let options = options(&args, names(&files));
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

/// Takes on the rights of the user who called sudo. Threads that this one starts later have the same.
pub(super) fn take_rights_of_caller() -> Result<(), UserError> {
    user::caller()?.map_or(Ok(()), |caller| caller.rights.take_on())
}

pub(super) fn options(args: &UiArgs, files: Vec<String>) -> Options {
    Options { port: args.port, folder: args.ui_dir.clone(), files }
}

/// Prints the address, and answers until `stop` is used or dropped.
pub(super) fn serve(server: Server, stop: oneshot::Receiver<()>) -> Result<(), Failure> {
    ui::say("open this address in a browser on this machine; Ctrl-C ends");
    print(&server.url())?;
    Ok(server.serve(stop)?)
}
