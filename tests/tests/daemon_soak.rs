//! Runs everything at once for a while: targets that start, end, are killed or end at once, good
//! and broken reloads, overflowing rings, a full disk, and a killed daemon. Resources must stay at
//! their level after the first rounds. Every call that a target counted must be in the reports. A
//! killed daemon may leave nothing behind.
//!
//! Short by default. For more starts of targets and more time: `CTRACE_SOAK_STARTS=10000
//! CTRACE_SOAK_SECONDS=60 cargo test --release -p ctrace-tests --test daemon_soak`.

use ctrace_tests::daemon::{Daemon, folder, reports};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::look::wait_until;
use ctrace_tests::probes::changed_bytes;
use ctrace_tests::process::Running;
use ctrace_tests::soak::{Held, Ledger, SmallDisk, Sum, bpf_objects, still_there};
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const TARGETS: &str = "[defaults]\ninterval = \"200ms\"\nmax_processes = 16\n\
    [[target]]\nid = \"worker\"\nexe = \"DIR/worker\"\nfunctions = \"work\"\n\
    output = \"DIR/worker.jsonl\"\nrotate_size = \"4G\"\nkeep_bytes = \"4G\"\n\
    [[target]]\nid = \"burst\"\nexe = \"DIR/burst\"\nfunctions = \"work\"\nring_size = \"4K\"\n\
    output = \"DIR/burst.jsonl\"\nrotate_size = \"4G\"\nkeep_bytes = \"4G\"\n\
    [[target]]\nid = \"hiccup\"\nexe = \"DIR/hiccup\"\nfunctions = [\"quick\", \"slow\"]\n\
    output = \"DIR/hiccup.jsonl\"\nrotate_size = \"1M\"\nkeep_files = 3\n\
    slow = \"100ms\"\nslow_pause = \"1s\"\n\
    [[target]]\nid = \"full\"\nexe = \"DIR/full\"\nfunctions = \"quick\"\n\
    output = \"DIR/disk/full.jsonl\"\nrotate_size = \"16K\"\nkeep_files = 2\n";

const WORKERS: u64 = 6;
/// Calls in a burst.
const CALLS: u64 = 50_000;
const LIMIT: Duration = Duration::from_secs(30);

/// A target that counts its calls in a file.
struct Worker {
    running: Running,
    counts: PathBuf,
    session: u64,
}

impl Worker {
    fn start(daemon: &Daemon, name: &str, number: u64, arguments: &[&str]) -> Worker {
        let counts = daemon.path(&format!("counts-{number}"));
        let path = counts.display().to_string();
        let all: Vec<&str> = std::iter::once(path.as_str()).chain(arguments.to_vec()).collect();
        let running = daemon.target(name, &all).expect("starts");
        Worker { running, counts, session: 0 }
    }

    fn counted(&self) -> u64 {
        counted(&self.counts)
    }

    fn end(self, signal: Signal) -> (PathBuf, u64) {
        self.running.signal(signal).expect("runs");
        self.running.wait(LIMIT).expect("ends");
        (self.counts, self.session)
    }
}

fn counted(file: &Path) -> u64 {
    let bytes = fs::read(file).expect("a count");
    u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes"))
}

/// One daemon, and its state.
struct Soak<'a> {
    env: &'a Env,
    disk: SmallDisk,
    daemon: Daemon,
    workers: Ledger,
    bursts: Ledger,
    starts: u64,
    lost: u64,
    /// A source of numbers that repeat in each run.
    dice: u64,
}

impl Soak<'_> {
    fn dice(&mut self, sides: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.dice >> 33) % sides
    }

    fn start(&mut self, name: &str, arguments: &[&str]) -> Worker {
        self.starts += 1;
        Worker::start(&self.daemon, name, self.starts, arguments)
    }

    /// Starts as much as fits, and ends with nothing traced.
    fn round(&mut self, number: u64) {
        let mut workers: Vec<Worker> =
            (0..WORKERS).map(|_| self.start("worker", &["500"])).collect();
        let mut burst = self.start("burst", &["0", &CALLS.to_string()]);
        let others = ["hiccup", "full"].map(|name| self.daemon.target(name, &[]).expect("starts"));
        self.starts += 2;
        // Over before anything can be attached, or meanwhile.
        for _ in 0..2 {
            let brief = self.start("worker", &["0"]);
            let pause = self.dice(60);
            std::thread::sleep(Duration::from_millis(pause));
            let (counts, _) = brief.end(Signal::KILL);
            fs::remove_file(counts).expect("there");
        }
        self.find(&mut workers, &mut burst);
        for worker in workers.iter().chain([&burst]) {
            worker.running.signal(Signal::USR1).expect("runs");
        }
        self.disturb(number);
        let pause = self.dice(500);
        std::thread::sleep(Duration::from_millis(pause));
        wait_until("all calls are made", || burst.counted() == CALLS).expect("made");
        let ended: Vec<_> = workers
            .into_iter()
            .map(|worker| {
                let signal = if self.dice(2) == 0 { Signal::KILL } else { Signal::TERM };
                (worker.end(signal), signal)
            })
            .collect();
        let (_, burst) = burst.end(Signal::TERM);
        for other in others {
            other.signal(Signal::KILL).expect("runs");
            other.wait(LIMIT).expect("ends");
        }
        wait_until("all are let go", || self.daemon.sessions().is_empty()).expect("let go");
        for ((counts, session), signal) in ended {
            self.check_worker(session, counted(&counts), signal);
            fs::remove_file(counts).expect("there");
        }
        self.check_burst(burst);
        self.workers.check().expect("end to end");
        self.bursts.check().expect("end to end");
    }

    /// Checks that none is lost.
    fn find(&mut self, workers: &mut [Worker], burst: &mut Worker) {
        for worker in workers.iter_mut().chain([burst]) {
            let pid = worker.running.pid();
            let found = || self.daemon.sessions().get(&pid).map(|id| worker.session = *id);
            let mut found = found;
            wait_until("the target is traced", || found().is_some()).expect("found");
        }
    }

    fn disturb(&mut self, number: u64) {
        let before = self.daemon.sessions();
        match number % 5 {
            0 => self.daemon.signal(Signal::HUP).expect("runs"),
            1 => {
                let lost = self.reports_lost();
                // Repeated, because removed old reports make room.
                wait_until("reports are lost", || {
                    self.disk.fill().expect("full");
                    self.reports_lost() > lost
                })
                .expect("lost");
            }
            2 => {
                self.daemon.configure(&TARGETS.replace("quick", "\nbroken")).expect("written");
                let refused = self.daemon.request(r#"{"v":1,"do":"reload"}"#).expect("answers");
                assert_eq!(refused["ok"], false, "{refused}");
                self.daemon.configure(TARGETS).expect("written");
                let taken = self.daemon.request(r#"{"v":1,"do":"reload"}"#).expect("answers");
                assert_eq!(taken["ok"], true, "{taken}");
            }
            3 => {
                self.disk.make_room().expect("room");
                let path = self.daemon.path("disk/full.jsonl");
                let length = || fs::metadata(&path).map_or(0, |data| data.len());
                let before = length();
                wait_until("reports are written again", || length() != before).expect("written");
            }
            _ => {}
        }
        let after = self.daemon.sessions();
        assert!(before.iter().all(|(pid, id)| after.get(pid) == Some(id)), "{before:?} {after:?}");
    }

    fn reports_lost(&self) -> u64 {
        let status = self.daemon.request(r#"{"v":1,"do":"status"}"#).expect("answers");
        status["reports_lost"].as_u64().expect("a number")
    }

    /// A killed one can be between a call's beginning and its counting.
    fn check_worker(&mut self, session: u64, counted: u64, signal: Signal) {
        let most = counted + u64::from(signal == Signal::KILL);
        let mut sum = Sum::default();
        let ledger = &mut self.workers;
        let told = wait_until("the reports are there", || {
            ledger.read("work").expect("sound reports");
            sum = ledger.sum(session);
            sum.calls >= counted
        });
        assert!(told.is_ok() && sum.calls <= most, "session {session}: {sum:?} of {counted}");
        assert_eq!(sum.lost, 0, "session {session}");
    }

    /// Its rings are far too small: reports count the missing calls as lost.
    fn check_burst(&mut self, session: u64) {
        // The ends of the process and of its thread.
        const OTHERS: u64 = 2;
        let (ledger, mut sum) = (&mut self.bursts, Sum::default());
        let events = |sum: Sum| sum.calls + sum.ends + sum.lost;
        let told = wait_until("the reports are there", || {
            ledger.read("work").expect("sound reports");
            sum = ledger.sum(session);
            events(sum) + sum.untimed >= 2 * CALLS
        });
        let most = 2 * CALLS + OTHERS;
        assert!(told.is_ok() && events(sum) <= most, "session {session}: {sum:?}");
        self.lost += sum.lost;
    }

    /// Kills the daemon, which leaves no trace. Another one takes its place and its targets.
    fn kill(mut self) -> Self {
        let mut target = self.start("worker", &["100"]);
        let mut burst = self.start("burst", &["0", "1"]);
        self.find(std::slice::from_mut(&mut target), &mut burst);
        let objects = bpf_objects(self.daemon.pid());
        for kind in ["map", "prog", "link"] {
            assert!(objects.iter().any(|object| object.starts_with(kind)), "{objects:?}");
        }
        let (_, dir) = self.daemon.kill().expect("ends");
        let path = dir.path().join("worker");
        wait_until("the probes are gone", || {
            changed_bytes(target.running.pid(), &path).is_ok_and(|bytes| bytes.is_empty())
        })
        .expect("gone");
        let checker = self.env.targets.get(&program("bpf_left.c")).expect("builds");
        let mut left = Vec::new();
        let gone = wait_until("its programs, maps and links are gone", || {
            left = still_there(&checker, &objects).expect("checked");
            left.is_empty()
        });
        assert!(gone.is_ok(), "of {} objects: {left:?}", objects.len());
        self.workers = Ledger::of(&dir.path().join("worker.jsonl"));
        self.bursts = Ledger::of(&dir.path().join("burst.jsonl"));
        self.daemon = Daemon::start_again(self.env, dir).expect("starts again");
        self.find(std::slice::from_mut(&mut target), &mut burst);
        for worker in [target, burst] {
            worker.end(Signal::KILL);
        }
        wait_until("all are let go", || self.daemon.sessions().is_empty()).expect("let go");
        self
    }

    /// Returns the daemon's resources with nothing to trace, once the last threads are gone.
    fn held(&self, first: Option<Held>) -> Held {
        let pid = self.daemon.pid();
        let Some(first) = first else { return settled(pid) };
        let _ = wait_until("it is as before", || is_flat(first, Held::by(pid)));
        Held::by(pid)
    }
}

/// Returns them after a second without any ending.
fn settled(pid: i32) -> Held {
    let mut least = Held::by(pid);
    let _ = wait_until("nothing more ends", || {
        std::thread::sleep(Duration::from_secs(1));
        let now = Held::by(pid);
        let before = std::mem::replace(&mut least, now);
        now.files >= before.files && now.threads >= before.threads
    });
    least
}

/// Compares with tolerance: report files come and go, and are reopened after a failure.
fn is_flat(first: Held, now: Held) -> bool {
    now.files <= first.files + 2 && now.threads <= first.threads
}

fn number_of(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn all_stays_flat() {
    let env = or_skip!(gate::live(Link::Session));
    let starts = number_of("CTRACE_SOAK_STARTS", 60);
    let end = Instant::now() + Duration::from_secs(number_of("CTRACE_SOAK_SECONDS", 0));
    let (worker, hiccup) = (program("worker.c"), program("hiccup.c"));
    let copies = [("worker", &worker), ("burst", &worker), ("hiccup", &hiccup), ("full", &hiccup)];
    let dir = folder(&env, &copies).expect("targets build");
    let disk = SmallDisk::mount(&dir.path().join("disk"), 64).expect("mounted");
    let (workers, bursts) =
        (Ledger::of(&dir.path().join("worker.jsonl")), Ledger::of(&dir.path().join("burst.jsonl")));
    let daemon = Daemon::start(&env, dir, TARGETS).expect("the daemon starts");
    let mut soak = Soak { env: &env, disk, daemon, workers, bursts, starts: 0, lost: 0, dice: 0 };
    let mut number = 0;
    while soak.starts < starts || Instant::now() < end {
        // The rounds for each daemon make at least half of all starts.
        for _ in 0..2 {
            soak.round(number);
            number += 1;
        }
        let first = soak.held(None);
        let until = soak.starts + starts / 4;
        while soak.starts < until {
            soak.round(number);
            number += 1;
        }
        let last = soak.held(Some(first));
        println!("{} starts in {number} rounds: {first:?}, then {last:?}", soak.starts);
        assert!(is_flat(first, last), "{first:?} {last:?}");
        assert!(last.kilobytes <= first.kilobytes + (16 << 10), "{first:?} {last:?}");
        assert!(last.kilobytes < 32 << 10, "{last:?}");
        soak = soak.kill();
    }
    assert!(soak.lost > 0, "no ring was full");
    println!("{} events lost and told", soak.lost);
    let (finished, dir) = soak.daemon.end().expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    for name in ["hiccup.jsonl", "disk/full.jsonl"] {
        let text = fs::read_to_string(dir.path().join(name)).expect("reports");
        reports(&text).expect("whole lines");
    }
}
