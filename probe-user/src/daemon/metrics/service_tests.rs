use super::{
    accumulator::Bounds,
    catalog::Own,
    fixtures::{Did, snapshot},
    hub::MetricsHub,
    listen::Listen,
    service::{Options, Service},
};
use crate::{daemon::ids::SessionId, session::keep::live::Command};
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    thread,
    time::Duration,
};
use tokio::sync::mpsc::unbounded_channel;

fn at(listen: Listen) -> Options {
    Options { listen: Some(listen), ..Options::default() }
}

fn service(metrics: &MetricsHub) -> (Service, SocketAddr) {
    let listen = Listen::Address(SocketAddr::from(([127, 0, 0, 1], 0)));
    let service = Service::start(at(listen), metrics.clone()).expect("a port");
    let address = service.address().expect("it listens");
    (service, address)
}

/// Sends a request, and returns all that arrives until the connection is closed.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit");
    // The server may close it before all is written.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(address: SocketAddr, path: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
}

#[test]
fn there_is_nothing_but_metrics_and_health() {
    let (_service, address) = service(&MetricsHub::new(Bounds::default()));
    assert!(get(address, "/healthz").starts_with("HTTP/1.1 200 OK\r\n"));
    let metrics = get(address, "/metrics?anything");
    assert!(metrics.contains("content-type: text/plain; version=0.0.4"), "{metrics}");
    assert!(metrics.contains("\nprocess_open_fds "), "{metrics}");
    for path in ["/", "/metrics/", "/../etc/passwd", "/debug"] {
        assert!(get(address, path).starts_with("HTTP/1.1 404 "), "{path}");
    }
    let post = "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    assert!(ask(address, post).starts_with("HTTP/1.1 405 "));
    let head = ask(address, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.ends_with("\r\n\r\n"), "{head}");
    let binary = ask(
        address,
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/vnd.google.protobuf;\
         proto=io.prometheus.client.MetricFamily;encoding=delimited\r\n\r\n",
    );
    assert!(binary.contains("content-type: application/vnd.google.protobuf"), "{binary}");
}

#[test]
fn requests_are_bounded() {
    let (_service, address) = service(&MetricsHub::new(Bounds::default()));
    let long =
        format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    assert!(!ask(address, &long).contains("200 OK"));
    let many =
        format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: y\r\n".repeat(1_000));
    assert!(!ask(address, &many).contains("200 OK"));
    assert!(!ask(address, "\0\x16\x03\x01 nonsense\r\n\r\n").contains("200 OK"));
    assert!(get(address, "/healthz").contains("200 OK"));
}

/// Opens a connection that sends nothing.
fn idle(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).expect("it listens")
}

#[test]
fn who_does_not_ask_keeps_nobody_out() {
    let (_service, address) = service(&MetricsHub::new(Bounds::default()));
    let mut silent: Vec<TcpStream> = (0..200).map(|_| idle(address)).collect();
    // The last ones send a byte now and then; the first have been closed for them.
    silent[190..].iter_mut().for_each(|stream| {
        let _ = stream.write_all(b"G");
    });
    for _ in 0..3 {
        let answer = get(address, "/metrics");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(!answer.contains("\nctrace_http_refused_total 0\n"), "{answer}");
    }
    let mut first = silent.swap_remove(0);
    first.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit");
    assert!(matches!(first.read(&mut [0]), Ok(0) | Err(_)), "it was closed");
}

#[test]
fn who_asks_for_somebody_else_is_refused() {
    let (_service, address) = service(&MetricsHub::new(Bounds::default()));
    for path in ["/metrics", "/healthz", "/"] {
        let answer = ask(address, &format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
        assert!(answer.contains("`hosts` in [metrics]") && !answer.contains("ctrace_"), "{answer}");
    }
    let listen = Listen::Address(SocketAddr::from(([127, 0, 0, 1], 0)));
    let options = Options { hosts: vec!["metrics.example".into()], ..at(listen) };
    let service = Service::start(options, MetricsHub::new(Bounds::default())).expect("a port");
    let address = service.address().expect("it listens");
    let named = "GET /healthz HTTP/1.1\r\nHost: metrics.example:9779\r\n\r\n";
    assert!(ask(address, named).starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn a_socket_answers_whoever_may_use_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metrics.sock");
    let listen = || at(Listen::Socket(path.clone()));
    let service = Service::start(listen(), MetricsHub::new(Bounds::default())).expect("a socket");
    let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let mut stream = UnixStream::connect(&path).expect("it listens");
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: whatever\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let taken = Service::start(listen(), MetricsHub::new(Bounds::default())).err();
    let why = format!("{:#}", taken.expect("it is taken"));
    assert!(why.contains("`listen` in [metrics]") && why.contains("another"), "{why}");
    drop(service);
    assert!(!path.exists(), "it is removed");
}

#[test]
fn a_scrape_shows_the_present_interval() {
    let metrics = MetricsHub::new(Bounds::default());
    let (_service, address) = service(&metrics);
    metrics.configure([("web", None), ("db", None)].into_iter());
    let (commands, mut asked) = unbounded_channel();
    let (id, session) = (SessionId(1), metrics.clone());
    metrics.begin(id, "web");
    metrics.armed(id, commands.clone());
    let thread = thread::spawn(move || {
        session.observe(id, &snapshot(0, 10, &[Did::called("f", &[5, 6])]));
        while let Some(command) = asked.blocking_recv() {
            match command {
                Command::Peek(take) => take(snapshot(10, 20, &[Did::called("f", &[7])])),
                _ => break,
            }
        }
        // A session reports this at its end.
        session.observe(id, &snapshot(10, 30, &[Did::called("f", &[7, 8])]));
        session.end(id);
    });
    let calls = r#"ctrace_function_calls_total{target="web",function="f",object="program",kind="function",group=""}"#;
    let seen = (0..500).any(|_| get(address, "/metrics").contains(&format!("{calls} 3\n")));
    assert!(seen, "{}", get(address, "/metrics"));
    assert!(commands.send(Command::Stop).is_ok());
    thread.join().expect("it ends well");
    metrics.count_own(Own::ReportsLost);
    let text = get(address, "/metrics");
    assert!(text.contains(&format!("{calls} 4\n")), "{text}");
    assert!(text.contains("ctrace_target_ends_total{target=\"web\"} 1\n"), "{text}");
    assert!(text.contains("ctrace_report_write_failures_total 1\n"), "{text}");
    metrics.configure([].into_iter());
    assert!(!get(address, "/metrics").contains("web"));
}

#[test]
fn a_session_that_does_not_answer_is_not_waited_for() {
    let metrics = MetricsHub::new(Bounds::default());
    let (_service, address) = service(&metrics);
    let (commands, asked) = unbounded_channel();
    let id = SessionId(1);
    metrics.begin(id, "web");
    metrics.armed(id, commands);
    metrics.observe(id, &snapshot(0, 10, &[Did::called("f", &[5])]));
    for unanswered in [1, 1] {
        let text = get(address, "/metrics");
        assert!(text.contains(&format!("ctrace_looks_unanswered_total {unanswered}\n")), "{text}");
        assert!(text.contains("ctrace_target_processes{target=\"web\"} 1\n"), "{text}");
    }
    drop(asked);
}

#[test]
fn an_address_that_is_taken_is_told() {
    let metrics = MetricsHub::new(Bounds::default());
    let (_service, address) = service(&metrics);
    let error = Service::start(at(Listen::Address(address)), metrics)
        .err()
        .expect("it is taken")
        .to_string();
    assert!(error.contains(&address.to_string()) && error.contains("`listen`"), "{error}");
}
