//! The child of `run`: waits until it is told that probes are armed, then becomes the command.

use super::Failure;
use crate::{
    cli::ExecArgs,
    inherited::{descriptors, keyring, pass_on_signals},
    user::rights::{Rights, keep_capabilities_to_ourselves},
};
use anyhow::anyhow;
use std::{
    io::{self, ErrorKind, Read as _, Write as _},
    os::unix::{net::UnixStream, process::CommandExt},
    process::Command,
};

/// Returns only when the command could not be executed.
pub(super) fn main(args: &ExecArgs) -> Failure {
    match wait_until_armed(args.socket) {
        Err(error) => {
            Failure::new(Failure::OWN, anyhow!("ctrace has not started the command: {error}"))
        }
        Ok(()) => {
            let name = &args.command[0];
            let mut command = Command::new(&args.file);
            command.arg0(name).args(&args.command[1..]);
            pass_on_signals(&mut command);
            if let Err(failure) = give_up_rights(args) {
                return failure;
            }
            let error = command.exec();
            let code = if error.kind() == ErrorKind::NotFound { 127 } else { 126 };
            Failure::new(code, anyhow!("cannot execute {}: {error}", args.file.display()))
        }
    }
}

/// Gives up everything of ours that the command must not have. Set-user-ID programs still work:
/// nothing keeps the command from new rights (no_new_privs, bounding set).
fn give_up_rights(args: &ExecArgs) -> Result<(), Failure> {
    match &args.rights {
        Some(rights) => {
            rights.parse::<Rights>()?.take_on()?;
            // The new keyring is the user's, as the rights already are.
            keyring::join_a_new_session()
                .map_err(|error| anyhow!("cannot keep keys from the command: {error}"))?;
            descriptors::close_on_exec()
                .map_err(|error| anyhow!("cannot keep open files from the command: {error}"))?;
        }
        None => keep_capabilities_to_ourselves()
            .map_err(|error| anyhow!("cannot keep capabilities from the command: {error}"))?,
    }
    Ok(())
}

/// Tells ctrace that this program runs, and waits for its message. A signal would not do, for
/// others can send it. When ctrace is gone, the socket ends, and so does this process.
fn wait_until_armed(socket: i32) -> io::Result<()> {
    let mut ctrace = UnixStream::from(descriptors::take(socket)?);
    ctrace.write_all(&[0])?;
    ctrace.read_exact(&mut [0])
}
