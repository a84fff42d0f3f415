//! The loop of a session: records in, reports out, until time, a signal or the target's end.

use super::{
    session::{Session, nanos},
    signals::{self, Signals},
};
use crate::{
    bpf::{self, BpfError, GuardDeath},
    session::{
        collect::reader::{Batch, Reader},
        keep::live::{Command, Commands, Snapshot},
    },
    ui,
};
use anyhow::{Context, anyhow};
use ctrace_core::{
    report::TargetExit,
    units::{Nanos, Pid},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid},
};
use std::{
    io::{PipeWriter, pipe},
    os::fd::{AsFd as _, OwnedFd},
    time::Duration,
};
use tokio::{
    sync::{
        mpsc::{Receiver, UnboundedReceiver, unbounded_channel},
        oneshot,
    },
    time::{Instant, sleep},
};

/// The events that end a session, apart from the target's end.
pub(crate) struct Ending {
    after: Option<Duration>,
    signals: UnboundedReceiver<()>,
    commands: Option<Commands>,
    /// True if the processes that the target leaves behind are traced to their ends, too.
    awaits_followed: bool,
    /// The line that tells that the trace has begun.
    begun: Option<String>,
}

impl Ending {
    /// Ends by a signal or after this time. From now on the signals do not end ctrace by
    /// themselves. Followed processes are awaited.
    pub(crate) fn new(signals: Signals, after: Option<Duration>) -> anyhow::Result<Self> {
        let signals = signals::listen(signals).context("cannot listen for signals")?;
        Ok(Self { after, signals, commands: None, awaits_followed: true, begun: None })
    }

    /// Ends by a command or after this time. Signals are for another part of this process.
    pub(crate) fn commanded(commands: Commands, after: Option<Duration>) -> Self {
        let (_, signals) = unbounded_channel();
        Self { after, signals, commands: Some(commands), awaits_followed: false, begun: None }
    }

    /// Awaits the last followed process.
    pub(crate) fn awaiting_followed(self) -> Self {
        Self { awaits_followed: true, ..self }
    }

    /// Tells this when the trace has begun.
    pub(crate) fn telling(self, begun: Option<String>) -> Self {
        Self { begun, ..self }
    }
}

/// A handle that tells of the end of a process, however it comes.
pub(crate) struct Watched(OwnedFd);

/// Watches a process from now on. A later process with the same id is not mistaken for it.
pub(crate) fn watch(pid: Pid) -> anyhow::Result<Watched> {
    let raw = rustix::process::Pid::from_raw(pid.0 as i32).context("0 is no process")?;
    pidfd_open(raw, PidfdFlags::empty())
        .map(Watched)
        .with_context(|| format!("process {} ended before it could be traced", pid.0))
}

/// Traces until the end and hands the last report to the sink.
pub(crate) fn run(
    session: &mut Session,
    watched: Watched,
    ending: Ending,
    started: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .context("cannot start the event loop")?;
    runtime.block_on(async {
        let (reader, batches) = session.read()?;
        let gone = TargetEnd::watch(watched)?;
        session.make_way();
        started()?;
        let Ending { after, mut signals, commands, awaits_followed, begun } = ending;
        let is_over = signals.try_recv().is_ok();
        if is_over {
            signals::say_that_nothing_was_traced();
        } else if let Some(line) = begun {
            ui::say(&line);
        }
        session.set_time_limit(after);
        let (guard, loads, later) = (session.guard_death(), session.loads(), session.take_later());
        let mut sources =
            Sources { batches, signals, gone, guard, loads, later, commands, awaits_followed };
        let time_up = after.map(|after| session.start().saturating_add(nanos(after)));
        if let Some(time_up) = time_up {
            session.count_until(time_up);
        }
        let end = match is_over {
            true => End::AsAsked,
            false => collect(session, &reader, &mut sources, time_up).await?,
        };
        if end == End::ProbesGone {
            session.note_that_probes_are_gone();
        }
        finish(session, &reader, &mut sources.batches, time_up).await?;
        match end {
            End::AsAsked => session.found_nothing().map_or(Ok(()), |why| Err(anyhow!(why))),
            End::ProbesGone => Err(BpfError::GuardGone.into()),
        }
    })
}

/// The sources of events that the loop waits for.
struct Sources {
    batches: Receiver<Batch>,
    signals: UnboundedReceiver<()>,
    gone: TargetEnd,
    guard: GuardDeath,
    /// Processes in which a thread has loaded a library, and is held.
    loads: Option<UnboundedReceiver<Pid>>,
    /// Processes that come later and are to be traced, too.
    later: Option<UnboundedReceiver<Pid>>,
    commands: Option<Commands>,
    awaits_followed: bool,
}

impl Sources {
    /// Returns what comes next; waits for ever if nobody can send anything.
    async fn next<T>(from: &mut Option<UnboundedReceiver<T>>) -> T {
        if let Some(receiver) = from {
            if let Some(next) = receiver.recv().await {
                return next;
            }
            *from = None;
        }
        std::future::pending().await
    }
}

/// Waits until this time, or for ever. A time that is over is ready at once. No sleep is: one that is
/// begun anew with each batch of records would never end while they come fast.
async fn at(time: Option<Nanos>) {
    let Some(time) = time else { return std::future::pending().await };
    let left = time.since(bpf::now());
    if left > Nanos::ZERO {
        sleep(Duration::from_nanos(left.0)).await;
    }
}

/// Callers that want the interval so far, and the time at which they asked.
type Peeks = Vec<(Nanos, Box<dyn FnOnce(Snapshot) + Send>)>;

/// The reason why nothing more is collected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    AsAsked,
    ProbesGone,
}

async fn collect(
    session: &mut Session,
    reader: &Reader,
    sources: &mut Sources,
    time_up: Option<Nanos>,
) -> anyhow::Result<End> {
    let mut look = Instant::now();
    let mut peeks = Peeks::new();
    let mut is_gone = false;
    loop {
        let tend = session.budget_due();
        let go_on = tokio::select! {
            batch = sources.batches.recv() => {
                let mut batch = batch.context("the thread that reads the ring buffers ended")?;
                let mut go_on = session.feed(&mut batch)?;
                if let Some(now) = batch.answers {
                    for (_, take) in peeks.extract_if(.., |(asked, _)| *asked <= now) {
                        session.peek()?.map(take);
                    }
                }
                // With a batch, so that no extra wakeup is needed.
                if look <= Instant::now() || session.must_look() {
                    go_on &= session.look_around()?;
                    look = Instant::now() + session.look_pause();
                }
                go_on && !(is_gone && session.has_lost_all())
            }
            Some(()) = sources.signals.recv() => false,
            exit = &mut sources.gone.told, if !is_gone => {
                is_gone = true;
                session.target_ended(exit.ok().flatten());
                sources.awaits_followed && session.goes_on_with_followed()
            }
            () = sources.guard.wait() => return Ok(End::ProbesGone),
            pid = Sources::next(&mut sources.loads) => {
                session.arm_loaded(pid);
                true
            }
            pid = Sources::next(&mut sources.later) => {
                session.join(pid);
                true
            }
            () = at(time_up) => false,
            () = at(tend) => {
                session.tend_budget();
                true
            }
            command = Sources::next(&mut sources.commands) => match command {
                Command::Stop => false,
                Command::Peek(take) => {
                    peeks.push((bpf::now(), take));
                    reader.call();
                    true
                }
            },
        };
        if !go_on {
            let gone = sources.guard.has_come();
            return Ok(if gone { End::ProbesGone } else { End::AsAsked });
        }
    }
}

/// Takes the probes away, reads the rest, and reports. Links that detach slowly are kept until the
/// report is out.
async fn finish(
    session: &mut Session,
    reader: &Reader,
    batches: &mut Receiver<Batch>,
    time_up: Option<Nanos>,
) -> anyhow::Result<()> {
    session.stop_holding()?;
    session.end_moves();
    let now = bpf::now();
    let end = time_up.map_or(now, |time_up| time_up.min(now));
    session.end_time(end);
    // Where probes stay for now, a call may end before they are gone and after the last event was read.
    session.take_all_held();
    if session.detaches_fast() {
        let _slow = session.slow("taking the probes away…");
        session.detach_sources();
    }
    let slow = session.slow("reading the last events…");
    reader.finish();
    while let Some(mut batch) = batches.recv().await {
        batch.settled = batch.settled.map(|settled| settled.min(end));
        session.feed(&mut batch)?;
    }
    drop(slow);
    session.report_end(end)?;
    session.detach();
    session.verify();
    Ok(())
}

/// Tells of the end of the target. A thread waits for it until this is dropped.
struct TargetEnd {
    told: oneshot::Receiver<Option<TargetExit>>,
    /// The thread sees when this is closed.
    _open: PipeWriter,
}

impl TargetEnd {
    fn watch(watched: Watched) -> anyhow::Result<Self> {
        let (over, open) = pipe().context("cannot make a pipe")?;
        let (sender, told) = oneshot::channel();
        let thread = std::thread::Builder::new().name("target".into()).spawn(move || {
            let fd = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
            let mut both = [fd(watched.0.as_fd()), fd(over.as_fd())];
            while let Err(Errno::INTR) = poll(&mut both, None) {}
            if !both[0].revents().is_empty() {
                let _ = sender.send(exit_of(&watched));
            }
        });
        thread.context("cannot start a thread")?;
        Ok(Self { told, _open: open })
    }
}

/// Returns the exit status, which is known for our own child; the process remains to be waited for.
fn exit_of(ended: &Watched) -> Option<TargetExit> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::PidFd(ended.0.as_fd()), look).ok().flatten()?;
    let signal = status.terminating_signal().map(TargetExit::Signal);
    status.exit_status().map(TargetExit::Code).or(signal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        future::Future as _,
        pin::pin,
        task::{Context, Poll, Waker},
    };

    #[test]
    fn only_a_time_that_is_over_is_ready() {
        let poll = |time| pin!(at(time)).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(poll(Some(Nanos(1))), Poll::Ready(()));
        assert_eq!(poll(None), Poll::Pending);
    }
}
