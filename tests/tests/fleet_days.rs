//! Ten daemons on ten machines of the test's own, for a day in fast motion. Their store is away for a
//! while, two daemons are killed, and a disk is full. In the store is what the targets counted, once.

use anyhow::{Context, Result, ensure};
use ctrace_tests::daemon::{Daemon, folder};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::fleet::{calls_by_host, download, metric, parquet, says, sender, ship_once};
use ctrace_tests::look::{files, wait_until};
use ctrace_tests::machine::Machine;
use ctrace_tests::process::run;
use ctrace_tests::serve::Server;
use ctrace_tests::soak::SmallDisk;
use ctrace_tests::targets::program;
use ctrace_tests::tools::s3::{self, BUCKET, KEY, S3};
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);
const HOSTS: usize = 10;
const KILLED: [usize; 2] = [2, 5];
/// The one whose disk is full at times.
const FULL: usize = 7;
/// Below it are the objects of all hosts.
const PREFIX: &str = "day";
/// Ports that are the same on every machine.
const METRICS: u16 = 9779;
const STORE: u16 = 9000;
const CONFIG: &str = "[fleet]\nfolder = \"TABLES\"\nstore = \"STORE\"\ninterval = \"1s\"\n\
    [metrics]\nlisten = \"127.0.0.1:9779\"\n\
    [[target]]\nid = \"obeys\"\nexe = \"DIR/obeys\"\nfunctions = [\"work\", \"part\"]\n\
    interval = \"300ms\"\n";

/// A machine, its daemon and its target.
struct Host {
    name: String,
    machine: Machine,
    variables: Vec<(String, String)>,
    /// The folders of its tables.
    tables: Vec<PathBuf>,
    target: Server,
    /// `None` while it is killed.
    daemon: Option<Daemon>,
    /// Calls that the target has counted.
    counted: u64,
    /// Calls that must be in the tables, and that may be there besides.
    expected: u64,
    doubtful: u64,
}

fn config(tables: &str) -> String {
    CONFIG.replace("TABLES", tables).replace("STORE", &format!("s3://{BUCKET}/{PREFIX}"))
}

impl Host {
    fn start(env: &Env, number: usize, dir: TempDir, server: &S3) -> Result<Host> {
        let name = format!("web-{number}");
        let machine = Machine::start(&name)?;
        machine.forward(STORE, server.port())?;
        let variables = s3::variables(STORE, KEY);
        let target = Server::start_as(&mut machine.command(&dir.path().join("obeys")))?;
        let place = if number == FULL { "disk/tables" } else { "tables" };
        let tables = vec![dir.path().join(place)];
        let config = config(&format!("DIR/{place}"));
        let daemon = Daemon::start_on(env, &machine, dir, Some(&config), &variables)?;
        daemon.wait_until_traced(target.pid())?;
        let daemon = Some(daemon);
        let (counted, expected, doubtful) = (0, 0, 0);
        Ok(Host { name, machine, variables, tables, target, daemon, counted, expected, doubtful })
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("it runs")
    }

    /// Has the target make calls. Returns how many it counted.
    fn call(&mut self, times: u64) -> u64 {
        let answer = self.target.ask(&times.to_string()).expect("an answer");
        let all = answer.split_whitespace().filter_map(|word| word.parse::<u64>().ok()).sum();
        let before = std::mem::replace(&mut self.counted, all);
        assert_eq!(all - before, 3 * times, "{answer}");
        all - before
    }

    fn traced_calls(&mut self, times: u64) {
        self.expected += self.call(times);
    }

    fn metric(&self, name: &str) -> Option<f64> {
        metric(self.machine.connect(METRICS).ok()?, name)
    }

    /// Waits until the daemon has handed on all calls, up to the last one.
    fn wait_until_reported(&self, calls: u64) {
        let is = |name: &str, least: f64| self.metric(name).is_some_and(|value| value >= least);
        let told = || is("ctrace_function_calls_total", calls as f64);
        wait_until("all calls are reported", told).expect("reported");
        // The next interval is counted when nothing of that one is left to do.
        let intervals = self.metric("ctrace_target_intervals_total").expect("a number");
        let next = || is("ctrace_target_intervals_total", intervals + 1.0);
        wait_until("another interval is over", next).expect("over");
    }

    /// Waits until all calls so far are in files, here or in the store.
    fn wait_until_written(&self, env: &Env, server: &S3) {
        let written = || {
            let all = tables(std::slice::from_ref(self), server).expect("files");
            calls_by_host(env, all.path()).is_ok_and(|calls| {
                calls.get(&self.name).is_some_and(|calls| *calls >= self.expected)
            })
        };
        wait_until("all calls are in files", written).expect("written");
    }

    fn waiting(&self) -> usize {
        self.tables.iter().map(|folder| parquet(folder)).sum()
    }
}

/// Puts the files of hosts, here and in the store, into one folder. One that moves meanwhile is there once.
fn tables(hosts: &[Host], server: &S3) -> Result<TempDir> {
    let all = TempDir::new()?;
    for folder in hosts.iter().flat_map(|host| &host.tables) {
        for file in files(folder).iter().filter(|file| file.extension() == Some("parquet".as_ref()))
        {
            let to = all.path().join(file.strip_prefix(folder)?);
            std::fs::create_dir_all(to.parent().context("a folder")?)?;
            // It is in the store if it is not here any more.
            let _ = std::fs::copy(file, to);
        }
    }
    let names: Vec<String> = hosts.iter().map(|host| format!("host={}", host.name)).collect();
    let is_wanted = |part: &OsStr| names.iter().any(|name| part == &**name);
    download(server, PREFIX, all.path(), |name| name.iter().any(is_wanted))?;
    Ok(all)
}

/// Starts the hosts side by side.
fn start(env: &Env, server: &S3) -> (Vec<Host>, SmallDisk) {
    let dir = || folder(env, &[("obeys", &program("obeys.c"))]).expect("targets build");
    let dirs: Vec<TempDir> = (0..HOSTS).map(|_| dir()).collect();
    let disk = SmallDisk::mount(&dirs[FULL].path().join("disk"), 512).expect("mounted");
    let hosts = std::thread::scope(|scope| {
        let started = dirs.into_iter().enumerate().map(|(number, dir)| {
            scope.spawn(move || Host::start(env, number, dir, server).expect("a host"))
        });
        let started: Vec<_> = started.collect();
        started.into_iter().map(|host| host.join().expect("a host")).collect()
    });
    (hosts, disk)
}

/// Some hours, in which every target makes other calls.
fn hours(hosts: &mut [Host], hours: Range<u64>) {
    for hour in hours {
        for (host, number) in hosts.iter_mut().zip(0..) {
            host.traced_calls(20 + 7 * number + hour);
        }
        std::thread::sleep(Duration::from_millis(400));
    }
}

/// Kills a daemon in an interval in which calls were made, and starts it again when more were made.
fn kill(env: &Env, host: &mut Host, server: &S3) {
    host.wait_until_written(env, server);
    host.doubtful += host.call(50);
    let (_, dir) = host.daemon.take().expect("it runs").kill().expect("ends");
    // Many more than could be doubtful.
    host.call(5_000);
    let daemon = Daemon::start_on(env, &host.machine, dir, None, &host.variables);
    let daemon = daemon.expect("starts again");
    daemon.wait_until_traced(host.target.pid()).expect("traced");
    host.daemon = Some(daemon);
}

/// Has the disk full while nothing on it waits, so that no file can be written from now on.
fn fill(env: &Env, host: &Host, disk: &SmallDisk, server: &S3) {
    host.wait_until_written(env, server);
    let is_failing = || {
        let said = host.daemon().said();
        said.rfind("cannot write tables") > said.rfind("tables can be written")
    };
    let is_full = || {
        disk.fill().expect("full");
        is_failing() && files(&host.tables[0]).is_empty()
    };
    wait_until("no table can be written", is_full).expect("full");
}

/// Rows that never can be written are lost, told and counted, once the daemon has another folder.
fn lose(env: &Env, host: &mut Host, disk: &SmallDisk, server: &S3) {
    fill(env, host, disk, server);
    host.call(300);
    host.wait_until_reported(host.counted);
    let place = host.daemon().path("tables");
    host.daemon().configure(&config("DIR/tables")).expect("written");
    let taken = host.daemon().request(r#"{"v":1,"do":"reload"}"#).expect("answers");
    assert_eq!(taken["ok"], true, "{taken}");
    wait_until("the loss is told", || says(host.daemon(), "are lost")).expect("told");
    let said = host.daemon().said();
    let line = said.lines().find(|line| line.contains("rows of tables could not be written"));
    let words = line.unwrap_or_default().split_whitespace();
    let told: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
    // Two functions, their paths, and the target.
    assert!(told.len() == 1 && told[0] >= 5.0, "{said}");
    assert_eq!(host.metric("ctrace_fleet_rows_lost_total"), Some(told[0]), "{said}");
    assert_eq!(files(&host.tables[0]), Vec::<PathBuf>::new(), "a part of a file");
    host.tables.push(place);
}

/// Ends all daemons, and sends what they had no time for.
fn end(hosts: &mut [Host], sender: &Path, server: &S3) -> Vec<TempDir> {
    hosts.iter().for_each(|host| host.daemon().signal(Signal::TERM).expect("runs"));
    let url = format!("s3://{BUCKET}/{PREFIX}");
    let ended = hosts.iter_mut().map(|host| {
        let (finished, dir) = host.daemon.take().expect("it runs").wait().expect("ends");
        assert_eq!(finished.shell_code(), 0, "{}: {}", host.name, finished.stderr);
        for folder in host.tables.iter().filter(|folder| parquet(folder) > 0) {
            let mut ship = ship_once(sender, folder, &url, &server.variables(KEY));
            let sent = run(&mut ship, LIMIT).expect("runs");
            assert_eq!(sent.shell_code(), 0, "{}", sent.stdout);
        }
        let left: Vec<_> = host.tables.iter().flat_map(|folder| files(folder)).collect();
        assert_eq!(left, Vec::<PathBuf>::new(), "{}: {}", host.name, finished.stderr);
        dir
    });
    ended.collect()
}

fn check(hosts: &[Host], calls: &BTreeMap<String, u64>) -> Result<()> {
    ensure!(calls.len() == HOSTS, "{calls:?}");
    for host in hosts {
        let (least, most) = (host.expected, host.expected + host.doubtful);
        let seen = calls.get(&host.name).copied().unwrap_or(0);
        ensure!((least..=most).contains(&seen), "{}: {seen} not in {least}..={most}", host.name);
    }
    Ok(())
}

#[test]
fn sums_of_a_fleet_are_what_its_targets_counted() {
    let env = or_skip!(gate::live(Link::Session));
    or_skip!(Machine::check());
    let sender = or_skip!(sender(&env));
    let program_of_server = or_skip!(s3::find(Path::new(env!("CARGO_TARGET_TMPDIR"))));
    let kept = TempDir::new().expect("a folder");
    let mut server = S3::start(&program_of_server, kept.path().join("s3")).expect("starts");
    let (mut hosts, disk) = start(&env, &server);
    hours(&mut hosts, 0..6);

    server.kill().expect("it runs");
    disk.fill().expect("full");
    hours(&mut hosts, 6..12);
    for (number, host) in hosts.iter().enumerate() {
        let what = if number == FULL { "cannot write tables" } else { "cannot send tables" };
        wait_until(&format!("{} {what}", host.name), || says(host.daemon(), what)).expect("told");
    }
    std::thread::scope(|scope| {
        let killed = hosts.iter_mut().enumerate().filter(|(number, _)| KILLED.contains(number));
        killed.for_each(|(_, host)| drop(scope.spawn(|| kill(&env, host, &server))));
    });
    disk.make_room().expect("room");
    server.start_again().expect("starts");
    hours(&mut hosts, 12..16);
    let again = || {
        says(hosts[FULL].daemon(), "can be written")
            && says(hosts[FULL].daemon(), "again; no row was lost")
    };
    wait_until("the disk has room", again).expect("written");
    let lost = hosts[FULL].metric("ctrace_fleet_rows_lost_total");
    assert_eq!(lost, Some(0.0), "{}", hosts[FULL].daemon().said());
    lose(&env, &mut hosts[FULL], &disk, &server);
    hours(&mut hosts, 16..24);
    for host in &hosts {
        host.wait_until_written(&env, &server);
        // One more may come at any time.
        wait_until(&format!("what {} has is sent", host.name), || host.waiting() <= 4)
            .expect("sent");
    }
    let _dirs = end(&mut hosts, &sender, &server);
    // It is mounted in one of them.
    drop(disk);
    let all = tables(&hosts, &server).expect("downloaded");
    let calls = calls_by_host(&env, all.path()).expect("tables that can be read");
    check(&hosts, &calls).expect("what the targets counted");
    let untraced: u64 = hosts.iter().map(|host| host.counted - host.expected - host.doubtful).sum();
    assert_eq!(untraced, 2 * 15_000 + 900, "calls that no table may have");
}
