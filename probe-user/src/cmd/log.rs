//! `ctrace log`: the messages of a process, a command, or a recording, in order of time.

use super::{Failure, trace};
use crate::{
    cli::LogArgs,
    session::keep::{lines::LineKind, messages::MessageChoice},
};

pub(super) fn main(args: LogArgs, verbose: u8) -> Result<u8, Failure> {
    let LogArgs { lines, json, level, grep } = args;
    let choice = MessageChoice { level: level.map(Into::into), text: grep };
    trace::lines(lines, "log", (LineKind::Messages(choice), json), verbose)
}
