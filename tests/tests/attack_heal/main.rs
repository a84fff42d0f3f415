//! Finds and removes breakpoints that a killed tracer left. Others' breakpoints stay.

mod others;

use ctrace_tests::env::{Env, Link};
use ctrace_tests::gate::{self, skipped, test_name};
use ctrace_tests::left::{Field, Leaver, Whose, again_and_again, changed_code, field};
use ctrace_tests::look::wait_until;
use ctrace_tests::or_skip;
use ctrace_tests::process::{Finished, Running, run};
use ctrace_tests::serve::Server;
use ctrace_tests::tools::has;
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// Serializes the tests: they use the same file, so one's tracer would remove another's
/// breakpoints.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(env: &Env) -> Field {
    let program = env.targets.get(&field()).expect("field.c builds");
    Field::start(&program).expect("field starts")
}

/// Returns their number, or `None` if the kernel left none.
fn leave(field: &Field, env: &Env, how: &str, of: Whose) -> Option<usize> {
    or_told(field.leave(env, how, of).expect("a tracer that dies"))
}

/// Skips the test if the kernel left nothing.
fn or_told<T>(left: Option<T>) -> Option<T> {
    if left.is_none() {
        skipped(&test_name(), "the kernel left nothing, as often as a tracer died");
    }
    left
}

fn ctrace(env: &Env, arguments: &[&str]) -> Finished {
    run(Command::new(&env.ctrace).args(arguments), LIMIT).expect("ctrace ends")
}

fn heal(env: &Env, pid: i32) -> Finished {
    ctrace(env, &["doctor", "--heal", &pid.to_string()])
}

fn heal_json(env: &Env, pid: i32) -> serde_json::Value {
    let told = ctrace(env, &["doctor", "--json", "--heal", &pid.to_string()]);
    serde_json::from_str(&told.stdout).expect("JSON")
}

/// Traces these processes for a moment.
fn attach(env: &Env, fields: &[Field]) {
    let pids: Vec<String> = fields.iter().map(|field| field.pid().to_string()).collect();
    let processes: Vec<&str> = pids.iter().flat_map(|pid| ["-p", pid.as_str()]).collect();
    let options = ["-f", "field_round", "--duration", "100ms", "-o", "/dev/null"];
    let finished = ctrace(env, &[&["attach"][..], &processes, &options].concat());
    assert_eq!(finished.shell_code(), 0, "{finished:?}");
}

/// Formats a count as in the messages.
fn count(n: usize) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", n / 1000, n % 1000) }
}

/// Checks that text and exit status report nothing.
fn assert_clean(env: &Env, pid: i32, what: &str) {
    let told = heal(env, pid);
    let line = format!("process {pid}: no tracer has left a breakpoint in its code\n");
    assert_eq!((told.stdout.as_str(), told.shell_code()), (line.as_str(), 0), "{what}: {told:?}");
}

fn doctor_heals(field: &mut Field, env: &Env, how: &str) {
    let healthy = field.speed().expect("it answers");
    let Some(left) = leave(field, env, how, Whose::This) else { return };
    let hurt = field.speed().expect("it answers");
    assert!(hurt > healthy * 2, "{healthy} ps a call before, {hurt} with {left} breakpoints");
    let told = heal(env, field.pid());
    let (pid, n) = (field.pid(), count(left));
    let start = format!("process {pid}: {n} breakpoints found in ");
    assert!(told.stdout.starts_with(&start), "{left}: {told:?}");
    assert!(told.stdout.ends_with(&format!("; {n} removed\n")), "{left}: {told:?}");
    assert_eq!(told.shell_code(), 0, "{told:?}");
    assert_eq!(field.left().expect("its memory"), Vec::<u64>::new());
    let healed = field.speed().expect("it answers");
    assert!(healed < healthy * 4, "{healthy} ps a call before, {healed} after");
    assert_clean(env, field.pid(), "a second time");
}

#[test]
fn doctor_removes_what_a_killed_tracer_left() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    doctor_heals(&mut start(&env), &env, "kill");
}

#[test]
fn doctor_removes_what_a_tracer_left_that_exited() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    doctor_heals(&mut start(&env), &env, "exit");
}

#[test]
fn attach_removes_what_an_earlier_tracer_left() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    let mut field = start(&env);
    let healthy = field.speed().expect("it answers");
    let Some(left) = leave(&field, &env, "kill", Whose::This) else { return };
    let pid = field.pid().to_string();
    let told = ctrace(&env, &["attach", &pid, "-f", "field_round", "-d", "0.1"]);
    let line =
        format!("process {pid}: removed {} breakpoints that an earlier tracer left", count(left));
    assert_eq!(told.shell_code(), 0, "{told:?}");
    assert!(told.stderr.contains(&line) && told.stdout.contains(&line), "{line}: {told:?}");
    assert_eq!(field.left().expect("its memory"), Vec::<u64>::new());
    let healed = field.speed().expect("it answers");
    assert!(healed < healthy * 4, "{healthy} ps a call before, {healed} after");
    let again = ctrace(&env, &["attach", &pid, "-f", "field_round", "-d", "0.1"]);
    assert!(!again.stderr.contains("breakpoint"), "{again:?}");
}

#[test]
fn a_deleted_program_is_healed() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join("field");
    std::fs::copy(env.targets.get(&field()).expect("field.c builds"), &program).expect("copied");
    let mut field = Field::start(&program).expect("field starts");
    std::fs::remove_file(&program).expect("deleted");
    doctor_heals(&mut field, &env, "kill");
}

#[test]
fn a_stripped_static_program_is_healed() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    let build = field().flag("-static").stripped();
    let program = env.targets.get(&build).expect("field.c builds");
    doctor_heals(&mut Field::start(&program).expect("field starts"), &env, "kill");
}

#[test]
fn all_processes_of_a_file_are_healed() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    let fields: Vec<Field> = (0..12).map(|_| start(&env)).collect();
    let all = |fields: &[Field]| -> Vec<usize> {
        fields.iter().map(|field| field.left().expect("its memory").len()).collect()
    };
    let leaver = Leaver::new(&env, &fields[0]).expect("a tracer");
    let left = again_and_again(&[10_000, 5_000, 20_000, 2_000, 40_000, 1_000], |microseconds| {
        leaver.once(Whose::All, "kill", microseconds)?;
        let left = all(&fields);
        Ok(left.iter().all(|left| *left > 0).then_some(left))
    });
    let Some(left) = or_told(left.expect("a tracer that dies")) else { return };
    let first = heal(&env, fields[0].pid());
    assert_eq!(first.shell_code(), 0, "{first:?}");
    // The tracer may have died between two processes.
    let differ: usize = all(&fields).iter().sum();
    assert!(differ < left.len(), "{left:?}: {differ} after the first");
    for field in &fields {
        let told = heal(&env, field.pid());
        assert_eq!(told.shell_code(), 0, "{told:?}");
    }
    assert_eq!(all(&fields), [0; 12]);
}

/// Linux 6.18 writes a call over the nop when a probe has been hit.
#[test]
fn calls_over_nops_are_removed() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    let program = env.targets.get(&field().flag("-DNOP5")).expect("field.c builds");
    let mut field = Field::start(&program).expect("field starts");
    let healthy = field.speed().expect("it answers");
    let leaver = Leaver::new(&env, &field).expect("a tracer");
    let left = again_and_again(&[3000, 10_000, 1000, 20_000], |microseconds| {
        let (running, input) = leaver.start(Whose::This, "kill", microseconds)?;
        field.speed()?;
        drop(input);
        running.wait(LIMIT)?;
        Ok((!field.left()?.is_empty()).then_some(()))
    });
    let Some(()) = or_told(left.expect("a tracer that dies")) else { return };
    // The tracer may have died while the kernel wrote the bytes of a nop.
    let half_written = heal_json(&env, field.pid())["half_written"].as_u64().expect("a count");
    let told = heal(&env, field.pid());
    let left = field.left().expect("its memory");
    assert_eq!(left.len() as u64, half_written, "{told:?}");
    assert_eq!(told.shell_code(), i32::from(half_written > 0), "{told:?}");
    if half_written > 0 {
        assert!(told.stdout.contains("while the kernel wrote a call there"), "{told:?}");
        return;
    }
    let healed = field.speed().expect("it answers");
    assert!(healed < healthy * 4, "{healthy} ps a call before, {healed} after");
}

/// Probes of marker scopes raise a counter in the program's memory.
#[test]
fn semaphores_that_were_left_are_lowered() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    let mut server = Server::start(&env).expect("marks_serve starts");
    let path = Server::path(&env).expect("marks_serve builds");
    let path = path.to_str().expect("a path");
    let list = ctrace(&env, &["list", path, "-m", "*", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list.stdout).expect("JSON");
    let scopes = list["functions"].as_array().expect("scopes").iter();
    let sites = scopes.flat_map(|scope| scope["sites"].as_array().expect("sites"));
    let places = sites.map(|site| {
        (site["point_offset"].as_u64().expect("an offset"), site["semaphore_offset"].as_u64())
    });
    let leaver = Leaver::on(&env, server.pid(), places).expect("a tracer");
    let left = again_and_again(&[100, 50, 200, 20, 400, 800, 10, 1600], |microseconds| {
        leaver.once(Whose::This, "kill", microseconds)?;
        Ok((!changed_code(server.pid())?.is_empty()).then_some(()))
    });
    let Some(()) = or_told(left.expect("a tracer that dies")) else { return };
    let raised = server.semaphores().expect("it answers");
    assert!(raised.values().any(|value| *value > 0), "{raised:?}");
    let told = heal(&env, server.pid());
    assert_eq!(told.shell_code(), 0, "{told:?}");
    assert_eq!(changed_code(server.pid()).expect("its memory"), Vec::<u64>::new());
    server.wait_for_semaphores(|_| 0).expect("all are lowered");
}

/// Runs gdb on a process, with a breakpoint at an offset of its program's file.
fn debug(field: &Field, place: u64) -> Running {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", field.pid())).expect("maps");
    let code = maps.lines().find(|line| line.contains(" r-xp ") && line.contains("field"));
    let words: Vec<&str> = code.expect("code").split_whitespace().collect();
    let hex = |text| u64::from_str_radix(text, 16).expect("a number");
    let start = hex(words[0].split('-').next().expect("start"));
    let address = place - hex(words[2]) + start;
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-q", "-p", &field.pid().to_string()]);
    gdb.args(["-ex", "set breakpoint always-inserted on", "-ex", &format!("break *{address:#x}")]);
    gdb.args(["-ex", "continue"]);
    let gdb = Running::start(&mut gdb).expect("gdb starts");
    let is_there = || field.left().is_ok_and(|left| left.contains(&place));
    wait_until("gdb has its breakpoint", is_there).expect("gdb");
    gdb
}

#[test]
fn a_debuggers_breakpoint_stays() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    or_skip!(has("gdb"));
    let (field, debugged) = (start(&env), start(&env));
    // The kernel then looks into this process, too, when a probe goes.
    let leaver = Leaver::new(&env, &debugged).expect("a tracer");
    let (running, input) = leaver.hold(Whose::This).expect("a tracer");
    drop(input);
    running.wait(LIMIT).expect("it ends");
    let Some(left) = leave(&field, &env, "kill", Whose::This) else { return };
    let place = field.left().expect("its memory")[7];
    let gdb = debug(&debugged, place);

    let told = heal(&env, debugged.pid());
    let line =
        format!("process {} is being debugged by process {} (gdb)", debugged.pid(), gdb.pid());
    assert!(told.stdout.starts_with(&line), "{line}: {told:?}");
    assert_eq!(told.shell_code(), 1, "{told:?}");
    assert_eq!(debugged.left().expect("its memory"), [place]);

    // Another process of the same file is healed except for that place.
    let told = heal(&env, field.pid());
    assert!(told.stdout.contains(&format!("; {} removed\n", count(left - 1))), "{left}: {told:?}");
    assert!(
        told.stdout.contains(": 1 breakpoint not touched: a process under a debugger"),
        "{told:?}"
    );
    assert_eq!(told.shell_code(), 1, "{told:?}");
    assert_eq!(debugged.left().expect("its memory"), [place]);
    assert_eq!(field.left().expect("its memory"), [place]);

    gdb.signal(Signal::KILL).expect("gdb is there");
    gdb.wait(LIMIT).expect("gdb ends");
    let told = heal(&env, field.pid());
    assert_eq!(told.shell_code(), 0, "{told:?}");
}

#[test]
fn a_programs_own_breakpoint_stays() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    let mut field = start(&env);
    let place = field.place(4321);
    field.break_itself(4321).expect("it answers");
    let told = heal(&env, field.pid());
    assert!(
        told.stdout.contains(": 1 breakpoint not touched: the program has made that"),
        "{told:?}"
    );
    assert_eq!(told.shell_code(), 1, "{told:?}");
    assert_eq!(field.left().expect("its memory"), [place]);
}

/// A process can forge breakpoints where no tracer could put one. Each one that the kernel refuses
/// takes time. So the others are removed first, and an attach waits a few seconds, not for all of
/// them.
#[test]
fn forged_breakpoints_delay_no_attach() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    let field = start(&env);
    // Behind the last instruction is a nop with a second byte that the kernel refuses to probe.
    let (all, likely) = (0..ctrace_tests::left::FUNCTIONS, 19_000..20_000);
    field.forge(all.clone(), 7).expect("its memory");
    field.forge(likely.clone(), 0).expect("its memory");
    let pid = field.pid().to_string();
    let told = ctrace(&env, &["attach", &pid, "-f", "field_round", "-d", "0.1"]);
    assert_eq!(told.shell_code(), 0, "{told:?}");
    let line = format!("process {pid}: removed ");
    assert!(told.stderr.contains(&line) && told.stderr.contains(" not looked into"), "{told:?}");
    let left = field.left().expect("its memory");
    let at_starts = likely.map(|function| field.place(function)).filter(|at| left.contains(at));
    assert_eq!(at_starts.count(), 0, "{told:?}");
    assert!(left.len() > 10_000, "{}: {told:?}", left.len());
    // `doctor --heal` waits longer, but not for all of them either.
    let told = heal(&env, field.pid());
    assert_eq!(told.shell_code(), 1, "{told:?}");
    assert!(told.stdout.contains(" breakpoints not looked into"), "{told:?}");
}

/// Programs that generate code at run time are clean.
#[test]
fn healthy_programs_are_clean() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    let python = "import ctypes, re, time\n\
                  back = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1)\n\
                  [back(x) for x in range(1000)]; print('ready', flush=True); time.sleep(60)";
    let node = "let s = 0; for (let i = 0; i < 3e6; i++) s += Math.sqrt(i); \
                console.log('ready', s > 0); setTimeout(() => {}, 60000)";
    let mut python3 = Command::new("python3");
    python3.args(["-c", python]);
    let mut nodejs = Command::new("node");
    nodejs.args(["-e", node]);
    let mut redis = Command::new("/usr/bin/redis-server");
    let dir = tempfile::tempdir().expect("a folder");
    redis.args(["--port", "0", "--save", "", "--unixsocket"]).arg(dir.path().join("socket"));
    for mut command in [python3, nodejs, redis] {
        let name = command.get_program().to_string_lossy().into_owned();
        let Ok(running) = Running::start_ready(&mut command) else {
            skipped(&format!("{} of {name}", test_name()), "it is not installed");
            continue;
        };
        std::thread::sleep(Duration::from_millis(300));
        assert_clean(&env, running.pid(), &name);
    }
}

#[test]
fn one_object_of_json_tells_the_same() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    let field = start(&env);
    let Some(left) = leave(&field, &env, "kill", Whose::This) else { return };
    let json = heal_json(&env, field.pid());
    assert_eq!((&json["schema"], &json["remains"]), (&"ctrace.heal.v1".into(), &false.into()));
    assert_eq!((&json["found"], &json["removed"]), (&left.into(), &left.into()), "{json}");
    let path = env.targets.get(&ctrace_tests::left::field()).expect("built");
    assert_eq!(Path::new(json["files"][0].as_str().expect("a path")), path);
    let gone = ctrace(&env, &["doctor", "--heal", "4194303"]);
    assert_eq!(gone.shell_code(), 125, "{gone:?}");
}

#[test]
fn a_stopped_target_is_remarked() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    let program = env.targets.get(&field()).expect("field.c builds");
    let mut command = Command::new(program);
    let (running, _input, _output) = Running::start_piped(&mut command).expect("field starts");
    running.signal(Signal::STOP).expect("it is there");
    let pid = running.pid().to_string();
    let told = ctrace(&env, &["attach", &pid, "-f", "field_round", "-d", "0.1"]);
    let line = format!("process {pid} is stopped and makes no calls until SIGCONT continues it");
    assert!(told.stderr.contains(&line) && told.stdout.contains(&line), "{told:?}");
    running.signal(Signal::CONT).expect("it is there");
    let told = ctrace(&env, &["attach", &pid, "-f", "field_round", "-d", "0.1"]);
    assert!(!told.stderr.contains("SIGCONT"), "{told:?}");
}
