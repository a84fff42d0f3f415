//! Turns signals into events for the supervisor.

use super::event::Event;
use crate::{bpf, heal, ui};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};
use std::sync::mpsc::Sender;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Reload,
    End,
}

/// Starts listening. The second request to end is obeyed as soon as no probe is left.
pub(super) fn listen(events: Sender<Event>) -> std::io::Result<()> {
    let mut arriving = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut ending = false;
        for signal in &mut arriving {
            let asked = if signal == SIGHUP { Order::Reload } else { Order::End };
            if asked == Order::End {
                heal::hurry();
            }
            if asked == Order::End && std::mem::replace(&mut ending, true) {
                bpf::leave(128 + signal, ui::say);
            }
            if events.send(Event::Signal(asked)).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}
