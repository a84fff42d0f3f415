//! SIGINT, SIGTERM and SIGHUP, with their senders. A Ctrl-C comes from the kernel and reaches the
//! whole foreground group, so the command already has it. A `kill` reaches ctrace alone and must be
//! forwarded.

use super::launch;
use crate::{
    bpf, inherited,
    ui::{self, output::live},
};
use ctrace_core::units::Pid;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::{SignalsInfo, exfiltrator::origin::WithOrigin},
    low_level::siginfo::Cause,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The receiver of the signals.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signals {
    /// The first signal ends the trace. The next one ends ctrace, whatever it is doing, except for
    /// the removal of probes.
    End,
    /// The command decides; ctrace waits for it. Once it has ended, they end the trace of what it
    /// left behind.
    Forward(Pid),
}

/// Receives signals from now on; they no longer end ctrace by themselves. A message asks to end the
/// trace.
pub(crate) fn listen(signals: Signals) -> std::io::Result<UnboundedReceiver<()>> {
    let (sender, receiver) = unbounded_channel();
    // A process that nohup(1) started stays when the terminal goes.
    let hangup = (!inherited::ignores(SIGHUP)).then_some(SIGHUP);
    let wanted = [SIGINT, SIGTERM].into_iter().chain(hangup);
    let mut arriving = SignalsInfo::<WithOrigin>::new(wanted)?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut asked = false;
        for origin in &mut arriving {
            let command = match signals {
                Signals::Forward(pid) if !launch::has_ended(pid) => Some(pid),
                _ => None,
            };
            match command {
                // A terminal that closes may send it twice.
                None if asked && origin.signal == SIGHUP => {}
                None if asked => {
                    live::without(|| ());
                    bpf::leave(128 + origin.signal, ui::say)
                }
                None => {
                    asked = true;
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
