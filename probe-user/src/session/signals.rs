//! SIGINT and SIGTERM, with who sent them: a Ctrl-C reaches the whole foreground group from the
//! kernel, so the command already has it; a `kill` reaches ctrace alone and must be forwarded.

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::{SignalsInfo, exfiltrator::origin::WithOrigin},
    low_level::siginfo::{Cause, Origin},
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A request to end.
#[derive(Clone, Copy, Debug)]
pub struct EndSignal {
    pub number: i32,
    /// Sent to ctrace alone, not by the terminal to the whole group.
    pub to_us_alone: bool,
}

/// Signals from now on; they no longer end ctrace by themselves.
pub fn listen() -> std::io::Result<UnboundedReceiver<EndSignal>> {
    let mut signals = SignalsInfo::<WithOrigin>::new([SIGINT, SIGTERM])?;
    let (sender, receiver) = unbounded_channel();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for origin in &mut signals {
            let end = EndSignal { number: origin.signal, to_us_alone: !from_terminal(&origin) };
            if sender.send(end).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

fn from_terminal(origin: &Origin) -> bool {
    matches!(origin.cause, Cause::Kernel)
}
