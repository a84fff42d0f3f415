use super::*;
use ctrace_common::{Kind, RECORD_LEN};
use ctrace_core::{
    engine::{Engine, EngineConfig},
    function::FunctionInfo,
    recording::{End, Start, Writer},
    units::{Nanos, Pid, Tid},
};
use serde_json::Value;
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Command,
    time::Duration,
};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/demo.ctrace");
const HOSTILE: &str = "<img src=x onerror=\"document.title='taken'\">";

/// A server on a thread of its own.
struct Served {
    port: u16,
    token: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<anyhow::Result<()>>>,
}

impl Served {
    fn new<R: ReadAt + Send + Sync + 'static>(recording: Recording<R>) -> Self {
        let options = Options { port: 0, folder: None, files: vec!["a 'b'.ctrace".to_owned()] };
        let server = Server::start(recording, options).expect("it listens");
        let url = server.url();
        let address = url.strip_prefix("http://127.0.0.1:").expect("this machine");
        let (port, token) = address.split_once('/').expect("a path");
        let (port, token) = (port.parse().expect("a port"), token.trim_matches('/').to_owned());
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || server.serve(stopped));
        let served = Self { port, token, stop: Some(stop), thread: Some(thread) };
        while served.get("api/about").starts_with(b"HTTP/1.1 503") {
            std::thread::sleep(Duration::from_millis(5));
        }
        served
    }

    fn demo() -> Self {
        Self::new(demo())
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Sends a request and returns all that arrives.
    fn ask(&self, request: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit");
        // The server may close it before all is written.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// Asks for a path behind the token, with one more line in the head.
    fn get_with(&self, path: &str, line: &str) -> String {
        let Self { port, token, .. } = self;
        let head = format!("GET /{token}/{path} HTTP/1.1\r\n{line}\r\n");
        let host = if line.starts_with("Host:") { String::new() } else { host(*port) };
        String::from_utf8_lossy(&self.ask(&format!("{head}{host}\r\n"))).into_owned()
    }

    fn get(&self, path: &str) -> Vec<u8> {
        self.ask(&format!("GET /{}/{path} HTTP/1.1\r\n{}\r\n", self.token, host(self.port)))
    }

    /// Returns the body of an answer.
    #[track_caller]
    fn body(&self, path: &str) -> Vec<u8> {
        let answer = self.get(path);
        let head = String::from_utf8_lossy(&answer).into_owned();
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        answer[end + 4..].to_vec()
    }

    #[track_caller]
    fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.body(path)).expect("JSON")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(std::thread::JoinHandle::join);
        assert!(matches!(ended, Some(Ok(Ok(())))) || std::thread::panicking());
    }
}

fn host(port: u16) -> String {
    format!("Host: 127.0.0.1:{port}\r\n")
}

fn demo() -> Recording<std::fs::File> {
    Recording::open(std::fs::File::open(DEMO).expect("the demo")).expect("a recording")
}

/// A recording of one call whose names are markup.
fn hostile() -> Recording<Vec<u8>> {
    let config = EngineConfig { record: true, rings: 1, ..EngineConfig::default() };
    let mut engine = Engine::new(config);
    engine.add_function(FunctionInfo::new(HOSTILE, "</script><script>alert(1)</script>"));
    engine.name_thread(Pid(7), Tid(8), "</div>\u{1b}[31m");
    for (ts, kind) in [(1_000_u64, Kind::Enter), (9_000, Kind::Return)] {
        let mut record = [0; RECORD_LEN];
        record[..8].copy_from_slice(&ts.to_le_bytes());
        record[8..16].copy_from_slice(&0x7fff_0000_u64.to_le_bytes());
        record[16..20].copy_from_slice(&7_u32.to_le_bytes());
        record[20..24].copy_from_slice(&8_u32.to_le_bytes());
        record[28] = kind as u8;
        engine.push(0, &record);
    }
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    engine.advance(Nanos(10_000));
    engine.end_chunk(Nanos(10_000));
    for block in engine.take_blocks() {
        writer.write(&block).expect("memory takes all");
    }
    let end = End { end_ns: Nanos(10_000), ..End::default() };
    Recording::open(writer.finish(&end).expect("memory takes all")).expect("a recording")
}

#[test]
fn only_its_own_page_is_answered() {
    let served = Served::demo();
    let Served { port, token, .. } = &served;
    let own = served.get_with("", "X: y");
    assert!(own.starts_with("HTTP/1.1 200 OK\r\n") && own.contains("<!doctype html>"), "{own}");
    for header in ["content-security-policy: default-src 'none'; script-src 'self'", "nosniff"] {
        assert!(own.contains(header), "{own}");
    }
    assert!(!own.contains("unsafe-inline"));
    for line in [
        format!("Origin: http://127.0.0.1:{port}"),
        format!("Host: localhost:{port}"),
        "Sec-Fetch-Site: same-origin".to_owned(),
    ] {
        assert!(served.get_with("main.js", &line).starts_with("HTTP/1.1 200 "), "{line}");
    }
    for line in [
        "Host: evil.example".to_owned(),
        format!("Host: evil.example:{port}"),
        format!("Host: 127.0.0.1.evil.example:{port}"),
        "Host: 127.0.0.1:1".to_owned(),
        format!("Host: 127.0.0.1:{port}\r\nHost: evil.example"),
        "Origin: http://evil.example".to_owned(),
        format!("Origin: https://127.0.0.1:{port}"),
        "Origin: null".to_owned(),
        "Sec-Fetch-Site: cross-site".to_owned(),
        "Sec-Fetch-Site: same-site".to_owned(),
    ] {
        let answer = served.get_with("api/about", &line);
        assert!(answer.starts_with("HTTP/1.1 421 "), "{line}: {answer}");
    }
    let other = token.chars().map(|c| if c == '0' { '1' } else { '0' }).collect::<String>();
    for path in [String::new(), other, token[1..].to_owned(), format!("{token}0"), "api".to_owned()]
    {
        let answer = served.ask(&format!("GET /{path}/api/about HTTP/1.1\r\n{}\r\n", host(*port)));
        assert!(answer.starts_with(b"HTTP/1.1 403 "), "{path}");
    }
    let post =
        format!("POST /{token}/api/about HTTP/1.1\r\n{}Content-Length: 0\r\n\r\n", host(*port));
    assert!(served.ask(&post).starts_with(b"HTTP/1.1 405 "));
    for path in ["../../etc/passwd", "%2e%2e/Cargo.toml", "page.rs", "api/nothing"] {
        assert!(served.get(path).starts_with(b"HTTP/1.1 404 "), "{path}");
    }
    let long = served.get_with("", &format!("X: {}", "x".repeat(1 << 20)));
    assert!(!long.contains("200 OK"));
    assert!(served.get("api/about").starts_with(b"HTTP/1.1 200 "), "and it is still there");
}

/// Asks for the picture of all rows, and adds up the calls of each thread: the counts of cells and
/// the spans.
fn calls_of_picture(served: &Served, about: &Value) -> Vec<u64> {
    let threads = about["threads"].as_array().expect("threads");
    let depths = |thread: &Value| thread["depths"].as_u64().expect("a number");
    let rows: Vec<String> =
        threads.iter().map(|thread| format!("{}.0-{}", thread["id"], depths(thread) - 1)).collect();
    let (length, pixels) = (&about["length_ns"], 500);
    let path = format!("api/picture?from=0&to={length}&pixels={pixels}&rows={}", rows.join(","));
    let bytes = served.body(&path);
    assert_eq!(bytes[..4], *b"CTP1");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a word"));
    let (level, cells, lost) = (word(4), word(8), word(16) as usize);
    let length = length.as_u64().expect("a number");
    assert!(1 << level <= length / pixels && 2 << level > length / pixels);
    assert!((cells as u64 - 2) << level <= length);
    let mut at = 32 + 8 * lost;
    let of_thread = threads.iter().map(|thread| {
        let mut calls = 0;
        for _ in 0..depths(thread) {
            let (cells, spans) = (word(at) as usize, word(at + 4) as usize);
            at += 16;
            let counts = at + 8 * cells;
            calls += (0..cells).map(|n| u64::from(word(counts + 4 * n))).sum::<u64>();
            calls += spans as u64;
            at += 12 * cells + 4 * (cells % 2) + 24 * spans;
        }
        calls
    });
    let calls = of_thread.collect();
    assert_eq!(at, bytes.len());
    calls
}

#[test]
fn a_picture_has_every_call() {
    let served = Served::demo();
    let about = served.json("api/about");
    assert_eq!(about["files"], r"'a '\''b'\''.ctrace'");
    let all: u64 = demo().chunks().iter().map(|chunk| chunk.calls).sum();
    assert_eq!(about["calls"], all);
    let threads = about["threads"].as_array().expect("threads").iter();
    let told: Vec<u64> = threads.map(|thread| thread["calls"].as_u64().expect("calls")).collect();
    assert!(told.len() > 1 && told.iter().sum::<u64>() == all, "{told:?}");
    assert_eq!(calls_of_picture(&served, &about), told);
    for wrong in
        ["from=0&to=9&pixels=9", "from=9&to=9&pixels=9&rows=", "from=0&to=9&pixels=9&rows=1"]
    {
        assert!(served.get(&format!("api/picture?{wrong}")).starts_with(b"HTTP/1.1 400 "));
    }
    let many = "api/picture?from=0&to=9&pixels=9&rows=1.0-4000000000,1.0-4000000000";
    assert!(served.get(many).starts_with(b"HTTP/1.1 400 "));
}

#[test]
fn calls_are_found_and_told() {
    let served = Served::demo();
    let about = served.json("api/about");
    let length = about["length_ns"].as_u64().expect("a length");
    let name = |id: &Value| &about["functions"][id.as_u64().expect("an id") as usize]["name"];
    let find = |text| served.get(&format!("api/find?text={text}&from=0&to={length}&columns=10"));
    assert!(find("no_such_function").starts_with(b"HTTP/1.1 400 "));
    let hits = served.json(&format!("api/find?text=%2F.*%2F&from=0&to={length}&columns=10"));
    assert_eq!(hits["count"], about["calls"]);
    let longest = &hits["longest"][0];
    assert_eq!(name(&longest["function"]), "main");
    let ask = |call: &Value| {
        let (thread, depth, start) = (&call["thread"], &call["depth"], &call["start_ns"]);
        served.json(&format!("api/call?thread={thread}&depth={depth}&time={start}&slack=0"))
    };
    let near = ask(longest);
    assert_eq!(near["call"], *longest);
    let found = hits["longest"].as_array().expect("calls").iter();
    let inner = found.max_by_key(|call| call["depth"].as_u64()).expect("a call");
    let near = ask(inner);
    let depth = inner["depth"].as_u64().expect("a depth");
    assert!(
        depth > 0 && near["parents"].as_array().map(Vec::len) == Some(depth as usize),
        "{near}"
    );
    let parent = ask(&near["parents"][depth as usize - 1]);
    assert!(parent["inside_calls"].as_u64() >= Some(1), "{parent}");
}

#[test]
fn names_cannot_become_markup() {
    let served = Served::new(hostile());
    let answer = served.get_with("api/about", "X: y");
    assert!(answer.contains("content-type: application/json\r\n"), "{answer}");
    assert!(!answer.contains('\u{1b}'));
    let about = served.json("api/about");
    assert_eq!(about["functions"][0]["name"], HOSTILE);
    assert_eq!(calls_of_picture(&served, &about), [1]);
    // The page makes text of it: nothing in its scripts takes text as markup.
    for name in ["main.js", "panel.js", "draw.js", "format.js", "pointer.js", "search.js"] {
        let script = String::from_utf8(served.body(name)).expect("text");
        for markup in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!script.contains(markup), "{name}: {markup}");
        }
    }
}

/// Returns the page as Chromium has it after a while. `None` without Chromium.
fn page_of(url: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("chromium");
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
    command.args(["--window-size=1200,800", "--virtual-time-budget=10000", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", folder.path().display())).arg(url);
    match command.output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            eprintln!("skipped: no chromium: {error}");
            None
        }
    }
}

#[test]
fn a_browser_shows_it() {
    let served = Served::demo();
    let Some(page) = page_of(&format!("{}#find=main&range=0..100000000", served.url())) else {
        return;
    };
    assert!(page.contains("data-ready=\"true\""), "{page}");
    assert!(page.contains("1 calls of main") || page.contains("range of 100"), "{page}");
    let served = Served::new(hostile());
    let page = page_of(&format!("{}#range=0..9000", served.url())).expect("it was there");
    assert!(page.contains("&lt;img src=x") && !page.contains("<img"), "{page}");
    assert!(page.contains("<title>unknown program"), "{page}");
}
