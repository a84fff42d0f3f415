//! Tests with the tools that read the formats, if they are installed or can be. Each must accept
//! its file and find its contents. If a tool is missing, its test says so and is skipped.

use crate::formats::fixture::{self, export, hostile, typical};
use crate::payloads::locks::over_time;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Creates a file of a test, in the folder for temporary files of the build.
fn file(name: &str, contents: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, contents).expect("the build's folder takes files");
    path
}

/// Returns the output of a command, if it exists and succeeded.
fn run(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Like [`run`], for a tool that must succeed, since it exists.
#[track_caller]
fn must(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("the tool is there");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns a Python with these packages from PyPI, made once.
fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let make = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
        let python = folder.join("bin/python");
        if run(Command::new(&python).args(["-c", "import duckdb, perfetto"])).is_none() {
            run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
            let install = ["-m", "pip", "install", "--quiet", "duckdb", "perfetto"];
            run(Command::new(&python).args(install))?;
        }
        Some(python)
    };
    PYTHON.get_or_init(make).as_deref()
}

#[cfg(feature = "parquet")]
mod parquet {
    use super::*;
    use ctrace_core::formats::{ExportTable, Options};

    const QUERY: &str = "
import duckdb, sys
for row in duckdb.sql(open(sys.argv[1]).read()).fetchall():
    print(*row, sep='|')
";

    fn duckdb(name: &str, query: &str) -> Option<String> {
        let python = python()?;
        let query = file(&format!("{name}.sql"), query.as_bytes());
        Some(must(Command::new(python).args(["-c", QUERY]).arg(query)))
    }

    #[test]
    fn duckdb_finds_the_percentiles_that_the_report_has() {
        let recording = fixture::many_calls();
        let report = ctrace_core::recording::replay::report(&recording, &Default::default(), 1.0);
        let calls = file("calls.parquet", &export("parquet", &recording).0);
        let query = format!(
            "select function, count(*), sum(duration_ns)::ubigint,
                quantile_disc(duration_ns, 0.5), quantile_disc(duration_ns, 0.99), max(duration_ns)
             from '{}' where timed group by function order by function",
            calls.display(),
        );
        let Some(rows) = duckdb("percentiles", &query) else {
            return eprintln!("skipped: no python3, or no duckdb from PyPI");
        };
        let mut expected: Vec<String> = report
            .functions
            .iter()
            .filter(|function| function.timed > 0)
            .map(|function| {
                let of = &function.durations;
                let [p50, p99, max] =
                    [of.p50_ns, of.p99_ns, of.max_ns].map(|time| time.expect("timed calls").0);
                let (name, timed, total) = (&function.name, function.timed, function.total_ns.0);
                format!("{name}|{timed}|{total}|{p50}|{p99}|{max}")
            })
            .collect();
        expected.sort();
        assert_eq!(rows.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn duckdb_reads_every_column_of_both_tables() {
        let recording = typical();
        let calls = file("typical.parquet", &export("parquet", &recording).0);
        let options = Options { table: ExportTable::Functions, ..Options::default() };
        let (functions, _) = fixture::export_with("parquet", &recording, options);
        let functions = file("functions.parquet", &functions);
        let query = format!(
            "select host, pid, tid, thread, epoch_ns(time::timestamp_ns), start_ns, duration_ns, timed, \
             open, function, depth, path from '{}' where function = 'outer' order by start_ns",
            calls.display()
        );
        let Some(rows) = duckdb("calls", &query) else {
            return eprintln!("skipped: no python3, or no duckdb from PyPI");
        };
        let expected = "host|100|100|main|1700000000000001000|1000|9000|True|False|outer|1|outer\n\
             host|100|7||1700000000000011000|11000|1000|False|True|outer|1|outer\n";
        assert_eq!(rows, expected);
        let query = format!("select * exclude (host) from '{}'", functions.display());
        let rows = duckdb("functions", &query).expect("it was there before");
        let expected = "0|outer|function|app|None|app.c|7|2|1|0|1|10000|6500\n\
             1|inner|function|app|None|None|None|2|2|0|0|3500|3500\n\
             2|prod/mark|marker|app|None|None|None|2|0|2|0|0|0\n";
        assert_eq!(rows, expected);
    }
}

#[test]
fn speedscope_files_are_valid_for_its_schema() {
    // Only the schema of the package is used.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("speedscope");
    let schema = folder.join("package/dist/release/file-format-schema.json");
    if !schema.exists() {
        let _ = std::fs::create_dir_all(&folder);
        let pack = ["pack", "speedscope", "--silent"];
        let packed = run(Command::new("npm").args(pack).current_dir(&folder));
        let unpacked = packed.and_then(|name| {
            run(Command::new("tar").arg("xzf").arg(name.trim()).current_dir(&folder))
        });
        if unpacked.is_none() {
            return eprintln!("skipped: no npm, or no speedscope from its registry");
        }
    }
    let schema = std::fs::read_to_string(schema).expect("the package has the schema");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for recording in [typical(), hostile(), fixture::empty(), fixture::deep()] {
        let file = serde_json::from_slice(&export("speedscope", &recording).0).expect("JSON");
        let errors: Vec<String> =
            validator.iter_errors(&file).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}

/// Returns the drawing in a browser after its scripts have run, with a search for `searched`.
fn in_a_browser(name: &str, recording: &fixture::Bytes, searched: &str) -> Option<String> {
    run(Command::new("chromium").arg("--version"))?;
    let drawing = file(&format!("{name}.svg"), &export("flamegraph", recording).0);
    // Each has its own folder, because two browsers cannot share one.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{name}"));
    let mut browser = Command::new("timeout");
    browser.args(["120", "chromium", "--headless", "--no-sandbox", "--disable-gpu"]);
    browser.args(["--no-first-run", "--disable-background-networking", "--disable-sync"]);
    browser.args(["--disable-component-update", "--disable-quic"]);
    browser.arg(format!("--user-data-dir={}", folder.display())).arg("--dump-dom");
    Some(must(browser.arg(format!("file://{}?s={searched}", drawing.display()))))
}

#[test]
fn a_browser_draws_flame_graphs_and_searches_in_them() {
    let Some(drawn) = in_a_browser("typical", &typical(), "inner") else {
        return eprintln!("skipped: no chromium");
    };
    // 3,500 of 10,000 ns.
    assert!(drawn.contains("Matched: 35.0%"), "{drawn}");
    for (name, recording) in [("hostile", hostile()), ("deep", fixture::deep())] {
        let drawn = in_a_browser(name, &recording, "x").expect("it was there before");
        assert!(drawn.contains("id=\"frames\""), "{drawn}");
        assert!(!drawn.contains("parsererror"), "{drawn}");
    }
}

#[test]
fn go_tool_pprof_reads_profiles() {
    if run(Command::new("go").arg("version")).is_none() {
        return eprintln!("skipped: no go");
    }
    let pprof = |options: &[&str], profile: &Path| {
        must(Command::new("go").args(["tool", "pprof"]).args(options).arg(profile))
    };
    let profile = file("typical.pb.gz", &export("pprof", &typical()).0);
    let top = pprof(&["-top", "-unit=ns"], &profile);
    let line = |name: &str| {
        let line = top.lines().find(|line| line.ends_with(name)).unwrap_or_else(|| panic!("{top}"));
        let mut cells = line.split_whitespace();
        let flat = cells.next().expect("flat").to_owned();
        (flat, cells.nth(2).expect("cumulative").to_owned())
    };
    assert_eq!(line("outer"), ("6500ns".to_owned(), "10000ns".to_owned()));
    assert_eq!(line("inner"), ("3500ns".to_owned(), "3500ns".to_owned()));
    assert!(pprof(&["-top", "-sample_index=calls"], &profile).contains("prod/mark"));
    assert!(pprof(&["-comments"], &profile).contains("2 calls ended unseen"));
    // Names are shown as they are.
    let mut infos = fixture::functions();
    (infos[0].name, infos[1].name) = ("shop::format(int)".into(), "shop::twice<long>".into());
    let named = fixture::open(fixture::bytes_of(&infos, &fixture::groups()));
    let top = pprof(&["-top"], &file("named.pb.gz", &export("pprof", &named).0));
    assert!(infos[..2].iter().all(|info| top.contains(&format!(" {}\n", info.name))), "{top}");
    let hostile = file("hostile.pb.gz", &export("pprof", &hostile()).0);
    pprof(&["-traces"], &hostile);
}

/// Uses the schema in Perfetto's own package; its trace processor would have to be fetched from
/// elsewhere.
#[test]
fn perfettos_schema_knows_every_field() {
    const DECODE: &str = "
import sys, zlib
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

def parse(data):
    trace = perfetto_trace_pb2.Trace()
    trace.ParseFromString(data)
    return trace.packet

def check(message):
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.message_type:
            for part in value if field.is_repeated else [value]:
                check(part)

def say(*words):
    print(*(word for word in words if word))

names = {}
sources = {}
counters = {}
for outer in parse(open(sys.argv[1], 'rb').read()):
    check(outer)
    for packet in parse(zlib.decompress(outer.compressed_packets)):
        check(packet)
        sequence = packet.trusted_packet_sequence_id
        for name in packet.interned_data.event_names:
            names[sequence, name.iid] = name.name
        for place in packet.interned_data.source_locations:
            sources[sequence, place.iid] = f'{place.file_name}:{place.line_number}'
        track, event = packet.track_descriptor, packet.track_event
        if track.HasField('thread'):
            say('thread', track.thread.pid, track.thread.tid, track.thread.thread_name)
        if track.HasField('process'):
            say('process', track.process.pid, track.process.process_name)
        if track.HasField('counter'):
            counters[track.uuid] = track.name
        if event.HasField('type'):
            name = event.name or names.get((sequence, event.name_iid), '')
            if event.type == event.TYPE_COUNTER:
                name = f'{counters[event.track_uuid]} = {event.counter_value}'
            remarks = [remark.name for remark in event.debug_annotations if remark.bool_value]
            source = sources.get((sequence, event.source_location_iid))
            say(perfetto_trace_pb2.TrackEvent.Type.Name(event.type), name, source, *remarks)
";
    let Some(python) = python() else {
        return eprintln!("skipped: no python3, or no perfetto from PyPI");
    };
    let decode = |name: &str, recording: &fixture::Bytes| {
        let trace = file(&format!("{name}.pftrace"), &export("perfetto", recording).0);
        must(Command::new(python).args(["-c", DECODE]).arg(trace))
    };
    insta::assert_snapshot!(decode("typical", &typical()), @r###"
process 100 app
thread 100 100 main
TYPE_SLICE_BEGIN outer app.c:7
TYPE_SLICE_BEGIN inner
TYPE_SLICE_END
TYPE_SLICE_BEGIN prod/mark
TYPE_SLICE_END untimed
TYPE_SLICE_BEGIN inner
TYPE_SLICE_END
TYPE_SLICE_END
thread 100 7
TYPE_SLICE_BEGIN outer app.c:7
TYPE_SLICE_BEGIN prod/mark
TYPE_SLICE_END untimed
TYPE_SLICE_END open
TYPE_INSTANT what is missing
"###);
    decode("hostile", &hostile());
    decode("deep", &fixture::deep());
    let counters = decode("locks", &over_time::contended_lock());
    let counters: Vec<_> = counters.lines().filter(|it| it.starts_with("TYPE_COUNTER")).collect();
    let waiting = |threads| format!("TYPE_COUNTER 0x5000: threads waiting = {threads}");
    assert_eq!(counters, [1, 2, 1, 0].map(waiting));
}

#[test]
fn flame_graphs_are_well_formed() {
    if run(Command::new("xmllint").arg("--version")).is_none() {
        return eprintln!("skipped: no xmllint (libxml2-utils)");
    }
    for (name, recording) in [("typical", typical()), ("hostile", hostile())] {
        let svg = file(&format!("{name}.svg"), &export("flamegraph", &recording).0);
        must(Command::new("xmllint").args(["--noout", "--nonet"]).arg(svg));
    }
}
