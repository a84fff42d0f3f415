use super::*;
use crate::{
    session::keep::replayed::{CENTER, report_of},
    ui::{Style, ViewOptions, render_table},
};
use ctrace_common::{Kind, RECORD_LEN};
use ctrace_core::{
    engine::{Engine, EngineConfig},
    function::FunctionInfo,
    recording::{Block, End, Start, Writer, replay::Query},
    report::Extras,
    units::{Nanos, Pid, Tid},
};
use serde_json::Value;
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/demo.ctrace");
pub(super) const HOSTILE: &str = "<img src=x onerror=\"document.title='taken'\">";

/// A server on a thread of its own.
pub(super) struct Served {
    pub(super) port: u16,
    token: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<anyhow::Result<()>>>,
}

impl Served {
    pub(super) fn new(recording: Recording) -> Self {
        Self::with_page(recording, None)
    }

    /// `folder`: where the files of the page are, if not in the program.
    pub(super) fn with_page(recording: Recording, folder: Option<PathBuf>) -> Self {
        let options =
            Options { port: 0, folder, files: vec!["a 'b'.ctrace".to_owned()], cache: None };
        let served = Self::of(Server::start(recording, options).expect("it listens"));
        served.wait("api/about");
        served
    }

    /// Serves two recordings that are compared.
    pub(super) fn compared(old: Recording, new: Recording, folder: Option<PathBuf>) -> Self {
        let options =
            Options { port: 0, folder, files: vec!["new.ctrace".to_owned()], cache: None };
        let old = (old, vec!["old.ctrace".to_owned()]);
        let served = Self::of(Server::compare(new, old, options).expect("it listens"));
        served.wait("api/verdicts");
        served
    }

    /// Asks until there is an answer.
    fn wait(&self, path: &str) {
        while self.get(path).starts_with(b"HTTP/1.1 503") {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn of(server: Server) -> Self {
        let url = server.url();
        let address = url.strip_prefix("http://127.0.0.1:").expect("this machine");
        let (port, token) = address.split_once('/').expect("a path");
        let (port, token) = (port.parse().expect("a port"), token.trim_matches('/').to_owned());
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || server.serve(stopped));
        Self { port, token, stop: Some(stop), thread: Some(thread) }
    }

    pub(super) fn demo() -> Self {
        Self::new(demo())
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    pub(super) fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).expect("it listens")
    }

    /// Sends a request and returns all that arrives.
    fn ask(&self, request: &str) -> Vec<u8> {
        let mut stream = self.connect();
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

    pub(super) fn get(&self, path: &str) -> Vec<u8> {
        self.ask(&self.request(path))
    }

    pub(super) fn request(&self, path: &str) -> String {
        format!("GET /{}/{path} HTTP/1.1\r\n{}\r\n", self.token, host(self.port))
    }

    /// Returns the body of an answer.
    #[track_caller]
    pub(super) fn body(&self, path: &str) -> Vec<u8> {
        let answer = self.get(path);
        let head = String::from_utf8_lossy(&answer).into_owned();
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        answer[end + 4..].to_vec()
    }

    #[track_caller]
    pub(super) fn json(&self, path: &str) -> Value {
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

pub(super) fn demo() -> Recording {
    Recording::open(std::fs::File::open(DEMO).expect("the demo")).expect("a recording")
}

/// A recording of one call whose names are markup.
pub(super) fn hostile() -> Recording {
    Recording::open(of_chunks(1)).expect("a recording")
}

/// Returns a recording of as many calls as chunks. The names are markup.
pub(super) fn of_chunks(count: u64) -> Vec<u8> {
    let mut engine = engine();
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    for chunk in 0..count {
        for block in blocks(&mut engine, chunk) {
            writer.write(&block).expect("memory takes all");
        }
    }
    let end = End { end_ns: Nanos(10_000 * count), ..End::default() };
    writer.finish(&end).expect("memory takes all")
}

/// Returns an engine with a function whose name is markup.
pub(super) fn engine() -> Engine {
    let config = EngineConfig { record: true, rings: 1, ..EngineConfig::default() };
    let mut engine = Engine::new(config);
    engine.add_function(FunctionInfo::new(HOSTILE, "</script><script>alert(1)</script>"));
    engine.name_thread(Pid(7), Tid(8), "</div>\u{1b}[31m");
    engine
}

/// Returns the blocks of one more chunk with one call.
pub(super) fn blocks(engine: &mut Engine, chunk: u64) -> Vec<Block> {
    for (ts, kind) in [(1_000_u64, Kind::Enter), (9_000, Kind::Return)] {
        let mut record = [0; RECORD_LEN];
        record[..8].copy_from_slice(&(10_000 * chunk + ts).to_le_bytes());
        record[8..16].copy_from_slice(&0x7fff_0000_u64.to_le_bytes());
        record[16..20].copy_from_slice(&7_u32.to_le_bytes());
        record[20..24].copy_from_slice(&8_u32.to_le_bytes());
        record[28] = kind as u8;
        engine.push(0, &record);
    }
    engine.advance(Nanos(10_000 * (chunk + 1)));
    engine.end_chunk(Nanos(10_000 * (chunk + 1)));
    engine.take_blocks()
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
    assert_eq!(bytes[..4], *b"CTP2");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a word"));
    let (level, cells, lost) = (word(4), word(8), word(16) as usize);
    let length = length.as_u64().expect("a number");
    assert!(1 << level >= length / pixels && 1 << level < 2 * length.div_ceil(pixels));
    assert!((cells as u64 - 2) << level <= length);
    assert_eq!(word(24), 0, "all was read");
    let mut at = 40 + 8 * lost;
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
fn a_picture_that_takes_long_comes_coarser_first() {
    let served = Served::demo();
    // Cells of a nanosecond: no tile has room for them.
    let path = "api/picture?from=1000000&to=1000500&pixels=500&rows=0.0-0,1.0-0";
    let asked = |more: &str| {
        let bytes = served.body(&format!("{path}{more}"));
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a word"));
        (word(4), word(20))
    };
    let (level, is_coarse) = asked("&quick=1");
    assert!(level > 0 && is_coarse == 1, "{level}");
    assert_eq!(asked(""), (0, 0));
    assert_eq!(asked("&quick=1"), (0, 0), "its calls are kept now");
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
fn localhost_is_this_server_for_ipv6_too() {
    let served = Served::demo();
    let Ok(mut stream) = TcpStream::connect(("::1", served.port)) else {
        let is_free = TcpListener::bind(("::1", served.port)).is_ok();
        assert!(!is_free, "the machine has IPv6");
        return eprintln!("skipped: the machine has no IPv6");
    };
    let request = served.request("").replace("127.0.0.1", "localhost");
    stream.write_all(request.as_bytes()).expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("<!doctype html>"), "{answer}");
}

#[test]
fn a_port_that_another_program_has_is_refused() {
    let Ok(other) = TcpListener::bind(("::1", 0)) else {
        return eprintln!("skipped: the machine has no IPv6");
    };
    let port = other.local_addr().expect("an address").port();
    let refused = listen(port).expect_err("localhost would be another program").to_string();
    assert!(refused.contains("--port takes another port"), "{refused}");
}

/// Returns the words of a line with one space between them.
pub(super) fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_range_has_the_rows_marks_and_sentences_of_the_report() {
    let served = Served::demo();
    let length = served.json("api/about")["length_ns"].as_u64().expect("a length");
    let range = served.json(&format!("api/report?from=0&to={length}"));
    let recording = demo();
    let (start, end) = recording.period();
    let query = Query { window: Some(start..end), ..Query::default() };
    let report = report_of(&recording, &query, CENTER, Extras::default());
    let printed = render_table(&report, &ViewOptions::default(), &Style::default());
    let printed = printed.expect("a table");
    let lines: Vec<String> = printed.lines().map(squeezed).collect();
    let rows = range["rows"].as_array().expect("rows");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    for row in rows {
        let numbers = row["numbers"].as_array().expect("numbers").iter().map(text);
        let cells: Vec<String> =
            [text(&row["name"]), text(&row["marks"])].into_iter().chain(numbers).collect();
        let expected = squeezed(&cells.join(" "));
        assert!(lines.iter().any(|line| line.starts_with(&expected)), "{expected}\n{printed}");
    }
    assert!(rows.iter().any(|row| row["marks"] != ""), "{printed}");
    let remarks = range["remarks"].as_array().expect("sentences");
    assert!(remarks.iter().any(|remark| text(remark).starts_with("f: ")), "{remarks:?}");
    for said in remarks.iter().chain([&range["loss"]]) {
        assert!(lines.contains(&squeezed(&text(said))), "{said}\n{printed}");
    }
}

#[test]
fn names_are_text_in_every_answer() {
    let served = Served::new(hostile());
    let answer = served.get_with("api/about", "X: y");
    assert!(answer.contains("content-type: application/json\r\n"), "{answer}");
    assert!(!answer.contains('\u{1b}'));
    let about = served.json("api/about");
    assert_eq!(about["functions"][0]["name"], HOSTILE);
    assert_eq!(calls_of_picture(&served, &about), [1]);
}

/// Words that make markup or code of a text.
const MARKUP: [&str; 12] = [
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "setHTML",
    "document.write",
    "createContextualFragment",
    "DOMParser",
    "srcdoc",
    "setAttribute",
    "eval(",
    "Function(",
    "javascript:",
];

#[test]
fn no_script_of_the_page_makes_markup_of_text() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/timeline_server/page");
    let files = std::fs::read_dir(folder).expect("the page").map(|file| file.expect("a file"));
    let mut there: Vec<String> =
        files.map(|file| file.file_name().into_string().expect("a name")).collect();
    there.sort();
    let mut served: Vec<&str> = page::names().collect();
    served.sort_unstable();
    assert_eq!(served, there, "all files of the page are served, and looked at here");
    for name in there {
        let text = std::fs::read_to_string(format!("{folder}/{name}")).expect("text");
        let found: Vec<_> = MARKUP.iter().filter(|word| text.contains(**word)).collect();
        assert!(found.is_empty(), "{name}: {found:?}");
        // No code but that of files: the policy would refuse it.
        assert_eq!(
            text.matches("<script").count(),
            text.matches("<script type=\"module\" src=").count()
        );
        assert!(!text.contains("onclick=") && !text.contains("onload="), "{name}");
    }
}
