//! Processes that come later and do not stay in the trace: they run on as untraced, and cost the others
//! nothing.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::install::install;
use ctrace_tests::later::{interrupt, joins, start};
use ctrace_tests::probes::wait_until_armed;
use ctrace_tests::process::{Finished, Running, run};
use ctrace_tests::report::Report;
use ctrace_tests::targets::{Build, program};
use ctrace_tests::trace::{Started, Trace};
use ctrace_tests::{gate, or_skip};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{ChildStdin, Command};
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(60);
/// A user without an account, that no other test has.
const UID: &str = "3999983";

/// A folder that every user can reach, with programs and libraries.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("chmod");
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn add(&self, env: &Env, build: &Build, name: &str) -> String {
        let path = self.path(name);
        install(&fs::read(env.targets.get(build).expect("builds")).expect("built"), &path);
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("chmod");
        path.to_str().expect("text").to_owned()
    }
}

/// A trace of all processes of a program, of which one waits for the end of its input.
struct Scene {
    folder: Folder,
    program: String,
    /// A library with an unwinder that only its own code calls.
    library: String,
    first: Running,
    input: ChildStdin,
    started: Started,
}

impl Scene {
    fn new(env: &Env) -> Self {
        let folder = Folder::new();
        let walks = program("libunwound.c").flag("-static-libgcc");
        let library = folder.add(env, &walks, "libwalks.so");
        let program = folder.add(env, &program("opened_walker.c"), "walker");
        let (first, input) = start(&mut Command::new(&program));
        let trace = Trace::choosing(env).expect("starts").args(["--later", "--exe", &program]);
        let started = trace.functions(["outer", "inner"]).start().expect("starts");
        wait_until_armed(first.pid(), program.as_ref()).expect("armed");
        Self { folder, program, library, first, input, started }
    }

    /// Returns the same program in a file that is not traced.
    fn untraced(&self, env: &Env) -> String {
        self.folder.add(env, &program("opened_walker.c"), "untraced")
    }

    /// Ends the first process and the trace.
    fn end(self) -> Report {
        drop(self.input);
        self.first.wait(LIMIT).expect("ends");
        interrupt(self.started)
    }
}

fn output(program: &str, arguments: &[&str]) -> Finished {
    let finished = run(Command::new(program).args(arguments), LIMIT).expect("ends");
    assert_eq!(finished.shell_code(), 0, "{finished:?}");
    finished
}

fn notes(report: &Report) -> Vec<&str> {
    let notes = report.0["notes"].as_array().expect("a list").iter();
    notes.filter_map(|note| note.as_str()).collect()
}

/// The kernel knows programs by their file, which may have several names. Calls that began before ctrace
/// has seen the name have no replaced return addresses when the process loads a library later, which
/// nobody guards any more; and they do not go on in the report.
#[test]
fn who_is_turned_away_returns_as_untraced() {
    let env = or_skip!(gate::live(Link::Session));
    let scene = Scene::new(&env);
    let alias = scene.folder.path("alias");
    fs::hard_link(&scene.program, &alias).expect("a second name");
    let alias = alias.to_str().expect("text");
    let alone = output(&scene.untraced(&env), &[&scene.library]).stdout;
    for _ in 0..3 {
        assert_eq!(output(alias, &[&scene.library]).stdout, alone);
    }
    let report = scene.end();
    report.expect_note(&["no process joined", "3 others were traced for a moment"]).expect("told");
    for function in ["outer", "inner"] {
        let (.., open) = report.expect(function).expect("selected").ends();
        assert_eq!(open, 0, "{function}: {:?}", notes(&report));
    }
}

/// One that loads what cannot be guarded is turned away alone.
#[test]
fn who_loads_a_runtime_costs_the_others_nothing() {
    let env = or_skip!(gate::live(Link::Session));
    let scene = Scene::new(&env);
    let runtime = scene.folder.add(&env, &program("libruntime.c"), "libruntime.so");
    assert!(output(&scene.program, &[&runtime]).stdout.contains("frames 0"));
    let alone = output(&scene.untraced(&env), &[&scene.library]).stdout;
    assert_eq!(output(&scene.program, &[&scene.library]).stdout, alone);
    let report = scene.end();
    let why = "libruntime.so walks its own stacks (a Java virtual machine, by its symbol JNI_CreateJavaVM)";
    report.expect_note(&["is not traced", why]).expect("it is told");
    report.expect_note(&["2 processes joined"]).expect("it is told");
    let removed = notes(&report).into_iter().filter(|note| note.contains("return probes of"));
    assert_eq!(removed.count(), 0, "{:?}", notes(&report));
    let (calls, .., open) = report.expect("outer").expect("called").ends();
    assert_eq!((calls, open), (2, 0));
}

/// The same for a program that the kernel admits and that is linked with it.
#[test]
fn a_program_with_a_runtime_costs_the_others_nothing() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = Folder::new();
    let plain = folder.add(&env, &program("opened_walker.c"), "walker");
    let hosting = program("opened_walker.c").flag("-Wl,--no-as-needed").with("libruntime.c");
    let hosting = folder.add(&env, &hosting, "hosting");
    folder.add(&env, &program("libruntime.c"), "libruntime.so");
    let as_user = |program: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", UID, "--regid", UID, "--clear-groups", program]);
        command
    };
    let (first, input) = start(&mut as_user(&plain));
    let trace = Trace::choosing(&env).expect("starts").args(["--later", "--user", UID]);
    let started = trace.functions(["outer", "inner"]).start().expect("starts");
    wait_until_armed(first.pid(), plain.as_ref()).expect("armed");
    for _ in 0..5 {
        let (other, other_input) = start(&mut as_user(&hosting));
        drop(other_input);
        assert_eq!(other.wait(LIMIT).expect("ends").shell_code(), 0);
    }
    let (last, last_input) = start(&mut as_user(&plain));
    joins(&started, &last);
    drop((input, last_input));
    for process in [first, last] {
        process.wait(LIMIT).expect("ends");
    }
    let report = interrupt(started);
    report.expect_note(&["is not traced", "a Java virtual machine"]).expect("it is told");
    let removed = notes(&report).into_iter().filter(|note| note.contains("return probes of"));
    assert_eq!(removed.count(), 0, "{:?}", notes(&report));
}

/// What a process starts that is traced by mistake is meant all the same.
#[test]
fn the_child_of_a_mistaken_process_joins() {
    let env = or_skip!(gate::live(Link::Session));
    let scene = Scene::new(&env);
    let alias = scene.folder.path("alias");
    fs::hard_link(&scene.program, &alias).expect("a second name");
    for _ in 0..5 {
        let alias = alias.to_str().expect("text");
        output(alias, &["fork", &scene.program, &scene.library]);
    }
    let report = scene.end();
    report.expect_note(&["5 processes joined", "5 others were traced for a moment"]).expect("told");
    let (calls, .., open) = report.expect("outer").expect("called").ends();
    assert_eq!((calls, open), (5, 0));
}
