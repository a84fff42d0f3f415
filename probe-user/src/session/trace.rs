//! The loop of a session: records in, reports out, until time, a signal or the target's end.

use super::{
    reader::{Batch, Reader},
    signals::{self, EndSignal},
    tracer::Tracer,
};
use crate::bpf;
use anyhow::Context;
use ctrace_core::units::Pid;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{PidfdFlags, pidfd_open},
};
use std::time::Duration;
use tokio::{
    sync::{
        mpsc::{Receiver, UnboundedReceiver},
        oneshot,
    },
    time::{Instant, MissedTickBehavior, sleep_until},
};

/// Between looks at new programs, libraries and threads of the target.
const LOOK_AROUND: Duration = Duration::from_millis(200);
/// "For ever", for a sleep that is not wanted.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Time, Ctrl-C, or nobody reads the reports any more.
    Asked,
    TargetGone,
}

/// What a signal means to this session.
pub type OnSignal<'a> = Box<dyn FnMut(EndSignal) -> bool + 'a>;

/// When and how a session ends.
pub struct Ending<'a> {
    pub after: Option<Duration>,
    /// Whether to end at once; `run` forwards the signal and waits for the target instead.
    pub on_signal: OnSignal<'a>,
}

/// Traces until the end and hands the last report to the sink.
pub fn run(
    tracer: &mut Tracer,
    pid: Pid,
    ending: Ending<'_>,
    started: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<End> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    runtime.block_on(async {
        let (reader, batches) = Reader::start(tracer.rings()?).context("cannot start a thread")?;
        let signals = signals::listen().context("cannot listen for signals")?;
        let gone = watch_end(pid)?;
        started()?;
        let mut sources = Sources { batches, signals, gone };
        let end = collect(tracer, &mut sources, ending).await?;
        finish(tracer, &reader, &mut sources.batches).await?;
        Ok(end)
    })
}

/// What the loop waits for.
struct Sources {
    batches: Receiver<Batch>,
    signals: UnboundedReceiver<EndSignal>,
    gone: oneshot::Receiver<()>,
}

async fn collect(
    tracer: &mut Tracer,
    sources: &mut Sources,
    mut ending: Ending<'_>,
) -> anyhow::Result<End> {
    let time_up = Instant::now() + ending.after.unwrap_or(FOR_EVER);
    let mut look = tokio::time::interval(LOOK_AROUND);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let go_on = tokio::select! {
            batch = sources.batches.recv() => match batch {
                Some(batch) => tracer.feed(&batch)?,
                None => false,
            },
            Some(signal) = sources.signals.recv() => !(ending.on_signal)(signal),
            _ = &mut sources.gone => return Ok(End::TargetGone),
            () = sleep_until(time_up) => false,
            _ = look.tick() => tracer.look_around()?,
        };
        if !go_on {
            return Ok(End::Asked);
        }
    }
}

/// Takes the probes away, reads what is left, and reports. Links that detach slowly are kept
/// until the report is out.
async fn finish(
    tracer: &mut Tracer,
    reader: &Reader,
    batches: &mut Receiver<Batch>,
) -> anyhow::Result<()> {
    let end = bpf::now();
    if tracer.detaches_fast() {
        tracer.detach();
    }
    reader.finish();
    while let Some(mut batch) = batches.recv().await {
        batch.settled = batch.settled.map(|settled| settled.min(end));
        tracer.feed(&batch)?;
    }
    tracer.report_end(end)?;
    tracer.detach();
    Ok(())
}

/// A thread waits for the process to end.
fn watch_end(pid: Pid) -> anyhow::Result<oneshot::Receiver<()>> {
    let raw = rustix::process::Pid::from_raw(pid.0 as i32).context("0 is no process")?;
    let process = pidfd_open(raw, PidfdFlags::empty())
        .with_context(|| format!("process {} ended before it could be traced", pid.0))?;
    let (sender, receiver) = oneshot::channel();
    std::thread::Builder::new().name("target".into()).spawn(move || {
        while let Err(Errno::INTR) = poll(&mut [PollFd::new(&process, PollFlags::IN)], None) {}
        // Nobody listens any more when the session ended first.
        let _ = sender.send(());
    })?;
    Ok(receiver)
}
