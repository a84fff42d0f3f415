//! `ctrace log`: the messages of a process, a command, or a recording, in order of time.

use super::{Failure, spec, trace};
use crate::{
    cli::{LogArgs, SelectArgs},
    session::keep::{lines::LineKind, messages::MessageChoice},
};
use ctrace_core::function::FunctionKind;

pub(super) fn main(args: LogArgs, verbose: u8) -> Result<u8, Failure> {
    let LogArgs { mut lines, json, level, grep } = args;
    if !trace::is_recording(&lines.subject) {
        spec::refuse_locks(&lines.what.values)?;
    }
    let what = &mut lines.what;
    if !trace::is_recording(&lines.subject)
        && what.program.pairs.is_empty()
        && what.values.arguments.is_empty()
    {
        keep_messages(&mut what.select, |kind| kind == FunctionKind::Marker);
    }
    let choice = MessageChoice { level: level.map(Into::into), text: grep };
    trace::lines(lines, "log", (LineKind::Messages(choice), json), verbose)
}

/// Chooses all messages where only the functions around them are chosen. `are_there`: there may be
/// some of that kind.
pub(super) fn keep_messages(select: &mut SelectArgs, are_there: impl Fn(FunctionKind) -> bool) {
    if select.functions.is_empty() || !select.usdt.is_empty() || !select.markers.is_empty() {
        return;
    }
    let SelectArgs { usdt, markers, .. } = select;
    for (patterns, kind) in [(usdt, FunctionKind::Usdt), (markers, FunctionKind::Marker)] {
        patterns.extend(are_there(kind).then(|| "*".to_owned()));
    }
}
