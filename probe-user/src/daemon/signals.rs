//! Turns signals into events for the supervisor.

use super::event::DaemonEvent;
use crate::{bpf, heal, ui};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};
use std::sync::mpsc::Sender;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalOrder {
    Reload,
    End,
}

/// Starts listening. The second request to end is obeyed as soon as no probe is left.
pub(super) fn listen(events: Sender<DaemonEvent>) -> std::io::Result<()> {
    let mut arriving = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut ending = false;
        for signal in &mut arriving {
            let asked = if signal == SIGHUP { SignalOrder::Reload } else { SignalOrder::End };
            if asked == SignalOrder::End {
                heal::hurry();
            }
            if asked == SignalOrder::End && std::mem::replace(&mut ending, true) {
                bpf::leave(128 + signal, ui::say);
            }
            if events.send(DaemonEvent::Signal(asked)).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}
