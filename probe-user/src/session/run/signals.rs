//! SIGINT, SIGTERM and SIGHUP, with their senders. A Ctrl-C comes from the kernel and reaches the
//! whole foreground group, so the command already has it. A `kill` reaches ctrace alone and must be
//! forwarded.
//!
//! Until probes are about to be placed, each of them ends ctrace with a line and 128+n. While they are
//! placed, the trace is ended as soon as they are in place, with the same line.

use super::launch;
use crate::{
    bpf, inherited,
    ui::{
        self,
        output::{live, title},
    },
};
use anyhow::Context as _;
use ctrace_core::units::Pid;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::{Handle, Signals as Arriving, SignalsInfo, exfiltrator::origin::WithOrigin},
    low_level::siginfo::{Cause, Origin},
};
use std::{
    io,
    sync::{Mutex, MutexGuard, Once, PoisonError},
    thread,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The receiver of the signals.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signals {
    /// The first signal ends the trace. The next one ends ctrace without a report, whatever it is doing,
    /// except for the removal of probes.
    End,
    /// The command decides; ctrace waits for it. Once it has ended, they end the trace of what it
    /// left behind.
    Forward(Pid),
}

/// The signals that end a trace.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The time within which two signals of one kind from a process are one: timeout(1) signals its child, and
/// then the group that both are in.
const ECHO: Duration = Duration::from_millis(100);

/// The receiver of the signals that come before a trace listens for them.
static BEFORE: Mutex<Option<Handle>> = Mutex::new(None);

/// Returns the signals that end a trace. A process that nohup(1) started stays when the terminal goes.
fn wanted() -> impl Iterator<Item = i32> {
    ENDING.into_iter().filter(|&signal| signal != SIGHUP || !inherited::ignores(signal))
}

/// Lets signals end ctrace with a line, until a trace listens for them.
pub(crate) fn await_trace() -> anyhow::Result<()> {
    let begin = || {
        let mut arriving = Arriving::new(wanted())?;
        let receiver = arriving.handle();
        thread::Builder::new().name("signals".into()).spawn(move || {
            if let Some(signal) = arriving.forever().next() {
                say_that_nothing_was_traced();
                bpf::leave(128 + signal, ui::say)
            }
        })?;
        *before() = Some(receiver);
        Ok::<_, io::Error>(())
    };
    begin().context("cannot listen for signals")
}

fn before() -> MutexGuard<'static, Option<Handle>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells, once, that a signal came before the first call could count.
pub(crate) fn say_that_nothing_was_traced() {
    static SAID: Once = Once::new();
    SAID.call_once(|| ui::say("ended before tracing began: nothing was traced"));
}

/// Receives signals from now on; they no longer end ctrace by themselves. A message asks to end the
/// trace.
pub(crate) fn listen(signals: Signals) -> io::Result<UnboundedReceiver<()>> {
    let (sender, receiver) = unbounded_channel();
    let mut arriving = SignalsInfo::<WithOrigin>::new(wanted())?;
    // Only now, so that no signal finds nobody.
    if let Some(earlier) = before().take() {
        earlier.close();
    }
    thread::Builder::new().name("signals".into()).spawn(move || {
        let mut asked: Option<(i32, Instant)> = None;
        let is_echo = |asked: Option<(i32, Instant)>, origin: &Origin| {
            let is_from_process = !matches!(origin.cause, Cause::Kernel);
            asked.is_some_and(|(signal, at)| signal == origin.signal && at.elapsed() < ECHO)
                && is_from_process
        };
        for origin in &mut arriving {
            let command = match signals {
                Signals::Forward(pid) if !launch::has_ended(pid) => Some(pid),
                _ => None,
            };
            match command {
                // A terminal that closes may send it twice.
                None if asked.is_some() && origin.signal == SIGHUP => {}
                None if is_echo(asked, &origin) => {}
                None if asked.is_some() => {
                    title::put_back();
                    live::without(|| ui::say("a second signal: ends without a report"));
                    bpf::leave(128 + origin.signal, ui::say)
                }
                None => {
                    asked = Some((origin.signal, Instant::now()));
                    // Nobody listens any more when the trace is over.
                    let _ = sender.send(());
                }
                Some(pid) if !matches!(origin.cause, Cause::Kernel) => {
                    launch::forward(pid, origin.signal);
                }
                Some(_) => {}
            }
        }
    })?;
    Ok(receiver)
}
