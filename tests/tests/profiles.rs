//! Receives profiles of a live target as a collector, Pyroscope and Parca do.

use ctrace_tests::daemon::{Daemon, folder};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::http::{self, Collector};
use ctrace_tests::look::wait_until;
use ctrace_tests::process::Finished;
use ctrace_tests::profiles::Stacks;
use ctrace_tests::prometheus::free_address;
use ctrace_tests::targets::program;
use ctrace_tests::truth::Truth;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const LIMIT: Duration = Duration::from_secs(120);
/// The name of the target's file.
const EVIL: &str = "ev\u{1b}]0;x\u{7},}{=il";

/// Starts a daemon that sends profiles every 300 ms.
fn start(env: &Env, tables: &str) -> Daemon {
    let dir = folder(env, &[(EVIL, &program("profiled.c"))]).expect("the target builds");
    let target = "[[target]]\nid = \"shop\"\nexe = \"DIR/ev*\"\ninterval = \"300ms\"\n\
        functions = [\"outer\", \"middle\", \"leaf\", \"nap\"]\nreport = \"none\"\n";
    Daemon::start(env, dir, &format!("{tables}{target}")).expect("the daemon starts")
}

/// Runs the target from its first traced call to its end.
fn run(daemon: &Daemon) -> Finished {
    let target = daemon.target(EVIL, &[]).expect("starts");
    daemon.wait_until_traced(target.pid()).expect("traced");
    target.signal(Signal::USR1).expect("it waits");
    let finished = target.wait(LIMIT).expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    finished
}

/// Checks that the stacks have each call that the target counted, and the time that it measured.
fn check(stacks: &Stacks, finished: &Finished) {
    let truth = Truth::parse(&finished.stdout);
    assert_eq!(truth.calls.len(), 4, "{}", finished.stdout);
    for (name, calls) in &truth.calls {
        assert_eq!(stacks.of(name)[0], *calls, "{name}: {stacks:?}");
    }
    let [(nap, least)] = &truth.least_time[..] else { panic!("{truth:?}") };
    assert!(stacks.of(nap)[1] >= *least, "{least} ns: {stacks:?}");
    // Own time of `outer` is without that of `nap`.
    assert!(stacks.of("outer")[1] < *least, "{stacks:?}");
    let stack = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let wanted = [&["outer"][..], &["nap", "outer"], &["leaf", "outer"], &["middle", "outer"]];
    let mut wanted: Vec<_> = wanted.into_iter().map(stack).collect();
    wanted.push(stack(&["leaf", "middle", "outer"]));
    wanted.sort();
    assert_eq!(stacks.0.keys().cloned().collect::<Vec<_>>(), wanted);
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64
}

fn number(address: SocketAddr, metric: &str) -> u64 {
    let text = http::get(address, "/metrics").expect("answers");
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{metric} ")));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn profiles_have_every_call_that_the_target_counted() {
    let env = or_skip!(gate::live(Link::Session));
    let [otlp, pyroscope, parca] = [(); 3].map(|()| Collector::start().expect("listens"));
    let metrics = free_address().expect("one");
    let daemon = start(
        &env,
        &format!(
            "[metrics]\nlisten = \"{metrics}\"\notlp_profiles = \"http://{}\"\n\
             [pprof]\npyroscope = \"http://{}/tenant\"\nparca = \"http://{}\"\nlabels = \"env=t\"\n",
            otlp.address, pyroscope.address, parca.address
        ),
    );
    let begun = now_ns();
    let finished = run(&daemon);
    let mut sent = 0;
    wait_until("all are sent", || {
        sent = number(metrics, "ctrace_otlp_profiles_total");
        sent >= 5
            && number(metrics, "ctrace_pprof_profiles_total") == 2 * sent
            && daemon.sessions().is_empty()
    })
    .expect("sent");
    let (ended, _dir) = daemon.end().expect("ends");
    assert_eq!(ended.shell_code(), 0, "{}", ended.stderr);
    assert!(!ended.stderr.contains("profiles"), "{}", ended.stderr);

    let [mut exported, mut ingested, mut written] = [(); 3].map(|()| Stacks::default());
    let mut before = begun;
    for _ in 0..sent {
        let post = otlp.post().expect("an export");
        assert_eq!(post.path, "/v1development/profiles");
        let (from, to) = exported.add_otlp(&post.body).expect("a profile");
        // The two clocks are compared anew for each profile.
        assert!(before <= from + 1_000_000 && from < to, "{before} {from} {to}");
        assert!(to <= now_ns(), "{to}");
        before = to;
        let post = pyroscope.post().expect("a push");
        let (path, query) = post.path.split_once('?').expect("a query");
        assert_eq!(path, "/tenant/ingest");
        assert!(query.starts_with("name=shop%7Bhost%3D"), "{query}");
        assert!(query.contains("%2Cprogram%3Dev_u_1b__0_x_u_7_____il%2C"), "{query}");
        assert!(
            query.contains("%2Cenv%3Dt%7D&from=") && query.contains("&format=pprof"),
            "{query}"
        );
        ingested.add_pprof(&post.body).expect("a profile");
        let post = parca.post().expect("a push");
        assert_eq!(post.path, "/api/profiles/writeraw");
        let labels = written.add_parca(&post.body).expect("a profile");
        assert_eq!((&*labels["service_name"], &*labels["env"]), ("shop", "t"), "{labels:?}");
    }
    check(&exported, &finished);
    assert_eq!((&ingested, &written), (&exported, &exported));
}

/// While nobody listens, profiles wait. They arrive afterwards, and none is lost.
#[test]
fn profiles_wait_for_a_receiver_that_is_away() {
    let env = or_skip!(gate::live(Link::Session));
    let [away, metrics] = [(); 2].map(|()| free_address().expect("one"));
    let daemon = start(
        &env,
        &format!(
            "[metrics]\nlisten = \"{metrics}\"\n[pprof]\npyroscope = \"http://{away}\"\n\
             token_file = \"DIR/token\"\n"
        ),
    );
    std::fs::write(daemon.path("token"), "s3cret\n").expect("written");
    let finished = run(&daemon);
    wait_until("it is tried", || number(metrics, "ctrace_pprof_failures_total") >= 2)
        .expect("tried");
    assert_eq!(number(metrics, "ctrace_pprof_profiles_total"), 0);
    let pyroscope = Collector::start_at(away).expect("listens");
    let mut stacks = Stacks::default();
    while stacks.of("outer")[0] < 200 {
        stacks.add_pprof(&pyroscope.post().expect("a push").body).expect("a profile");
    }
    assert_eq!(number(metrics, "ctrace_pprof_profiles_dropped_total"), 0);
    let (ended, _dir) = daemon.end().expect("ends");
    assert_eq!(ended.shell_code(), 0, "{}", ended.stderr);
    check(&stacks, &finished);
    for line in ["profiles cannot be sent to Pyroscope at 127.0.0.1:", "again; 0 were given up"] {
        assert_eq!(ended.stderr.matches(line).count(), 1, "{}", ended.stderr);
    }
    assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
}
