//! The daemon's end of the socket: a thread for each of a few connections. What needs a decision
//! goes to the supervisor; what takes time is done here.

use super::{
    Answer, Ask, Handle, Line, Reply, VERSION, peer,
    underway::{One, Underway},
};
use crate::{
    bpf,
    daemon::{
        Event,
        hub::Hub,
        recordings::Recordings,
        reports::{Style, style},
        session,
    },
    session::live::{Command, Snapshot},
    ui,
};
use anyhow::{Context, bail};
use ctrace_core::{export::json, units::Nanos};
use serde_json::json;
use std::{
    fs::Permissions,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    os::unix::{
        fs::{PermissionsExt, chown},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicUsize, Ordering},
        mpsc::{Sender, channel},
    },
    time::Duration,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Connections at a time; each has a thread.
const MOST: usize = 16;
/// Of a line.
const LONGEST: u64 = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(60);
/// For a session to say what it has.
const PEEK: Duration = Duration::from_secs(5);
/// That no group may ask.
const NOBODY: u32 = u32::MAX;

/// To the supervisor, and the way back.
pub struct Request {
    pub ask: Ask,
    pub answer: Sender<Answer>,
}

/// The socket; it is removed with this.
pub struct Listener {
    path: PathBuf,
    group: Arc<AtomicU32>,
    recording: Arc<Underway>,
}

/// What a connection needs.
#[derive(Clone)]
struct Shared {
    events: Sender<Event>,
    hub: Arc<Hub>,
    recordings: Arc<Mutex<Recordings>>,
    group: Arc<AtomicU32>,
    open: Arc<AtomicUsize>,
    recording: Arc<Underway>,
}

impl Listener {
    pub fn start(
        path: &Path,
        group: Option<u32>,
        events: Sender<Event>,
        hub: Arc<Hub>,
        recordings: Arc<Mutex<Recordings>>,
    ) -> anyhow::Result<Self> {
        let listener = bind(path, group)?;
        let group = Arc::new(AtomicU32::new(group.unwrap_or(NOBODY)));
        let open = Arc::new(AtomicUsize::new(0));
        let recording = Arc::new(Underway::default());
        let shared = Shared {
            events,
            hub,
            recordings,
            group: Arc::clone(&group),
            open,
            recording: Arc::clone(&recording),
        };
        std::thread::Builder::new()
            .name("control".into())
            .spawn(move || shared.accept(&listener))
            .context("cannot start a thread")?;
        Ok(Self { path: path.to_owned(), group, recording })
    }

    /// The daemon ends: so do the recordings that somebody waits for, whole up to here.
    pub fn finish(&self, patience: Duration) {
        self.recording.finish(patience);
    }

    /// The configuration has changed.
    pub fn set_group(&self, group: Option<u32>) {
        self.group.store(group.unwrap_or(NOBODY), Ordering::Relaxed);
        if let Err(error) = admit(&self.path, group) {
            ui::say(&format!("{}: {error}", self.path.display()));
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Somebody may have been quicker.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn bind(path: &Path, group: Option<u32>) -> anyhow::Result<UnixListener> {
    let place = || format!("cannot listen at {} (`socket` in [daemon])", path.display());
    if UnixStream::connect(path).is_ok() {
        bail!("another daemon listens at {}; end it first", path.display());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(place)?;
    }
    // Left behind by a daemon that was killed; nobody listens there.
    match std::fs::symlink_metadata(path) {
        Ok(meta) if std::os::unix::fs::FileTypeExt::is_socket(&meta.file_type()) => {
            std::fs::remove_file(path).with_context(place)?;
        }
        _ => {}
    }
    let listener = UnixListener::bind(path).with_context(place)?;
    admit(path, group).with_context(place)?;
    Ok(listener)
}

/// The mode keeps strangers from connecting; who does is checked again.
fn admit(path: &Path, group: Option<u32>) -> std::io::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(0o660))?;
    chown(path, None, Some(group.unwrap_or(0)))
}

impl Shared {
    fn accept(&self, listener: &UnixListener) {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // No descriptor is left: some will be soon.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            if self.open.fetch_add(1, Ordering::AcqRel) >= MOST {
                self.open.fetch_sub(1, Ordering::AcqRel);
                let _ = answer(&stream, &Reply::error("too many ask at once; try again"));
                continue;
            }
            let shared = self.clone();
            let spawned = std::thread::Builder::new().name("asked".into()).spawn(move || {
                // Who went away needs no answer.
                let _ = shared.serve(&stream);
                shared.open.fetch_sub(1, Ordering::AcqRel);
            });
            if spawned.is_err() {
                self.open.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }

    fn serve(&self, stream: &UnixStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let group = self.group.load(Ordering::Relaxed);
        let checked = peer::check(stream, Some(group).filter(|group| *group != NOBODY));
        let mut reader = BufReader::new(stream);
        loop {
            let mut line = String::new();
            match reader.by_ref().take(LONGEST).read_line(&mut line) {
                Ok(0) => return Ok(()),
                Ok(_) if !line.ends_with('\n') => {
                    return answer(stream, &Reply::error("the line is too long, or has no end"));
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    return answer(stream, &Reply::error("the line is no text"));
                }
                Err(error) => return Err(error),
            }
            if let Err(why) = checked {
                // Only now: who is still writing would not read the answer.
                return answer(stream, &Reply::error(why));
            }
            let mut underway = None;
            let reply = self.reply(&line, &mut underway);
            answer(stream, &reply)?;
        }
    }

    /// `underway` is to be kept until the reply has been sent.
    fn reply<'a>(&'a self, line: &str, underway: &mut Option<One<'a>>) -> Reply {
        let line: Line = match serde_json::from_str(line) {
            Ok(line) => line,
            Err(error) => return Reply::error(format!("not understood: {error}")),
        };
        if line.v != VERSION {
            let ours = format!("this daemon speaks version {VERSION}, not {}", line.v);
            return Reply::error(ours);
        }
        let (sender, receiver) = channel();
        let request = Request { ask: line.ask.clone(), answer: sender };
        let sent = self.events.send(Event::Request(request));
        let Ok(answer) = sent.map_err(drop).and_then(|()| receiver.recv().map_err(drop)) else {
            return Reply::error(session::ENDING);
        };
        let sessions = match answer {
            Answer::Now(reply) => return reply,
            Answer::Sessions(sessions) => sessions,
        };
        match line.ask {
            Ask::Report { table: true, .. } => self.table(&sessions),
            Ask::Report { full: true, since_ns, .. } => {
                self.look(&sessions, since_ns.unwrap_or(Nanos::MAX))
            }
            Ask::Report { .. } => self.report(&sessions),
            Ask::Record { seconds, .. } => {
                let (stop, commands) = unbounded_channel();
                *underway = self.recording.begin(stop);
                match underway {
                    Some(_) => self.record(&sessions, seconds, commands),
                    None => Reply::error(session::ENDING),
                }
            }
            _ => Reply::error("a mistake in ctrace; please report it"),
        }
    }

    /// What each session has of its interval so far.
    fn report(&self, sessions: &[Handle]) -> Reply {
        let report = |session: &Handle| {
            let mut snapshot = peek(session)?;
            // They are there when somebody else wants them, too.
            if !self.hub.extras(&session.target).histograms {
                snapshot.report.histograms = None;
            }
            Some(self.value(session, &snapshot, false))
        };
        Reply::ok(json!({ "reports": sessions.iter().filter_map(report).collect::<Vec<_>>() }))
    }

    /// The same of one session with all that is known, after the intervals that ended since then.
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

    /// The interval so far, for people.
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

    /// Sessions of their own, which record; those there are go on.
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
        lock(&self.recordings).prune();
        match recorded {
            Ok(place) => Reply::ok(json!({ "file": place.path.display().to_string() })),
            Err(error) => Reply::error(format!("{error:#}")),
        }
    }
}

/// For what takes one.
fn only(sessions: &[Handle]) -> Result<&Handle, Reply> {
    let [session] = sessions else {
        let pids: Vec<String> = sessions.iter().map(|s| s.pid.0.to_string()).collect();
        return Err(Reply::error(format!("which process? Give one of {}", pids.join(", "))));
    };
    Ok(session)
}

/// What a session has of its interval so far; nothing if it is over, or does not answer.
fn peek(session: &Handle) -> Option<Snapshot> {
    let (sender, receiver) = channel();
    let peek = Command::Peek(Box::new(move |snapshot| drop(sender.send(snapshot))));
    session.commands.send(peek).ok()?;
    receiver.recv_timeout(PEEK).ok()
}

fn lock(recordings: &Mutex<Recordings>) -> std::sync::MutexGuard<'_, Recordings> {
    recordings.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(mut stream: &UnixStream, reply: &Reply) -> std::io::Result<()> {
    stream.write_all(json::line(reply).as_bytes())
}
