//! Files of targets claim more than they have, or change while they are read: ctrace takes bounded
//! memory and time, and reports what it left out.

use ctrace_tests::daemon::{Daemon, calls, reports};
use ctrace_tests::env::Link;
use ctrace_tests::look::wait_until;
use ctrace_tests::process::{Finished, Running, run};
use ctrace_tests::targets::program;
use ctrace_tests::{crafted, gate, or_skip};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Well above the limit of ten seconds for a look.
const LIMIT: Duration = Duration::from_secs(120);
const GIB: u64 = 1 << 30;

/// Limits all allocations to 640 MiB: more ends in an abort.
fn bounded(binary: &Path) -> Command {
    let mut command = Command::new("prlimit");
    command.arg(format!("--data={}", 640 << 20)).arg(binary);
    command
}

fn list(binary: &Path, path: &Path, arguments: &[&str]) -> Finished {
    let mut command = bounded(binary);
    run(command.arg("list").arg(path).args(arguments), LIMIT).expect("ctrace ends")
}

/// Fails unless this many functions are listed, and all other output contains `word`.
#[track_caller]
fn lists(binary: &Path, path: &Path, functions: usize, word: Option<&str>) -> Vec<Value> {
    let finished = list(binary, path, &["--json"]);
    let said = &finished.stderr;
    assert_eq!(finished.shell_code(), 0, "{said}");
    assert_eq!(said.is_empty(), word.is_none(), "{said}");
    assert!(said.lines().all(|line| word.is_some_and(|word| line.contains(word))), "{said}");
    let list: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let rows = list["functions"].as_array().expect("an array").clone();
    assert_eq!(rows.len(), functions);
    rows
}

/// Fails unless one line says why nothing is listed.
#[track_caller]
fn refuses(binary: &Path, path: &Path, words: &str) {
    let finished = list(binary, path, &[]);
    assert_eq!(finished.shell_code(), 125, "{}", finished.stderr);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    assert!(finished.stderr.contains(words), "{}", finished.stderr);
}

fn executable(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("write");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its mode");
}

/// Data outside the parts that headers name cost nothing.
#[test]
fn sparse_copies_are_listed_as_what_they_are_copies_of() {
    let binary = or_skip!(gate::binary());
    let dir = tempfile::tempdir().expect("temporary directory");
    let original = gate_target("spin.c");
    let expected = list(&binary, &original, &[]).stdout;
    assert!(expected.contains("step"));
    let bytes = fs::read(&original).expect("the program");
    for length in [3 * GIB, 20 * GIB, 4096 * GIB] {
        let path = dir.path().join("spin");
        crafted::sparse(&path, &bytes, length).expect("a sparse file");
        let listed = list(&binary, &path, &[]);
        assert_eq!(listed.shell_code(), 0, "{}", listed.stderr);
        assert_eq!(count(&listed.stdout), count(&expected));
    }
}

fn count(text: &str) -> usize {
    text.lines().count()
}

fn gate_target(source: &str) -> std::path::PathBuf {
    ctrace_tests::targets::Targets::on_host().get(&program(source)).expect("builds")
}

#[test]
fn sections_longer_than_anything_are_refused() {
    let binary = or_skip!(gate::binary());
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("long");
    // Code is read by parts. When the time is up, the rest counts as switching stacks.
    crafted::sparse(&path, &crafted::long_code(20 * GIB), 21 * GIB).expect("a sparse file");
    let listed =
        run(bounded(&binary).arg("list").arg(&path).args(["--max-object-time", "2s"]), LIMIT)
            .expect("ctrace ends");
    assert_eq!(listed.shell_code(), 0, "{}", listed.stderr);
    assert!(listed.stdout.contains("only"), "{}", listed.stdout);
    // Debug information that takes too much is left out.
    crafted::sparse(&path, &crafted::long_debug_section(20 * GIB), 21 * GIB).expect("sparse");
    let rows = lists(&binary, &path, 1, Some("file and line are left out"));
    assert_eq!((&rows[0]["name"], &rows[0]["line"]), (&Value::from("only"), &Value::Null));
}

#[test]
fn half_a_million_sections_are_refused() {
    let binary = or_skip!(gate::binary());
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("sections");
    crafted::section_headers(&path).expect("a sparse file");
    refuses(&binary, &path, "it has 500000 sections");
}

#[test]
fn names_that_overlap_are_not_copied_each() {
    let binary = or_skip!(gate::binary());
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("names");
    executable(&path, &crafted::overlapping_names(4_000, 35));
    let listed = list(&binary, &path, &[]);
    assert_eq!(listed.shell_code(), 0, "{}", listed.stderr);
    assert!(listed.stderr.contains("longer than the tables"), "{}", listed.stderr);
    assert!(listed.stdout.len() < 4 << 20, "{}", listed.stdout.len());
    assert!(count(&listed.stdout) > 0);
}

#[test]
fn names_of_one_function_are_compared_to_few() {
    let binary = or_skip!(gate::binary());
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("aliases");
    executable(&path, &crafted::symbols_at_one_address(300_000));
    let rows = lists(&binary, &path, 1, None);
    let aliases = rows[0]["aliases"].as_array().expect("an array");
    assert_eq!((&rows[0]["name"], aliases.len()), (&Value::from("f000000"), 299_999));
    assert_eq!(aliases[41], "f000042");
}

#[test]
fn compressed_sections_unpack_within_bounds() {
    let binary = or_skip!(gate::binary());
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("packed");
    let bytes = crafted::zstd_strings(2 * GIB);
    assert!(bytes.len() < 83_000, "{}", bytes.len());
    executable(&path, &bytes);
    lists(&binary, &path, 1, Some("file and line are left out: the debug information of packed"));
    // A small one is unpacked, and then is malformed.
    executable(&path, &crafted::zstd_strings(1 << 20));
    lists(&binary, &path, 1, None);
}

/// Makes a program without symbols, with a debug file named and proved by a checksum.
fn with_debug_link(dir: &Path) -> std::path::PathBuf {
    let path = dir.join("linked");
    fs::copy(gate_target("spin.c"), &path).expect("copies");
    let tool = |arguments: &[&str]| {
        let mut command = Command::new("objcopy");
        let finished = run(command.args(arguments).current_dir(dir), LIMIT).expect("objcopy");
        assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    };
    tool(&["--remove-section=.note.gnu.build-id", "linked"]);
    tool(&["--only-keep-debug", "linked", "linked.debug"]);
    tool(&["--strip-all", "--add-gnu-debuglink=linked.debug", "linked"]);
    path
}

#[test]
fn debug_links_to_sparse_files_end() {
    let binary = or_skip!(gate::binary());
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = with_debug_link(dir.path());
    assert!(list(&binary, &path, &[]).stdout.contains("step"));
    let debug = dir.path().join("linked.debug");
    let bytes = fs::read(&debug).expect("the debug file");
    crafted::sparse(&debug, &bytes, 4096 * GIB).expect("a sparse file");
    let listed =
        run(bounded(&binary).arg("list").arg(&path).args(["--max-object-time", "1s"]), LIMIT)
            .expect("ctrace ends");
    assert!(!listed.stdout.contains("step"), "it is another file: {}", listed.stdout);
    assert!(listed.stderr.contains("linked.debug is too large"), "{}", listed.stderr);
    // Functions are left without their names.
    assert!(listed.stdout.contains("  fn_0x"), "{}", listed.stdout);
    assert_eq!(listed.shell_code(), 0, "{}", listed.stderr);
}

/// It is opened as a file or not at all, whatever it becomes a moment later.
#[test]
fn a_debug_file_that_turns_into_a_fifo_stops_nobody() {
    let binary = or_skip!(gate::binary());
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = with_debug_link(dir.path());
    let debug = dir.path().join("linked.debug");
    let (file, fifo) = (dir.path().join("file"), dir.path().join("fifo"));
    fs::copy(&debug, &file).expect("copies");
    let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
    assert!(made.success());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let next = dir.path().join("next");
            while !over.load(Ordering::Relaxed) {
                for other in [&fifo, &file] {
                    fs::hard_link(other, &next).expect("links");
                    fs::rename(&next, &debug).expect("renames");
                    // If both names are one file's, rename leaves both.
                    let _ = fs::remove_file(&next);
                }
            }
        });
        let ends: Vec<_> =
            (0..60).map(|_| run(Command::new(&binary).arg("list").arg(&path), LIMIT)).collect();
        over.store(true, Ordering::Relaxed);
        for end in ends {
            end.expect("ctrace ends");
        }
    });
}

/// The section of markers claims gigabytes of entries.
#[test]
fn a_marker_section_without_end_is_read_as_far_as_it_goes() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("marks");
    let mut bytes = fs::read(gate_target("marks_tree.c")).expect("the program");
    crafted::claim_size(&mut bytes, "ctrace_sites", 1 << 34);
    executable(&path, &bytes);
    let mut command = bounded(&env.ctrace);
    let traced = run(command.args(["run", "-m", "*", "--"]).arg(&path), LIMIT);
    let traced = traced.expect("ctrace ends");
    assert!(traced.stderr.contains("the section is damaged"), "{}", traced.stderr);
    assert!(!traced.stderr.contains("memory allocation"), "{}", traced.stderr);
}

/// A target that is too large costs the daemon that target and a line, never the others.
#[test]
fn a_daemon_outlives_its_targets_files() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = tempfile::tempdir().expect("temporary directory");
    let spin = fs::read(env.targets.get(&program("spin.c")).expect("builds")).expect("reads");
    executable(&dir.path().join("spin"), &spin);
    crafted::sparse(&dir.path().join("sparse"), &spin, 4096 * GIB).expect("a sparse file");
    // Its table of symbols claims the length of the file.
    let mut large = spin.clone();
    crafted::claim_size(&mut large, ".symtab", 24 * GIB);
    crafted::sparse(&dir.path().join("large"), &large, 4096 * GIB).expect("a sparse file");
    let target = |name: &str| {
        format!(
            "[[target]]\nid = \"{name}\"\nexe = \"DIR/{name}\"\nfunctions = [\"step\"]\n\
             interval = \"500ms\"\n"
        )
    };
    let targets = ["spin", "sparse", "large"].map(target).concat();
    let daemon = Daemon::start(&env, dir, &targets).expect("the daemon starts");
    let start = |name: &str| daemon.target(name, &["0", "500"]).expect("starts");
    let started: [Running; 3] = ["large", "sparse", "spin"].map(start);
    for running in &started[1..] {
        daemon.wait_until_traced(running.pid()).expect("traced");
    }
    wait_until("some intervals are over", || {
        daemon.ask(&["status"]).is_ok_and(|status| !status.is_null())
    })
    .expect("it answers");
    std::thread::sleep(Duration::from_secs(5));
    let traced = daemon.traced();
    assert!(!traced.contains(&i64::from(started[0].pid())), "{traced:?}");
    let (finished, _dir) = daemon.end().expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    assert!(finished.stderr.contains("is too large"), "{}", finished.stderr);
    let all = reports(&finished.stdout).expect("JSON lines");
    assert!(all.iter().map(|report| calls(report, "step")).sum::<u64>() > 0);
}

/// Writes the small ones of these files for the fuzzer.
#[test]
#[ignore = "writes files of the repository"]
fn write_the_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../probe-user/fuzz/corpus/list");
    let write = |name: &str, bytes: &[u8]| {
        fs::write(corpus.join(name), &bytes[..bytes.len().min(65_536)]).expect("write");
    };
    write("overlapping_names", &crafted::overlapping_names(500, 7));
    write("one_address", &crafted::symbols_at_one_address(500));
    write("zstd_strings", &crafted::zstd_strings(64 << 20));
    write("long_code", &crafted::long_code(1 << 40));
    write("long_debug_section", &crafted::long_debug_section(1 << 40));
    let sections = corpus.join("section_headers");
    crafted::section_headers(&sections).expect("a sparse file");
    write("section_headers", &fs::read(&sections).expect("reads"));
}
