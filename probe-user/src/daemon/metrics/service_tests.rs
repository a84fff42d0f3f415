use super::{
    accumulator::Bounds,
    catalog::Own,
    fixtures::{Did, snapshot},
    hub::Metrics,
    service::{Options, Service},
};
use crate::{daemon::SessionId, session::live::Command};
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};
use tokio::sync::mpsc::unbounded_channel;

fn service(metrics: &Metrics) -> (Service, SocketAddr) {
    let listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let service = Service::start(Options { listen, otlp: None }, metrics.clone()).expect("a port");
    let address = service.address().expect("it listens");
    (service, address)
}

/// All that is answered, until the connection is closed.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit");
    // It may be closed before all of it is written.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(address: SocketAddr, path: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"))
}

#[test]
fn there_is_nothing_but_metrics_and_health() {
    let (_service, address) = service(&Metrics::new(Bounds::default()));
    assert!(get(address, "/healthz").starts_with("HTTP/1.1 200 OK\r\n"));
    let metrics = get(address, "/metrics?anything");
    assert!(metrics.contains("content-type: text/plain; version=0.0.4"), "{metrics}");
    assert!(metrics.contains("\nprocess_open_fds "), "{metrics}");
    for path in ["/", "/metrics/", "/../etc/passwd", "/debug"] {
        assert!(get(address, path).starts_with("HTTP/1.1 404 "), "{path}");
    }
    let post = "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    assert!(ask(address, post).starts_with("HTTP/1.1 405 "));
    let head = ask(address, "HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.ends_with("\r\n\r\n"), "{head}");
    let binary = ask(
        address,
        "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: application/vnd.google.protobuf;\
         proto=io.prometheus.client.MetricFamily;encoding=delimited\r\n\r\n",
    );
    assert!(binary.contains("content-type: application/vnd.google.protobuf"), "{binary}");
}

#[test]
fn requests_are_bounded() {
    let (_service, address) = service(&Metrics::new(Bounds::default()));
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    assert!(!ask(address, &long).contains("200 OK"));
    let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(1_000));
    assert!(!ask(address, &many).contains("200 OK"));
    assert!(!ask(address, "\0\x16\x03\x01 nonsense\r\n\r\n").contains("200 OK"));
    assert!(get(address, "/healthz").contains("200 OK"));
}

#[test]
fn connections_are_bounded() {
    let (_service, address) = service(&Metrics::new(Bounds::default()));
    let mut idle: Vec<TcpStream> =
        (0..32).map(|_| TcpStream::connect(address).expect("it listens")).collect();
    assert_eq!(get(address, "/healthz"), "", "the next one is closed");
    idle.clear();
    // It takes a moment until the server knows.
    let answers = (0..500).map(|_| {
        thread::sleep(Duration::from_millis(20));
        get(address, "/metrics")
    });
    let answer =
        answers.into_iter().find(|answer| !answer.is_empty()).expect("there is room again");
    assert!(!answer.contains("\nctrace_http_refused_total 0\n"), "{answer}");
}

#[test]
fn a_scrape_shows_the_present_interval() {
    let metrics = Metrics::new(Bounds::default());
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
        // What a session that ends tells last.
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
    let metrics = Metrics::new(Bounds::default());
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
    let metrics = Metrics::new(Bounds::default());
    let (_service, address) = service(&metrics);
    let options = Options { listen: Some(address), otlp: None };
    let error = Service::start(options, metrics).err().expect("it is taken").to_string();
    assert!(error.contains(&address.to_string()) && error.contains("`listen`"), "{error}");
}
