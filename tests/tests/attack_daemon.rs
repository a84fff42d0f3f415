//! Attacks the daemon with slow, silent or greedy clients and targets: later clients are still
//! served.

use ctrace_tests::attack::rounds;
use ctrace_tests::daemon::{Daemon, folder};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::look::wait_until;
use ctrace_tests::process::{Running, run};
use ctrace_tests::prometheus::free_address;
use ctrace_tests::targets::program;
use ctrace_tests::{gate, http, or_skip};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const HICCUP: &str = "[[target]]\nid = \"hiccup\"\nexe = \"DIR/hiccup\"\nfunctions = [\"quick\", \
    \"slow\"]\n";
const LIMIT: Duration = Duration::from_secs(120);
/// Time limit against hangs: a free daemon answers in milliseconds.
const PROMPT: Duration = Duration::from_secs(8);
/// Limit of a line with its end, in bytes.
const LONGEST: usize = 64 << 10;
/// All places of the control socket, and many more.
const CROWDS: [usize; 2] = [16, 200];

fn start(env: &Env, targets: &str) -> Daemon {
    let dir = folder(env, &[("hiccup", &program("hiccup.c"))]).expect("targets build");
    Daemon::start(env, dir, targets).expect("the daemon starts")
}

fn connect(daemon: &Daemon) -> UnixStream {
    UnixStream::connect(daemon.socket()).expect("it listens")
}

/// Returns the answer line, or the part of it before the connection was closed.
fn ask(daemon: &Daemon, line: &[u8]) -> String {
    let mut stream = connect(daemon);
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    // The daemon may refuse before all of it is written.
    let _ = stream.write_all(line);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Checks that `ctrace ctl` is answered, more than once.
fn check_is_served(daemon: &Daemon, beside: &str) {
    for _ in 0..5 {
        let begun = Instant::now();
        let finished = daemon.ctl(&["status"]).expect("runs");
        assert_eq!(finished.shell_code(), 0, "beside {beside}: {}", finished.stderr);
        assert!(begun.elapsed() < PROMPT, "beside {beside}: {:?}", begun.elapsed());
    }
}

#[test]
fn slow_clients_of_the_socket_block_nobody() {
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(&env, HICCUP);
    let is_over = AtomicBool::new(false);
    for crowd in CROWDS {
        let silent: Vec<_> = (0..crowd).map(|_| connect(&daemon)).collect();
        check_is_served(&daemon, &format!("{crowd} that say nothing"));
        drop(silent);

        let slow: Vec<_> = (0..crowd).map(|_| connect(&daemon)).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Connections that were closed meanwhile are ignored.
                let say = |byte: &u8| {
                    slow.iter().for_each(|mut stream| drop(stream.write(&[*byte])));
                    std::thread::sleep(Duration::from_millis(100));
                };
                br#"{"v":1,"do":"status","#.iter().cycle().take_while(|_| !is_over.load(Ordering::Relaxed)).for_each(say);
            });
            check_is_served(&daemon, &format!("{crowd} that say a byte now and then"));
            is_over.store(true, Ordering::Relaxed);
        });
        is_over.store(false, Ordering::Relaxed);

        let deaf: Vec<_> = (0..crowd).map(|_| connect(&daemon)).collect();
        for mut stream in &deaf {
            stream.set_nonblocking(true).expect("ours");
            // The answers fill the kernel's buffers.
            while stream.write(b"{\"v\":1,\"do\":\"targets\"}\n").is_ok_and(|n| n > 0) {}
        }
        check_is_served(&daemon, &format!("{crowd} that read no answer"));
    }
}

#[test]
fn long_requests_leave_room_for_short_ones() {
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(&env, HICCUP);
    let hiccup = daemon.target("hiccup", &[]).expect("starts");
    daemon.wait_until_traced(hiccup.pid()).expect("traced");
    let record = b"{\"v\":1,\"do\":\"record\",\"target\":\"hiccup\",\"seconds\":3600}\n";
    let asked: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = connect(&daemon);
            stream.write_all(record).expect("there is room");
            stream
        })
        .collect();
    check_is_served(&daemon, "40 that want recordings");
    let refused = |mut stream: &UnixStream| {
        let mut answer = [0; 200];
        stream.set_nonblocking(true).expect("ours");
        let len = stream.read(&mut answer).unwrap_or(0);
        String::from_utf8_lossy(&answer[..len]).contains("too many ask at once")
    };
    let mut told = 0;
    wait_until("the others are told", || {
        told += asked.iter().filter(|stream| refused(stream)).count();
        told == 32
    })
    .expect("eight record, the others are told");
    for seconds in ["-1", "1e300", "1e999"] {
        let line = format!("{{\"v\":1,\"do\":\"record\",\"pid\":1,\"seconds\":{seconds}}}\n");
        assert!(ask(&daemon, line.as_bytes()).contains("\"ok\":false"), "{seconds}");
    }
    let (finished, _dir) = daemon.end().expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    assert!(!finished.stderr.contains("a mistake in ctrace"), "{}", finished.stderr);
}

#[test]
fn requests_that_are_no_requests_harm_nobody() {
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(&env, HICCUP);
    let deep = "[".repeat(60_000) + "\n";
    let many = format!(
        "{{\"v\":1,\"do\":\"attach\",\"pid\":1,\"functions\":[{}\"x\"]}}\n",
        "\"\u{1b}\",".repeat(9_000)
    );
    let keys = format!("{{\"v\":1,\"do\":\"status\"{}}}\n", ",\"v\":1".repeat(5_000));
    for garbage in [deep.as_bytes(), many.as_bytes(), keys.as_bytes(), b"\0\0\0\n", b"\xff\n"] {
        let answer = ask(&daemon, garbage);
        assert!(answer.contains("\"ok\":false"), "{answer}");
        assert!(!answer.contains('\u{1b}'), "{answer}");
    }
    for (fits, length) in [(true, LONGEST), (false, LONGEST + 1), (false, 8 << 20)] {
        let line = ask(&daemon, &status_of_length(length));
        let is_status = line.contains("\"ok\":true") && line.contains("\"uptime_s\"");
        let is_refused = line.contains("\"ok\":false") && line.contains("the line is too long");
        assert!(if fits { is_status } else { is_refused }, "{length}: {line}");
        assert!(line.len() < 1_000 && line.ends_with('\n'), "{line}");
        assert_eq!(line.lines().count(), 1, "one answer, whatever was behind: {line}");
    }
    check_is_served(&daemon, "garbage");
}

/// Returns a request of this length, including the line's end.
fn status_of_length(length: usize) -> Vec<u8> {
    let mut line = br#"{"v":1,"do":"status"}"#.to_vec();
    line.resize(length - 1, b' ');
    line.push(b'\n');
    line
}

#[test]
fn only_a_stale_socket_of_its_own_is_replaced() {
    let env = or_skip!(gate::live(Link::Session));
    let place = tempfile::tempdir().expect("a folder");
    let (socket, kept) = (place.path().join("socket"), place.path().join("kept"));
    std::fs::write(&kept, "kept").expect("written");
    let config = place.path().join("ctrace.toml");
    let daemon = |metrics: &str| {
        let text = format!(
            "[daemon]\nsocket = '{}'\nrecordings = '{}'\n[metrics]\nlisten = '{metrics}'\n",
            if metrics == "off" { socket.clone() } else { place.path().join("other") }.display(),
            place.path().display(),
        );
        std::fs::write(&config, text).expect("written");
        let mut command = Command::new(&env.ctrace);
        run(command.arg("daemon").arg("--config").arg(&config), LIMIT).expect("runs")
    };
    let metrics = format!("unix:{}", socket.display());
    for listen in ["off", &metrics] {
        std::fs::copy(&kept, &socket).expect("copied");
        let refused = daemon(listen);
        assert_eq!(refused.shell_code(), 125, "{}", refused.stderr);
        assert!(refused.stderr.contains("no socket"), "{}", refused.stderr);
        std::fs::remove_file(&socket).expect("it is left alone");
        symlink(&kept, &socket).expect("a link");
        assert_eq!(daemon(listen).shell_code(), 125);
        assert!(socket.is_symlink(), "it is left alone");
        std::fs::remove_file(&socket).expect("ours");
        drop(UnixListener::bind(&socket).expect("it listens"));
        std::os::unix::fs::chown(&socket, Some(65534), None).expect("ours");
        let refused = daemon(listen);
        assert!(refused.stderr.contains("user 65534's"), "{}", refused.stderr);
        let found = std::fs::symlink_metadata(&socket).expect("it is left alone");
        assert!(found.file_type().is_socket());
        std::fs::remove_file(&socket).expect("ours");
    }
    assert_eq!(std::fs::read_to_string(&kept).expect("text"), "kept");
}

#[test]
fn slow_scrapers_block_nobody_and_strange_names_get_nothing() {
    let env = or_skip!(gate::live(Link::Session));
    let address = free_address().expect("an address");
    let daemon = start(&env, &format!("[metrics]\nlisten = \"{address}\"\n{HICCUP}"));
    let crowd: Vec<_> =
        (0..200).map(|_| TcpStream::connect(address).expect("it listens")).collect();
    crowd.iter().for_each(|mut stream| drop(stream.write(b"GET /met")));
    for _ in 0..5 {
        let begun = Instant::now();
        http::get(address, "/metrics").expect("it is answered");
        assert!(begun.elapsed() < PROMPT, "{:?}", begun.elapsed());
    }
    drop(crowd);
    for (host, status) in [("evil.example", 421), ("127.0.0.1:80", 200), ("localhost", 200)] {
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert_eq!(answer.contains("process_open_fds"), status == 200, "{answer}");
    }
    check_is_served(&daemon, "scrapers");
}

/// Two daemons begin to listen at the same time, again and again.
#[test]
fn of_two_daemons_at_once_one_is_refused_and_the_other_has_its_socket() {
    let env = or_skip!(gate::live(Link::Session));
    let place = tempfile::tempdir().expect("a folder");
    let (socket, config) = (place.path().join("socket"), place.path().join("ctrace.toml"));
    let text = format!(
        "[daemon]\nsocket = '{}'\nrecordings = '{}'\n[metrics]\nlisten = 'off'\n",
        socket.display(),
        place.path().display(),
    );
    std::fs::write(&config, text).expect("written");
    for _ in 0..rounds(5) {
        let start = || {
            let mut command = Command::new(&env.ctrace);
            Running::start(command.arg("daemon").arg("--config").arg(&config)).expect("starts")
        };
        let mut both = [start(), start()];
        wait_until("one has ended", || both.iter_mut().any(|one| !one.is_running()))
            .expect("one is refused");
        let [mut first, second] = both;
        let (goes_on, refused) = match first.is_running() {
            true => (first, second),
            false => (second, first),
        };
        let refused = refused.wait(LIMIT).expect("it ended");
        assert_eq!(refused.shell_code(), 125, "{}", refused.stderr);
        assert!(refused.stderr.contains("another daemon listens there"), "{}", refused.stderr);
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
        wait_until("the other answers", || UnixStream::connect(&socket).is_ok())
            .expect("it has its socket");
        goes_on.signal(Signal::TERM).expect("it runs");
        let ended = goes_on.wait(LIMIT).expect("it ends");
        assert_eq!(ended.shell_code(), 0, "{}", ended.stderr);
        let names = || std::fs::read_dir(place.path()).expect("there").flatten();
        let names: Vec<_> = names().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["ctrace.toml"], "nothing is left");
    }
}

/// Reading their command lines takes until they end.
#[test]
fn processes_that_do_not_answer_hold_up_no_other() {
    const STUCK: &str = "20";
    let env = or_skip!(gate::live(Link::Session));
    let dir = folder(&env, &[("hiccup", &program("hiccup.c"))]).expect("targets build");
    let _stuck = or_skip!(bottomless(&env, dir.path(), "memory", STUCK));
    let target = "[[target]]\nid = \"hiccup\"\ncommand = \"DIR/hiccup\"\nfunctions = \"quick\"\n";
    let begun = Instant::now();
    let daemon = Daemon::start(&env, dir, target).expect("it starts");
    assert!(begun.elapsed() < PROMPT, "it was held up: {:?}", begun.elapsed());
    let hiccup = daemon.target("hiccup", &[]).expect("starts");
    daemon.wait_until_traced(hiccup.pid()).expect("traced");
    check_is_served(&daemon, "processes that do not answer");
    daemon.end().expect("it ends beside them");
}

#[test]
fn a_file_that_does_not_answer_holds_up_others_for_a_while_only() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = folder(&env, &[("hiccup", &program("hiccup.c"))]).expect("targets build");
    let target = "[[target]]\nid = \"stuck\"\nexe = \"DIR/bottomless\"\nfunctions = \"x@file\"\n";
    let daemon = Daemon::start(&env, dir, &format!("{target}{HICCUP}")).expect("it starts");
    // It ends before the daemon, which could not end if it hung on its file.
    let stuck = or_skip!(bottomless(&env, daemon.dir.path(), "code", "1"));
    // Its child maps the file.
    let reads = || {
        let all = daemon.ask(&["targets"]).expect("it answers");
        let processes = all["targets"][0]["processes"].as_array().cloned().unwrap_or_default();
        processes.iter().any(|one| one["pid"] != stuck.pid() && one["state"] == "starting")
    };
    wait_until("its file is being read", reads).expect("a session begins");
    let hiccup = daemon.target("hiccup", &[]).expect("starts");
    daemon.wait_until_traced(hiccup.pid()).expect("traced");
    assert!(reads(), "it is read still");
    drop(stuck);
    daemon.end().expect("ends");
}

/// Starts processes with memory that never answers.
fn bottomless(env: &Env, dir: &Path, what: &str, children: &str) -> Result<Running, String> {
    let (path, mount) = (dir.join("bottomless"), dir.join("mount"));
    // It is static: to place probes in a library, the kernel locks the memory of all that map it,
    // and every fork waits. Other tests trace libc.
    let build = program("bottomless.c").flag("-static");
    let built = env.targets.get(&build).expect("builds");
    std::fs::copy(built, &path).expect("copied");
    std::fs::create_dir(&mount).expect("made");
    if !Path::new("/dev/fuse").exists() {
        return Err("this machine has no FUSE".into());
    }
    let mut command = Command::new(path);
    Ok(Running::start_ready(command.arg(mount).args([what, children])).expect("starts"))
}
