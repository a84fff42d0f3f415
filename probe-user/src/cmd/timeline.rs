//! `ctrace ui`: the timeline of a recording in a browser.

use super::{Failure, open::open, print};
use crate::{
    cli::{LensArgs, UiArgs},
    timeline_server::{Options, Server, stopped_by_signals},
    ui, user,
};

pub(super) fn main(args: UiArgs) -> Result<u8, Failure> {
    // Nothing here needs root. Threads that are started later have the same rights as this one.
    if let Some(caller) = user::caller()? {
        caller.rights.take_on()?;
    }
    let lens = LensArgs { max_calls: args.max_calls, ..LensArgs::default() };
    let recording = open(&args.files, &lens)?;
    let files = args.files.iter().map(|file| file.display().to_string()).collect();
    let options = Options { port: args.port, folder: args.ui_dir, files };
    let server = Server::start(recording, options)?;
    let stop = stopped_by_signals()?;
    ui::say("open this address in a browser on this machine; Ctrl-C ends");
    print(&server.url())?;
    server.serve(stop)?;
    Ok(0)
}
