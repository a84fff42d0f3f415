//! Turns limits on ctrace (`ulimit`) into one-line errors instead of crashes.
//!
//! - Small stack: everything runs on a thread with its own stack. The first thread's stack has to
//!   suffice only until that one starts.
//! - Little memory: refused requests are errors. A fatal one ends in a line ([`bpf::Memory`]).
//! - Small files: `inherited` makes a write beyond the limit fail.

use crate::{bpf, cmd::Failure, ui};
use std::{
    panic::{PanicHookInfo, set_hook, take_hook},
    process::ExitCode,
    thread,
};

/// The first thread's default size, enough for the deepest work in ctrace.
const STACK: usize = 8 << 20;

/// Prefix of commands that ctrace starts itself with. They need little stack. A process that
/// executes a program must do so on its first thread, since its links end with that thread.
const INTERNAL: &str = "__";

/// Runs `main` under any limits. A panic ends in one line, too.
pub(crate) fn run(main: fn() -> ExitCode) -> ExitCode {
    if is_internal() {
        return main();
    }
    bpf::end_plainly();
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        drop(take_hook());
        set_hook(Box::new(|panic| ui::say(&told(panic))));
    }
    match thread::Builder::new().name("ctrace".into()).stack_size(STACK).spawn(main) {
        Ok(thread) => thread.join().unwrap_or(ExitCode::from(Failure::OWN)),
        Err(error) => {
            ui::say(&format!("cannot start a thread: {error}; raise `ulimit -v`, or `ulimit -u`"));
            ExitCode::from(Failure::OWN)
        }
    }
}

/// Returns whether ctrace has started itself with a command of its own.
pub(crate) fn is_internal() -> bool {
    let name = std::env::args_os().nth(1);
    name.is_some_and(|name| name.as_encoded_bytes().starts_with(INTERNAL.as_bytes()))
}

fn told(panic: &PanicHookInfo<'_>) -> String {
    let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
    let payload = panic.payload();
    let formatted = payload.downcast_ref::<String>().map(String::as_str);
    let what = payload.downcast_ref::<&str>().copied().or(formatted).unwrap_or("no message");
    if what.starts_with("failed to spawn thread") {
        return "cannot start a thread; raise `ulimit -v`, or `ulimit -u`".to_owned();
    }
    format!("a mistake in ctrace{place}: {what}; please report it, with RUST_BACKTRACE=1 set")
}
