//! The terminal: taken over by the screen, and restored however it ends.

use crate::top::{held::Held, run::ScreenEvent, view::Drawn};
use crate::ui::{output::terminal, text::ascii};
use anyhow::{Context, bail};
use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::{Hide, Show},
        event, execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
    text::Text,
};
use std::{
    io::{self, Stdout},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
        mpsc::SyncSender,
    },
};

/// Fails unless there is a terminal that can show a screen.
pub(crate) fn check() -> anyhow::Result<()> {
    const INSTEAD: &str = "`ctrace attach PID --interval 1` reports without one";
    if !rustix::termios::isatty(io::stdin()) || !rustix::termios::isatty(io::stdout()) {
        bail!("top needs a terminal for input and output; {INSTEAD}");
    }
    let term = std::env::var("TERM").unwrap_or_default();
    if term.is_empty() || term == "dumb" {
        bail!("top needs a terminal that can move its cursor, and TERM is '{term}'; {INSTEAD}");
    }
    Ok(())
}

/// True while the screen is up.
static IS_UP: AtomicBool = AtomicBool::new(false);

pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// True if it shows ASCII only.
    ascii: bool,
    /// Dropped last, so that the held lines appear below the screen.
    _held: Held,
}

impl Screen {
    /// Opens the screen. Keys, sizes and lines of stderr go to `events`.
    pub(super) fn open(events: SyncSender<ScreenEvent>) -> anyhow::Result<Self> {
        let held = Held::begin(events.clone())?;
        leave_on_panic(&held)?;
        enable_raw_mode().context("cannot take the terminal")?;
        IS_UP.store(true, Ordering::SeqCst);
        let opened = (|| -> io::Result<_> {
            execute!(io::stdout(), EnterAlternateScreen, Hide)?;
            Terminal::new(CrosstermBackend::new(io::stdout()))
        })();
        let terminal = opened.inspect_err(|_| leave()).context("cannot take the terminal")?;
        listen(events)?;
        let ascii = terminal::detect(io::stdout()).ascii;
        Ok(Self { terminal, ascii, _held: held })
    }

    pub(super) fn size(&self) -> (usize, usize) {
        let size = self.terminal.size().unwrap_or_default();
        (usize::from(size.width), usize::from(size.height))
    }

    pub(super) fn draw(&mut self, drawn: Drawn) -> anyhow::Result<()> {
        if !IS_UP.load(Ordering::SeqCst) {
            // Another thread has panicked, and its message is being written.
            return Ok(());
        }
        let mut lines = drawn.lines;
        if self.ascii {
            let spans = lines.iter_mut().flat_map(|line| &mut line.spans);
            spans.for_each(|span| span.content = ascii::plain(&span.content).into());
        }
        let text = Text::from(lines);
        let drawn = self.terminal.draw(|frame| frame.render_widget(text, frame.area()));
        drawn.map(drop).context("cannot write to the terminal")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Restores the terminal, once. A failure cannot be helped.
fn leave() {
    if IS_UP.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Leaves the screen before a panic's message, so that it is visible.
fn leave_on_panic(held: &Held) -> anyhow::Result<()> {
    static HOOK: Once = Once::new();
    let stderr = held.stderr().context("stderr is closed")?;
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            if IS_UP.load(Ordering::SeqCst) {
                leave();
                let _ = rustix::stdio::dup2_stderr(&stderr);
            }
            before(what);
        }));
    });
    Ok(())
}

/// Starts the thread that waits for keys and new sizes.
fn listen(events: SyncSender<ScreenEvent>) -> anyhow::Result<()> {
    let read = move || {
        loop {
            let event = match event::read() {
                Ok(event::Event::Key(key)) => ScreenEvent::Key(key),
                Ok(event::Event::Resize(..)) => ScreenEvent::Resized,
                Ok(_) => continue,
                Err(error) => {
                    // If the screen is gone, nobody needs the event.
                    let _ = events.send(ScreenEvent::Deaf(error));
                    return;
                }
            };
            if events.send(event).is_err() {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("keys".into());
    thread.spawn(read).context("cannot start a thread")?;
    Ok(())
}
