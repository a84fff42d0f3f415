//! The daemon's end of the socket: one thread for each of a few connections. The supervisor makes
//! decisions; slow work is done here.
//!
//! Slow or silent clients keep nobody out: see [`ConnectionPlaces`] and [`Until`].

use super::{
    Ask, ControlAnswer, Handle, Reply, RequestLine, VERSION, gone,
    patience::Until,
    peer,
    underway::{One, Underway},
};
use crate::{
    bpf,
    connections::places::{ConnectionPlace, ConnectionPlaces},
    daemon::{
        event::DaemonEvent,
        hub::Hub,
        recordings::Recordings,
        reports::{Style, style},
        session,
    },
    files::SocketFile,
    session::keep::live::{Command, Snapshot},
    ui,
};
use anyhow::Context;
use ctrace_core::{report::render::json, units::Nanos};
use serde_json::json;
use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
        mpsc::{Sender, channel},
    },
    time::{Duration, Instant},
};
use tokio::sync::{
    Semaphore,
    mpsc::{UnboundedReceiver, unbounded_channel},
};

/// Limit of connections at a time; each has a thread.
const MOST: usize = 16;
/// Limit of connections with requests of unlimited duration.
const MOST_LONG: usize = 8;
/// Limit of a line, in bytes.
const LONGEST: u64 = 64 << 10;
/// The time in which a new connection does not yet give way to another.
const GRACE: Duration = Duration::from_millis(50);
/// Time limit of waiting for a place.
const QUEUE: Duration = Duration::from_secs(1);
/// Time limit of a line, from its first byte to its last, and of the wait for its begin.
const LINE: Duration = Duration::from_secs(10);
/// Time limit of reading an answer.
const ANSWER: Duration = Duration::from_secs(60);
/// Time limit of a session's answer.
const PEEK: Duration = Duration::from_secs(5);
/// The group id that lets no group ask.
const NOBODY: u32 = u32::MAX;
const BUSY: &str = "too many ask at once; try again";

/// A request to the supervisor, and the way back.
pub(crate) struct ControlRequest {
    pub ask: Ask,
    pub answer: Sender<ControlAnswer>,
}

/// The socket, which is removed on drop.
pub(crate) struct Listener {
    file: SocketFile,
    group: Arc<AtomicU32>,
    recording: Arc<Underway>,
}

/// The needs of a connection.
#[derive(Clone)]
struct Shared {
    events: Sender<DaemonEvent>,
    hub: Arc<Hub>,
    recordings: Arc<Mutex<Recordings>>,
    group: Arc<AtomicU32>,
    places: Arc<ConnectionPlaces>,
    long: Arc<Semaphore>,
    recording: Arc<Underway>,
}

impl Listener {
    pub(crate) fn start(
        path: &Path,
        group: Option<u32>,
        events: Sender<DaemonEvent>,
        hub: Arc<Hub>,
        recordings: Arc<Mutex<Recordings>>,
    ) -> anyhow::Result<Self> {
        let (listener, file) = SocketFile::listen(path, group).context("`socket` in [daemon]")?;
        let group = Arc::new(AtomicU32::new(group.unwrap_or(NOBODY)));
        let recording = Arc::new(Underway::default());
        let shared = Shared {
            events,
            hub,
            recordings,
            group: Arc::clone(&group),
            places: ConnectionPlaces::new(MOST, GRACE),
            long: Arc::new(Semaphore::new(MOST_LONG)),
            recording: Arc::clone(&recording),
        };
        std::thread::Builder::new()
            .name("control".into())
            .spawn(move || shared.accept(&listener))
            .context("cannot start a thread")?;
        Ok(Self { file, group, recording })
    }

    /// Ends recordings that somebody waits for, complete up to now, because the daemon ends.
    pub(crate) fn finish(&self, patience: Duration) {
        self.recording.finish(patience);
    }

    /// Sets the group after a change of the configuration.
    pub(crate) fn set_group(&self, group: Option<u32>) {
        self.group.store(group.unwrap_or(NOBODY), Ordering::Relaxed);
        if let Err(error) = self.file.admit(group) {
            ui::say(&error.to_string());
        }
    }
}

impl Shared {
    /// Accepts connections. Work here must be short: others wait behind it.
    fn accept(&self, listener: &UnixListener) {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // No descriptor is left, but some will be soon.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            let stream = Arc::new(stream);
            // Nothing has been sent yet, so there is room for a refusal.
            if let Err(why) = self.admit(&stream) {
                let _ = answer(&*stream, &Reply::error(why));
            }
        }
    }

    /// Gives a client a thread, which finds out whether it is admitted.
    fn admit(&self, stream: &Arc<UnixStream>) -> Result<(), String> {
        let group = self.group.load(Ordering::Relaxed);
        let close = Arc::clone(stream);
        let close = move || drop(close.shutdown(Shutdown::Both));
        let place = self.places.take(QUEUE, close).ok_or(BUSY)?;
        let (shared, stream) = (self.clone(), Arc::clone(stream));
        let serve = move || {
            // Name services may take their time. The socket's mode keeps strangers out meanwhile.
            let admitted = peer::check(&stream, Some(group).filter(|group| *group != NOBODY));
            // A client that went away needs no answer.
            let _ = match admitted {
                Ok(()) => shared.serve(&stream, &place),
                Err(why) => answer(&*stream, &Reply::error(why)),
            };
        };
        let spawned = std::thread::Builder::new().name("asked".into()).spawn(serve);
        spawned.map(drop).map_err(|_| BUSY.to_owned())
    }

    fn serve(&self, stream: &UnixStream, place: &ConnectionPlace) -> std::io::Result<()> {
        let mut reader = BufReader::new(Until::after(LINE, stream));
        loop {
            reader.get_mut().end = Instant::now() + LINE;
            let mut line = String::new();
            let read = reader.by_ref().take(LONGEST).read_line(&mut line);
            let mut out = Until::after(ANSWER, stream);
            match read {
                Ok(0) => return Ok(()),
                Ok(_) if !line.ends_with('\n') => {
                    return answer(out, &Reply::error("the line is too long, or has no end"));
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    return answer(out, &Reply::error("the line is no text"));
                }
                Err(error) => return Err(error),
            }
            if !place.keep() {
                return Ok(());
            }
            let mut underway = None;
            let reply = self.reply(&line, stream, &mut underway);
            if !place.wait() {
                return Ok(());
            }
            out.end = Instant::now() + ANSWER;
            answer(out, &reply)?;
        }
    }

    /// Answers a line. The caller keeps `underway` until the reply has been sent.
    fn reply<'a>(
        &'a self,
        line: &str,
        stream: &UnixStream,
        underway: &mut Option<One<'a>>,
    ) -> Reply {
        let line: RequestLine = match serde_json::from_str(line) {
            Ok(line) => line,
            Err(error) => return Reply::error(format!("not understood: {error}")),
        };
        if line.v != VERSION {
            let ours = format!("this daemon speaks version {VERSION}, not {}", line.v);
            return Reply::error(ours);
        }
        let _long = match is_long(&line.ask).then(|| self.long.try_acquire()) {
            Some(Err(_)) => return Reply::error(BUSY),
            permit => permit,
        };
        let (sender, receiver) = channel();
        let request = ControlRequest { ask: line.ask.clone(), answer: sender };
        let sent = self.events.send(DaemonEvent::Request(request));
        let Ok(answer) = sent.map_err(drop).and_then(|()| receiver.recv().map_err(drop)) else {
            return Reply::error(session::ENDING);
        };
        let sessions = match answer {
            ControlAnswer::Now(reply) => return reply,
            ControlAnswer::Sessions(sessions) => sessions,
        };
        match line.ask {
            Ask::Report { table: true, .. } => self.table(&sessions),
            Ask::Report { full: true, since_ns, .. } => {
                self.look(&sessions, since_ns.unwrap_or(Nanos::MAX))
            }
            Ask::Report { .. } => self.report(&sessions),
            Ask::Record { seconds, .. } => {
                let (stop, commands) = unbounded_channel();
                *underway = self.recording.begin(stop.clone());
                match underway {
                    Some(_) => gone::meanwhile(
                        stream,
                        // Nobody waits for the recording any more.
                        || drop(stop.send(Command::Stop)),
                        || self.record(&sessions, seconds, commands),
                    ),
                    None => Reply::error(session::ENDING),
                }
            }
            _ => Reply::error("a mistake in ctrace; please report it"),
        }
    }

    /// Returns each session's interval so far.
    fn report(&self, sessions: &[Handle]) -> Reply {
        let report = |session: &Handle| {
            let mut snapshot = peek(session)?;
            // Histograms are present if somebody else wants them.
            if !self.hub.extras(&session.target).histograms {
                snapshot.report.histograms = None;
            }
            Some(self.value(session, &snapshot, false))
        };
        Reply::ok(json!({ "reports": sessions.iter().filter_map(report).collect::<Vec<_>>() }))
    }

    /// Returns all data of one session's interval, and the intervals that ended since then.
    fn look(&self, sessions: &[Handle], since: Nanos) -> Reply {
        let session = match only(sessions) {
            Ok(session) => session,
            Err(refused) => return refused,
        };
        session.looks.look(bpf::now());
        let Some(snapshot) = peek(session) else { return Reply::ok(json!({ "reports": [] })) };
        let ended = session.looks.ended(since, snapshot.report.start_ns);
        let mut reports: Vec<_> =
            ended.iter().map(|ended| self.value(session, ended, true)).collect();
        reports.push(self.value(session, &snapshot, true));
        Reply::ok(json!({ "reports": reports }))
    }

    fn value(&self, session: &Handle, snapshot: &Snapshot, full: bool) -> serde_json::Value {
        style::value(&self.hub.header(&session.target.id, session.id), snapshot, full)
    }

    /// Returns the interval so far, for people.
    fn table(&self, sessions: &[Handle]) -> Reply {
        let mut text = String::new();
        for session in sessions {
            let Some(snapshot) = peek(session) else { continue };
            let style = Style::of(&session.target.reports).unwrap_or_default();
            let header = self.hub.header(&session.target.id, session.id);
            match style.table(&header, &snapshot) {
                Ok(table) => text += &table,
                Err(error) => return Reply::error(format!("{error:#}")),
            }
        }
        Reply::ok(json!({ "text": text }))
    }

    /// Starts recording sessions beside the existing ones.
    fn record(
        &self,
        sessions: &[Handle],
        seconds: f64,
        commands: UnboundedReceiver<Command>,
    ) -> Reply {
        let session = match only(sessions) {
            Ok(session) => session,
            Err(refused) => return refused,
        };
        let Ok(time) = Duration::try_from_secs_f64(seconds) else {
            return Reply::error("the time makes no sense");
        };
        let place = lock(&self.recordings).next(&session.target.id, session.pid, "asked");
        let recorded = place.and_then(|place| {
            session::record(&session.target.what, session.pid, &place, time, commands)?;
            Ok(place)
        });
        lock(&self.recordings).prune(&session.target.id);
        match recorded {
            Ok(place) => Reply::ok(json!({ "file": place.path.display().to_string() })),
            Err(error) => Reply::error(format!("{error:#}")),
        }
    }
}

/// Returns whether it waits for something other than the daemon.
fn is_long(ask: &Ask) -> bool {
    matches!(ask, Ask::Attach { .. } | Ask::Detach { .. } | Ask::Record { .. })
}

/// Returns the only session, for requests that take one.
fn only(sessions: &[Handle]) -> Result<&Handle, Reply> {
    let [session] = sessions else {
        let pids: Vec<String> = sessions.iter().map(|s| s.pid.0.to_string()).collect();
        return Err(Reply::error(format!("which process? Give one of {}", pids.join(", "))));
    };
    Ok(session)
}

/// Returns a session's interval so far; `None` if it is over or does not answer.
fn peek(session: &Handle) -> Option<Snapshot> {
    let (sender, receiver) = channel();
    let peek = Command::Peek(Box::new(move |snapshot| drop(sender.send(snapshot))));
    session.commands.send(peek).ok()?;
    receiver.recv_timeout(PEEK).ok()
}

fn lock(recordings: &Mutex<Recordings>) -> std::sync::MutexGuard<'_, Recordings> {
    recordings.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(mut to: impl Write, reply: &Reply) -> std::io::Result<()> {
    to.write_all(json::line(reply).as_bytes())
}
