//! Root writes where others have put traps: it follows no link of theirs, and neither replaces nor
//! removes their files.

use ctrace_tests::daemon::{self, Daemon};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::look::wait_until;
use ctrace_tests::process::{Finished, Running, run};
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, Uid, chownat, mknodat};
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);
const STRANGER: u32 = 3_999_997;

/// A file of root's, and a folder like /tmp with a stranger's links to it.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("victim"), "precious").expect("written");
        let shared = folder.path().join("shared");
        fs::create_dir(&shared).expect("made");
        fs::set_permissions(&shared, Permissions::from_mode(0o1777)).expect("ours");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn shared(&self, name: &str) -> String {
        self.path("shared").join(name).display().to_string()
    }

    fn give_away(&self, name: &str) {
        let (uid, at) = (Some(Uid::from_raw(STRANGER)), AtFlags::SYMLINK_NOFOLLOW);
        chownat(CWD, self.shared(name), uid, None::<Gid>, at).expect("root may");
    }

    /// Plants a stranger's link, and returns its name.
    fn plant(&self, name: &str, to: &Path) -> String {
        symlink(to, self.shared(name)).expect("made");
        self.give_away(name);
        self.shared(name)
    }

    #[track_caller]
    fn check(&self) {
        let victim = fs::read_to_string(self.path("victim")).expect("there");
        assert_eq!(victim, "precious");
    }
}

fn ctrace(env: &Env, arguments: &[&str]) -> Finished {
    let mut command = Command::new(&env.ctrace);
    run(command.args(arguments).env_remove("SUDO_UID"), LIMIT).expect("ctrace")
}

fn counts(env: &Env) -> String {
    env.targets.get(&program("counts.c")).expect("builds").display().to_string()
}

fn spin(env: &Env) -> Running {
    let path = env.targets.get(&program("spin.c")).expect("builds");
    Running::start_ready(Command::new(path).args(["0", "2000"])).expect("starts")
}

#[track_caller]
fn refused(finished: &Finished, why: &str) {
    assert_eq!(finished.shell_code(), 125, "{}", finished.stderr);
    assert!(finished.stderr.contains(why), "{why} is not in: {}", finished.stderr);
}

#[test]
fn planted_links_are_not_followed() {
    let env = or_skip!(gate::live(Link::Session));
    let scene = Scene::new();
    let counts = counts(&env);
    let whole = scene.path("whole.ctrace").display().to_string();
    let recorded = ctrace(&env, &["record", "-f", "leaf", "-o", &whole, "--", &counts, "10"]);
    assert_eq!(recorded.shell_code(), 0, "{}", recorded.stderr);
    let file = scene.plant("file", &scene.path("victim"));
    let new = scene.plant("new", &scene.path("made"));
    let folder = scene.plant("folder", scene.folder.path());
    let inside = format!("{folder}/victim");
    let why = "is a symbolic link that others could have put there";
    for target in [&file, &new, &inside] {
        let command = ["-o", target, "--", &counts, "10"];
        refused(&ctrace(&env, &[&["run", "-f", "leaf"], &command[..]].concat()), why);
        refused(&ctrace(&env, &[&["record", "-f", "leaf"], &command[..]].concat()), why);
        refused(&ctrace(&env, &["report", &whole, "-o", target]), why);
        refused(&ctrace(&env, &["export", &whole, "--format", "chrome", "-o", target]), why);
        scene.check();
        assert!(!scene.path("made").exists());
    }
    // Names that ctrace makes up.
    fs::create_dir(scene.shared("man")).expect("made");
    fs::set_permissions(scene.shared("man"), Permissions::from_mode(0o1777)).expect("ours");
    scene.plant("man/ctrace-run.1", &scene.path("victim"));
    refused(&ctrace(&env, &["man", &scene.shared("man")]), why);
    refused(&ctrace(&env, &["man", &format!("{folder}/pages")]), why);
    assert!(!scene.path("pages").exists());
    scene.check();
}

/// Makes a recording large: each call has a value that cannot be packed.
const LARGE: [&str; 2] = ["--arg", "leaf: 0:u64"];

/// The name was ctrace's choice, not a user's.
#[test]
fn the_file_beside_a_recording_is_none_that_was_there() {
    let env = or_skip!(gate::live(Link::Session));
    let scene = Scene::new();
    scene.plant("trace.ctrace.part", &scene.path("victim"));
    let trace = scene.shared("trace.ctrace");
    let what = ["record", "--max-size", "1MiB", "-f", "leaf", "-o", &trace];
    let finished = ctrace(&env, &[&what[..], &LARGE, &["--", &counts(&env), "500000"]].concat());
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    assert!(finished.stderr.contains("the newest"), "it became smaller: {}", finished.stderr);
    scene.check();
    let mut names: Vec<_> = fs::read_dir(scene.path("shared"))
        .expect("there")
        .map(|entry| entry.expect("readable").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["trace.ctrace", "trace.ctrace.part"], "nothing else is left");
}

#[test]
fn further_files_of_a_recording_are_none_that_others_put_there() {
    let env = or_skip!(gate::live(Link::Session));
    let scene = Scene::new();
    let (trace, counts) = (scene.shared("trace.ctrace"), counts(&env));
    let what = ["record", "--rotate", "1MiB", "-f", "leaf", "-o", &trace];
    let all = [&what[..], &LARGE, &["--", &counts, "500000"]].concat();
    scene.plant("trace.1.ctrace", &scene.path("victim"));
    let finished = ctrace(&env, &all);
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let next = scene.shared("trace.2.ctrace");
    let said = |line: &&str| line.contains("symbolic link") && line.contains(&next);
    let lines = finished.stderr.lines().filter(said).count();
    assert_eq!(lines, 1, "it is said once where it goes on: {}", finished.stderr);
    scene.check();
    assert!(Path::new(&scene.shared("trace.1.ctrace")).is_symlink(), "it is left alone");
    let calls = |files: &[&str]| {
        let report = ctrace(&env, &[&["report", "--format", "json"], files].concat());
        let report: serde_json::Value = serde_json::from_str(&report.stdout).expect("a report");
        let functions = report["functions"].as_array().cloned().unwrap_or_default();
        functions.iter().filter_map(|function| function["calls"].as_u64()).sum::<u64>()
    };
    assert!(calls(&[&next]) > 0);
    assert!(calls(&[&trace, &next]) > calls(&[&trace]));
}

#[test]
fn recordings_are_replaced_only_when_asked() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.ctrace").display().to_string();
    let counts = counts(&env);
    let record = |options: &[&str]| {
        let command = ["-f", "leaf", "-o", &trace, "--", &counts, "10"];
        ctrace(&env, &[&["record"], options, &command].concat())
    };
    fs::write(&trace, "").expect("written");
    assert_eq!(record(&[]).shell_code(), 0, "an empty file is nothing");
    let first = fs::read(&trace).expect("there");
    refused(&record(&[]), "is there already; --force replaces it");
    assert_eq!(fs::read(&trace).expect("there"), first);
    assert_eq!(record(&["--force"]).shell_code(), 0);
    assert_ne!(fs::read(&trace).expect("there"), first);
    // Files of an earlier recording with the next names.
    fs::rename(&trace, folder.path().join("trace.7.ctrace")).expect("moved");
    refused(&record(&["--rotate", "1MiB"]), "trace.7.ctrace is there already");
    assert_eq!(record(&["--rotate", "1MiB", "--force"]).shell_code(), 0);
}

#[test]
fn the_second_of_two_at_once_is_refused() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.ctrace");
    let target = spin(&env);
    let pid = target.pid().to_string();
    for limit in [&[][..], &["--max-size", "1MiB"], &["--rotate", "1MiB"]] {
        let mut words = vec!["record", "-f", "step", "-p", &pid];
        words.extend(limit);
        words.extend(["-o", trace.to_str().expect("text")]);
        let first = Running::start(Command::new(&env.ctrace).args(&words)).expect("starts");
        wait_until("calls are recorded", || {
            fs::metadata(&trace).is_ok_and(|meta| meta.len() > 100)
        })
        .expect("it records");
        refused(&ctrace(&env, &words), "another ctrace is writing it");
        first.signal(Signal::INT).expect("it runs");
        let finished = first.wait(LIMIT).expect("it ends");
        assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
        let report = ctrace(&env, &["report", trace.to_str().expect("text")]);
        assert!(report.stdout.contains("step"), "{}", report.stderr);
        fs::remove_file(&trace).expect("there");
    }
}

/// A path that the user names is opened, whatever it is.
#[test]
fn pipes_and_devices_can_be_written_to() {
    let env = or_skip!(gate::live(Link::Session));
    let scene = Scene::new();
    let traced = format!("{} run -f leaf --format json", env.ctrace.display());
    let (counts, pipe, out) = (counts(&env), scene.shared("pipe"), scene.path("out"));
    let out = out.display();
    for script in [
        format!("{traced} -o >(cat > {out}) -- {counts} 10 > /dev/null; wait $!"),
        format!("{traced} -o /dev/stdout -- {counts} 10 | grep -v '^calls' > {out}"),
        format!("{traced} -o /proc/self/fd/7 -- {counts} 10 7> {out}"),
        format!("mkfifo {pipe}; cat {pipe} > {out} & {traced} -o {pipe} -- {counts} 10; wait"),
        format!("{traced} -o /dev/null -- {counts} 10; echo '\"leaf\"' > {out}"),
    ] {
        let finished = run(Command::new("bash").args(["-c", &script]), LIMIT).expect("bash");
        assert_eq!(finished.shell_code(), 0, "{script}: {}", finished.stderr);
        let seen = fs::read_to_string(scene.path("out")).expect("there");
        assert!(seen.contains("\"leaf\""), "{script}: {seen}");
        fs::remove_file(scene.path("out")).expect("there");
    }
}

#[test]
fn the_daemon_writes_through_no_planted_link_and_says_so_before() {
    let env = or_skip!(gate::live(Link::Session));
    let scene = Scene::new();
    let dir = daemon::folder(&env, &[("spin", &program("spin.c"))]).expect("a folder");
    let output = scene.plant("web.jsonl", &scene.path("victim"));
    let recordings = scene.plant("recordings", scene.folder.path());
    let ours = scene.path("ours");
    symlink(scene.path("real.jsonl"), &ours).expect("made");
    let target = |id: &str, output: &str| {
        format!(
            "[[target]]\nid = \"{id}\"\nexe = \"DIR/spin\"\nfunctions = \"step\"\ninterval = \"1s\"\n\
             output = \"{output}\"\n"
        )
    };
    let all = [target("web", &output), target("other", ours.to_str().expect("text"))].concat();
    let daemon = Daemon::start(&env, dir, &all).expect("starts");
    let config = daemon.path("ctrace.toml");
    let text = fs::read_to_string(&config).expect("there");
    let text = text.lines().map(|line| match line.starts_with("recordings") {
        true => format!("recordings = \"{recordings}\"\n"),
        false => format!("{line}\n"),
    });
    fs::write(&config, text.collect::<String>()).expect("written");
    let checked = ctrace(&env, &["daemon", "--check", "--config", config.to_str().expect("text")]);
    for part in [
        "target web: `output` is refused: cannot write",
        "`recordings` is refused",
        "real.jsonl",
        "is followed",
    ] {
        assert!(checked.stderr.contains(part), "{part} is not in: {}", checked.stderr);
    }
    daemon.ask(&["reload"]).expect("sound");
    let spin = daemon.target("spin", &["0", "500"]).expect("starts");
    daemon.wait_until_traced(spin.pid()).expect("traced");
    wait_until("reports are lost", || {
        daemon.ask(&["status"]).is_ok_and(|status| status["reports_lost"].as_u64() > Some(0))
    })
    .expect("they are");
    let refused = daemon.ctl(&["record", "web", "-d", "1"]).expect("runs");
    assert!(refused.stderr.contains("symbolic link"), "{}", refused.stderr);
    let (finished, _dir) = daemon.end().expect("ends");
    assert!(finished.stderr.contains("symbolic link"), "{}", finished.stderr);
    scene.check();
}

/// The pipe's owner does not read it.
#[test]
fn a_planted_pipe_silences_no_other_target_and_keeps_no_daemon() {
    let env = or_skip!(gate::live(Link::Session));
    let scene = Scene::new();
    let dir = daemon::folder(&env, &[("spin", &program("spin.c")), ("other", &program("spin.c"))])
        .expect("a folder");
    let pipe = scene.shared("x.jsonl");
    let (mode, fifo) = (Mode::RUSR | Mode::WUSR, FileType::Fifo);
    mknodat(CWD, &pipe, fifo, mode, 0).expect("made");
    scene.give_away("x.jsonl");
    scene.give_away(".");
    let target = |program: &str, output: &str| {
        format!(
            "[[target]]\nid = \"{program}\"\nexe = \"DIR/{program}\"\nfunctions = \"step\"\n\
             interval = \"1s\"\noutput = \"{output}\"\n"
        )
    };
    let ours = scene.path("y.jsonl");
    let all = [target("spin", &pipe), target("other", ours.to_str().expect("text"))].concat();
    let daemon = Daemon::start(&env, dir, &all).expect("starts");
    let config = daemon.path("ctrace.toml");
    let checked = ctrace(&env, &["daemon", "--check", "--config", config.to_str().expect("text")]);
    let why = "target spin: `output` is refused: cannot write";
    assert!(checked.stderr.contains(why), "{}", checked.stderr);
    let theirs = daemon.target("spin", &["0", "500"]).expect("starts");
    daemon.wait_until_traced(theirs.pid()).expect("traced");
    wait_until("a report is lost", || {
        daemon.ask(&["status"]).is_ok_and(|status| status["reports_lost"].as_u64() > Some(0))
    })
    .expect("it is");
    let other = daemon.target("other", &["0", "500"]).expect("starts");
    daemon.wait_until_traced(other.pid()).expect("traced");
    wait_until("reports of the other one", || {
        fs::read_to_string(&ours).is_ok_and(|text| text.lines().count() > 1)
    })
    .expect("they come");
    let (finished, _dir) = daemon.end().expect("it ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let line = "x.jsonl: it is no regular file";
    let said = finished
        .stderr
        .lines()
        .filter(|said| said.starts_with("ctrace: cannot write reports") && said.contains(line));
    assert_eq!(said.count(), 1, "{}", finished.stderr);
}

#[test]
fn the_daemon_removes_only_recordings_of_its_target() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = daemon::folder(&env, &[("spin", &program("spin.c"))]).expect("a folder");
    let target =
        "recordings_keep = 2\n[[target]]\nid = \"web\"\nexe = \"DIR/spin\"\nfunctions = \"step\"\n";
    let daemon = Daemon::start(&env, dir, &format!("rescan = \"5s\"\n{target}")).expect("starts");
    let folder = daemon.path("recordings");
    fs::create_dir(&folder).expect("made");
    let spin = daemon.target("spin", &["0", "500"]).expect("starts");
    daemon.wait_until_traced(spin.pid()).expect("traced");
    // Older recordings made by hand of the same process.
    let mine: Vec<PathBuf> =
        ["web-mine.ctrace", "mine.ctrace"].map(|name| folder.join(name)).into();
    for file in &mine {
        let pid = spin.pid().to_string();
        let file = file.to_str().expect("text");
        let done = ctrace(&env, &["record", "-f", "mix", "-p", &pid, "-d", "0.2", "-o", file]);
        assert_eq!(done.shell_code(), 0, "{}", done.stderr);
    }
    let made: Vec<PathBuf> = (0..3)
        .map(|_| {
            let recorded = daemon.ask(&["record", "web", "-d", "0.2"]).expect("records");
            PathBuf::from(recorded["file"].as_str().expect("a file"))
        })
        .collect();
    assert_eq!(made.iter().map(|file| file.exists()).collect::<Vec<_>>(), [false, true, true]);
    assert!(mine.iter().all(|file| file.exists()), "what is not the daemon's stays");
    daemon.end().expect("ends");
}
