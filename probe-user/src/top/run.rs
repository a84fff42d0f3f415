//! The only loop: snapshots, keys and signals in, screens out.

use crate::top::{
    data::Data,
    export, keys,
    model::{Effect, Model, columns::TopColumn},
    screen::Screen,
    source::{IntervalSource, Update},
    summary::summary,
    view,
};
use crate::{
    session::{run::subject::Subject, spec::TraceSpec},
    ui,
};
use anyhow::Context;
use ratatui::crossterm::event::KeyEvent;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM},
    iterator::Signals,
};
use std::{
    io::{self, Write},
    path::Path,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    time::Duration,
};

/// An event for the loop.
pub(super) enum ScreenEvent {
    Update(Update),
    Key(KeyEvent),
    Resized,
    /// A line on stderr.
    Said(String),
    /// The keyboard is gone.
    Deaf(io::Error),
    /// A signal to end.
    Signal,
}

/// The limit of waiting events while the terminal is stopped. Further intervals are lost.
const WAITING: usize = 256;

/// Shows a process or a command until the user quits.
pub(crate) fn run(
    spec: TraceSpec,
    interval: Duration,
    sort: TopColumn,
    subject: Subject,
) -> anyhow::Result<()> {
    let (sender, events) = sync_channel(WAITING);
    let source = IntervalSource::start(spec, interval, subject, sender.clone())?;
    follow(&source, interval, sort, sender, &events)
}

/// Shows a daemon's processes until the user quits.
pub(crate) fn run_with_daemon(
    socket: &Path,
    interval: Duration,
    sort: TopColumn,
) -> anyhow::Result<()> {
    let (sender, events) = sync_channel(WAITING);
    let source = IntervalSource::ask_daemon(socket, interval, sender.clone())?;
    follow(&source, interval, sort, sender, &events)
}

fn follow(
    source: &IntervalSource,
    interval: Duration,
    sort: TopColumn,
    sender: SyncSender<ScreenEvent>,
    events: &Receiver<ScreenEvent>,
) -> anyhow::Result<()> {
    // Report a bad request before the screen appears.
    let cpu = match events.recv().context("the session is gone")? {
        ScreenEvent::Update(Update::Begun { cpu }) => cpu,
        ScreenEvent::Update(Update::Ended { result, .. }) => return result,
        _ => None,
    };
    listen_for_signals(sender.clone())?;
    let style = ui::output::terminal::detect(io::stdout());
    let mut screen = Screen::open(sender)?;
    let mut model = Model::new(Data::new(cpu), interval, style.shades());
    model.sort.column = sort;
    let shown = show(&mut model, &mut screen, source, events);
    let height = screen.size().1;
    drop(screen);
    let ended = take_rest(&mut model, source, events);
    leave_summary(&model, height);
    shown.and(ended)
}

/// Writes the summary to the normal screen. If that is gone, nobody needs it.
fn leave_summary(model: &Model, height: usize) {
    let style = ui::output::terminal::detect(io::stdout());
    let offset = Some(ui::output::wall::epoch_offset_ns());
    if let Some(summary) = summary(model, &style, height, offset) {
        let _ = io::stdout().write_all(summary.as_bytes());
    }
}

/// Draws and waits, until the user quits or the session fails.
fn show(
    model: &mut Model,
    screen: &mut Screen,
    source: &IntervalSource,
    events: &Receiver<ScreenEvent>,
) -> anyhow::Result<()> {
    loop {
        model.size = screen.size();
        let drawn = view::draw(model);
        model.limit_scroll(drawn.last_scroll);
        screen.draw(drawn)?;
        // Handle all waiting events before drawing again.
        let mut next = Some(events.recv().context("the session is gone")?);
        while let Some(event) = next {
            if !take(model, source, event)? {
                return Ok(());
            }
            next = events.try_recv().ok();
        }
    }
}

/// Handles an event. Returns `false` to quit.
fn take(model: &mut Model, source: &IntervalSource, event: ScreenEvent) -> anyhow::Result<bool> {
    match event {
        ScreenEvent::Resized => {}
        ScreenEvent::Update(Update::Begun { cpu }) => model.begun(cpu),
        ScreenEvent::Update(Update::Interval { parts, missed }) => model.add(parts, missed),
        ScreenEvent::Update(Update::Processes(processes)) => model.list(processes),
        ScreenEvent::Update(Update::Ended { result, missed }) => {
            model.end(missed);
            result?;
        }
        ScreenEvent::Said(line) => model.message = Some(line),
        ScreenEvent::Deaf(error) => return Err(error).context("cannot read from the terminal"),
        ScreenEvent::Signal => return Ok(false),
        ScreenEvent::Key(key) => {
            let effect = keys::action(model.mode, key).and_then(|action| model.act(action));
            match effect {
                Some(Effect::Quit) => return Ok(false),
                Some(Effect::Export(format)) => {
                    let written = export::write(model, format, Path::new("."));
                    model.message = Some(match written {
                        Ok(path) => format!("written: {}", path.display()),
                        Err(error) => format!("{error:#}"),
                    });
                }
                Some(Effect::Choose(pid)) => source.choose(pid),
                None => {}
            }
        }
    }
    Ok(true)
}

/// Ends a session, waits while its probes are removed, and takes what it still tells. Another signal
/// ends the wait.
fn take_rest(
    model: &mut Model,
    source: &IntervalSource,
    events: &Receiver<ScreenEvent>,
) -> anyhow::Result<()> {
    let is_awaited = !model.ended && source.stop();
    loop {
        let next = if is_awaited { events.recv().ok() } else { events.try_recv().ok() };
        match next {
            Some(ScreenEvent::Update(Update::Ended { result, missed })) => {
                model.end(missed);
                return result;
            }
            Some(ScreenEvent::Update(Update::Interval { parts, missed })) => {
                model.add(parts, missed)
            }
            Some(ScreenEvent::Signal) | None => return Ok(()),
            Some(_) => {}
        }
    }
}

fn listen_for_signals(events: SyncSender<ScreenEvent>) -> anyhow::Result<()> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT]);
    let mut signals = signals.context("cannot listen for signals")?;
    let wait = move || {
        for _ in signals.forever() {
            if events.send(ScreenEvent::Signal).is_err() {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(wait).context("cannot start a thread")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::tests::{SECOND, fixture, snapshot};
    use crate::ui::output::style::Shades;
    use anyhow::anyhow;
    use ctrace_core::units::Nanos;
    use tokio::sync::mpsc::unbounded_channel;

    fn all_calls(model: &Model) -> u64 {
        let all = model.known().all().expect("an interval");
        all.figures.report.functions.iter().map(|function| function.calls).sum()
    }

    fn interval() -> ScreenEvent {
        let parts = vec![snapshot(fixture::typical(), SECOND)];
        ScreenEvent::Update(Update::Interval { parts, missed: 2 })
    }

    fn model() -> Model {
        Model::new(Data::new(Some(Nanos::ZERO)), Duration::from_secs(1), Shades::None)
    }

    #[test]
    fn what_a_session_told_before_it_ended_by_itself_is_taken() {
        let (commands, _) = unbounded_channel();
        let source = IntervalSource::Session(commands);
        let (sender, events) = sync_channel(WAITING);
        sender.send(interval()).unwrap();
        let result = Err(anyhow!("the disk is full"));
        sender.send(ScreenEvent::Update(Update::Ended { result, missed: 3 })).unwrap();
        let mut model = model();
        let error = take_rest(&mut model, &source, &events).expect_err("it failed");
        assert_eq!(error.to_string(), "the disk is full");
        assert!(model.ended && all_calls(&model) > 0);
        assert_eq!(model.known().missed, 5);
    }

    #[test]
    fn a_daemon_is_not_waited_for() {
        let (chosen, _choices) = std::sync::mpsc::channel();
        let (sender, events) = sync_channel(WAITING);
        sender.send(interval()).unwrap();
        let mut model = model();
        take_rest(&mut model, &IntervalSource::Daemon(chosen), &events).unwrap();
        assert!(all_calls(&model) > 0);
        drop(sender);
    }
}
