//! When to stop: at the end of standard input, or by a signal.

use std::{io, io::Read as _, thread, time::Duration};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// The time in which the last files are sent. The daemon waits somewhat longer.
const LAST: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Run,
    /// Send what is there, and end.
    Finish,
    /// End now. Nothing is left of an upload that is underway.
    GiveUp,
}

/// Starts watching. With `until_eof` the end of standard input decides, and not a signal: when a
/// service stops, signals reach this program before the daemon has written its last files.
pub(crate) fn watch(until_eof: bool) -> io::Result<watch::Receiver<Phase>> {
    let (tell, phase) = watch::channel(Phase::Run);
    let mut signals = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    if !until_eof {
        tokio::spawn(async move {
            let [terminate, interrupt] = &mut signals;
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tell.send_replace(Phase::GiveUp);
            // The receiver must not see its sender gone.
            std::future::pending::<()>().await;
        });
        return Ok(phase);
    }
    let (ended, end) = tokio::sync::oneshot::channel();
    // It waits for as long as the daemon lives.
    thread::Builder::new().name("stdin".into()).spawn(move || {
        let mut ignored = [0; 64];
        while io::stdin().read(&mut ignored).is_ok_and(|read| read > 0) {}
        let _ = ended.send(());
    })?;
    tokio::spawn(async move {
        let _handled = signals;
        let _ = end.await;
        tell.send_replace(Phase::Finish);
        tokio::time::sleep(LAST).await;
        tell.send_replace(Phase::GiveUp);
        std::future::pending::<()>().await;
    });
    Ok(phase)
}

/// Returns once the phase is this one or a later one.
pub(crate) async fn reached(phase: &mut watch::Receiver<Phase>, least: Phase) {
    // Without a sender the phase changes no more.
    if phase.wait_for(|now| *now >= least).await.is_err() {
        std::future::pending::<()>().await;
    }
}
