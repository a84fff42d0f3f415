//! Frames that are left without returning, in every way and runtime that is at hand: exceptions,
//! cancelled threads, handlers that throw or jump, children that throw through their parent's
//! frames, coroutines that move between threads, backtraces. The target does the same as untraced,
//! also when ctrace is killed or detached at a random moment. Then none of its calls returns by a
//! return probe any more.
//!
//! Few rounds by default; `CTRACE_ATTACK_ROUNDS=100` for more. Other runtimes only if asked for:
//! `cargo test -p ctrace-tests --test attack_unwinding -- --ignored`.

use anyhow::{Context, Result, bail, ensure};
use ctrace_tests::attack::{Random, rounds};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::probes::changed_bytes;
use ctrace_tests::process::{Finished, Running, run};
use ctrace_tests::targets::{Build, program};
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, look, or_skip, trampolines};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
/// A target starts, runs and ends within this time. ctrace comes and goes meanwhile.
const MOMENTS: Duration = Duration::from_millis(1500);

/// A program and the functions that are traced in it.
struct Leaver {
    path: PathBuf,
    arguments: Vec<String>,
    globs: &'static [&'static str],
}

impl Leaver {
    fn new(path: impl AsRef<Path>, arguments: &[&str], globs: &'static [&'static str]) -> Leaver {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Leaver { path: path.as_ref().into(), arguments, globs }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments);
        command
    }

    /// Runs it from its start to its end under trace.
    fn traced(&self, env: &Env, alone: &Finished) -> Result<()> {
        let arguments = self.arguments.iter().map(String::as_str);
        let trace = Trace::run(env)?.functions(self.globs.iter().copied()).limit(LIMIT);
        same(alone, &trace.program(&self.path, arguments).finish()?.finished)
    }

    /// Attaches to it at a random moment, and ends ctrace by a signal at another.
    fn disturbed(
        &self,
        env: &Env,
        signal: Signal,
        random: &mut Random,
        alone: &Finished,
    ) -> Result<()> {
        let target = Running::start(&mut self.command())?;
        random.sleep_up_to(MOMENTS / 8);
        let mut command = Command::new(&env.ctrace);
        command.args(["attach", &target.pid().to_string()]);
        command.args(self.globs.iter().flat_map(|glob| ["-f", glob]));
        let ctrace = Running::start(&mut command)?;
        random.sleep_up_to(MOMENTS);
        let guards = look::children(ctrace.pid());
        // It may have ended, with its target.
        let _ = ctrace.signal(signal);
        let ended = ctrace.wait(LIMIT)?;
        look::wait_until("the guard has ended", || guards.iter().all(|it| look::has_ended(*it)))?;
        returns_as_untraced(env, target.pid())?;
        same(alone, &target.wait(LIMIT)?).with_context(|| format!("ctrace said: {}", ended.stderr))
    }

    /// Ends ctrace by a signal while another process holds its links, until the target has ended.
    fn outlives(&self, env: &Env, signal: Signal, holder: &Path, alone: &Finished) -> Result<()> {
        let target = Running::start(&mut self.command())?;
        let mut holder = Command::new(holder);
        let (holder, input, _) = Running::start_piped(holder.arg(target.pid().to_string()))?;
        let mut command = Command::new(&env.ctrace);
        command.args(["attach", &target.pid().to_string()]);
        command.args(self.globs.iter().flat_map(|glob| ["-f", glob]));
        let ctrace = Running::start(&mut command)?;
        look::wait_until("it is armed", || {
            look::has_ended(target.pid())
                || changed_bytes(target.pid(), &self.path).is_ok_and(|it| !it.is_empty())
        })?;
        // The holder looks at them.
        std::thread::sleep(Duration::from_millis(50));
        let _ = ctrace.signal(signal);
        ctrace.wait(LIMIT)?;
        same(alone, &target.wait(LIMIT)?).with_context(|| format!("{signal:?}"))?;
        drop(input);
        holder.wait(LIMIT)?;
        Ok(())
    }
}

/// Checks that nothing of ctrace is left on the stacks of the target and its children, if they still
/// run.
fn returns_as_untraced(env: &Env, pid: i32) -> Result<()> {
    for pid in look::children(pid).into_iter().chain([pid]) {
        match trampolines::calls(env, pid) {
            _ if look::has_ended(pid) => {}
            Ok(calls) if calls.replaced == 0 => {}
            calls => bail!("on the stacks of process {pid} are {:?}", calls?),
        }
    }
    Ok(())
}

fn same(alone: &Finished, traced: &Finished) -> Result<()> {
    ensure!(
        traced.stdout == alone.stdout && traced.shell_code() == alone.shell_code(),
        "exit {} in place of {}: {}, {}",
        traced.shell_code(),
        alone.shell_code(),
        traced.stdout,
        traced.stderr
    );
    Ok(())
}

fn attack(env: &Env, leaver: &Leaver) -> Result<()> {
    let mut random = Random::new();
    let alone = run(&mut leaver.command(), LIMIT)?;
    ensure!(!alone.stdout.is_empty(), "untraced: {alone:?}");
    for round in 0..rounds(1) {
        leaver.traced(env, &alone).with_context(|| format!("traced, round {round}"))?;
        for signal in [Signal::INT, Signal::KILL, Signal::INT, Signal::KILL] {
            leaver
                .disturbed(env, signal, &mut random, &alone)
                .with_context(|| format!("{signal:?}, round {round}"))?;
        }
    }
    Ok(())
}

fn leave_frames() -> Build {
    program("leave_frames.cpp").flags(["-fnon-call-exceptions"])
}

#[test]
fn frames_are_left_as_untraced() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&leave_frames()).unwrap();
    attack(&env, &Leaver::new(path, &["250"], &["*"])).unwrap();
}

/// Copies a library, as a program opens each file only once.
fn copies(env: &Env, library: &Build, dir: &Path, count: usize) -> Vec<String> {
    let library = env.targets.get(library).unwrap();
    let copy = |number: usize| {
        let copy = dir.join(format!("lib{number}.so"));
        std::fs::copy(&library, &copy).unwrap();
        copy.to_str().unwrap().to_owned()
    };
    (0..count).map(copy).collect()
}

/// Coroutines without a library, and those of Boost.Context, in several threads and between them.
#[test]
fn stacks_are_left_as_untraced() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("leave_stacks.c")).unwrap();
    attack(&env, &Leaver::new(path, &["80"], &["*"])).unwrap();
}

/// The target's own backtraces are as complete and true as untraced.
#[test]
fn own_backtraces_are_as_untraced() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("own_backtraces.c")).unwrap();
    attack(&env, &Leaver::new(path, &["150"], &["*"])).unwrap();
}

#[test]
fn panics_are_as_untraced() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("panic.rs").flags(["-O"])).unwrap();
    attack(&env, &Leaver::new(path, &["150", "20"], &["thrower", "passer", "catcher", "plain"]))
        .unwrap();
}

/// Plugins whose unwinders are linked into them, and the program that opens them, in a folder. Every
/// other one has no symbols that tell of its unwinder.
fn plugins_with_unwinders(env: &Env, dir: &Path) -> Leaver {
    let plugins = copies(env, &program("libunwound.c").flag("-static-libgcc"), dir, 16);
    for plugin in plugins.iter().step_by(2) {
        assert!(Command::new("strip").arg(plugin).status().unwrap().success());
    }
    let plugins: Vec<&str> = plugins.iter().map(String::as_str).collect();
    let path = env.targets.get(&program("opened_unwinder.c")).unwrap();
    Leaver::new(path, &plugins, &["begin", "dive", "plain"])
}

#[test]
fn plugins_that_come_with_an_unwinder_are_guarded() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = tempfile::tempdir().unwrap();
    let leaver = plugins_with_unwinders(&env, dir.path());
    leaver.traced(&env, &run(&mut leaver.command(), LIMIT).unwrap()).unwrap();
}

/// A session's return probes take calls in the processes of other sessions of the same file, also where
/// these have no return probes any more.
#[test]
fn plugins_are_guarded_in_two_sessions_at_once() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = tempfile::tempdir().unwrap();
    let leaver = plugins_with_unwinders(&env, dir.path());
    let alone = run(&mut leaver.command(), LIMIT).unwrap();
    std::thread::scope(|scope| {
        let sessions = [(); 2].map(|()| scope.spawn(|| leaver.traced(&env, &alone)));
        sessions.into_iter().for_each(|session| session.join().unwrap().unwrap());
    });
}

#[test]
fn plugins_that_come_while_ctrace_ends_are_guarded() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = tempfile::tempdir().unwrap();
    attack(&env, &plugins_with_unwinders(&env, dir.path())).unwrap();
}

/// Another process looks at the kernel's links, and holds those of ctrace when ctrace ends. The
/// probes stay in the target for so long, but no guards do.
#[test]
fn links_that_another_process_holds_do_no_harm() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = tempfile::tempdir().unwrap();
    let leaver = plugins_with_unwinders(&env, dir.path());
    let alone = run(&mut leaver.command(), LIMIT).unwrap();
    let holder = env.targets.get(&program("holds_links.c")).unwrap();
    for signal in [Signal::INT, Signal::KILL] {
        leaver.outlives(&env, signal, &holder, &alone).unwrap();
    }
}

/// It opens them from its start on, so some come after ctrace has looked at its libraries and before
/// it has armed anything.
#[test]
fn libraries_that_come_while_ctrace_attaches_are_guarded() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = tempfile::tempdir().unwrap();
    let copies = copies(&env, &program("libfiber.c"), dir.path(), 30);
    let copies: Vec<&str> = copies.iter().map(String::as_str).collect();
    let path = env.targets.get(&program("opened_fiber.c")).unwrap();
    attack(&env, &Leaver::new(path, &copies, &["begin", "dive", "resume"])).unwrap();
}

const RUBY: &str = "s = 0; 60.times { |r| f = (1..20).map { |i| Fiber.new { 3.times { |j| \
    Fiber.yield i * j }; i } }; 4.times { f.each { |x| s += x.resume } }; \
    begin; [1].each { |x| raise 'x' }; rescue; s += 1; end; sleep 0.01 }; p s";
const GREENLET: &str = "import greenlet, time\ns = 0\ndef body(i):\n  global s\n  for j in range(3):\n    \
    s += i * j\n    main.switch()\n  raise ValueError(i)\nmain = greenlet.getcurrent()\n\
    for r in range(60):\n  for i in range(20):\n    g = greenlet.greenlet(body)\n    \
    try:\n      g.switch(i)\n      while not g.dead: g.switch()\n    \
    except ValueError as e:\n      s += e.args[0]\n  time.sleep(0.01)\nprint(s)";
const PHP: &str = "$s = 0; for ($r = 0; $r < 60; $r++) { for ($i = 0; $i < 20; $i++) { \
    $f = new Fiber(function () use ($i) { for ($j = 0; $j < 3; $j++) Fiber::suspend($i * $j); \
    throw new Exception(); }); try { $s += $f->start(); while (!$f->isTerminated()) \
    $s += $f->resume(); } catch (Exception $e) { $s += 1; } } usleep(10000); } echo $s, PHP_EOL;";
const NODE: &str = "let s = 0; (async () => { for (let r = 0; r < 60; r++) { \
    for (let i = 0; i < 20; i++) { try { await Promise.resolve(i); JSON.parse('{'); } \
    catch (e) { s += i; } } await new Promise(d => setTimeout(d, 10)); } console.log(s); })();";
const GO: &str = "package main\nimport (\"fmt\"; \"time\")\nfunc fail(i int) int { if i%3 == 0 { \
    panic(i) }; return i }\nfunc try(i int) (s int) { defer func() { if e := recover(); e != nil { \
    s = e.(int) * 2 } }(); return fail(i) }\nfunc work(n int, c chan int) { s := 0; for i := 0; \
    i < n; i++ { s += try(i) }; c <- s }\nfunc main() { s := 0; for r := 0; r < 60; r++ { \
    c := make(chan int); for i := 0; i < 20; i++ { go work(i, c) }; for i := 0; i < 20; i++ { \
    s += <-c }; time.Sleep(10 * time.Millisecond) }; fmt.Println(s) }";

/// Returns the programs of other runtimes that are installed.
fn other_runtimes(dir: &Path) -> Result<Vec<Leaver>> {
    let go = dir.join("goroutines");
    std::fs::write(go.with_extension("go"), GO)?;
    let mut build = Command::new("go");
    build.current_dir(dir).env("GOCACHE", dir).args(["build", "goroutines.go"]);
    // Without Go there is no program, and it is left out below.
    let _ = run(&mut build, LIMIT);
    let all = vec![
        Leaver::new(go, &[], &["main.*", "runtime.*panic*", "runtime.*gopark*"]),
        Leaver::new("/usr/bin/ruby", &["-e", RUBY], &["rb_*@libruby*"]),
        Leaver::new("/usr/bin/python3", &["-c", GREENLET], &["Py*", "_PyEval*"]),
        Leaver::new("/usr/bin/php", &["-r", PHP], &["zend_*"]),
        Leaver::new("/usr/bin/node", &["-e", NODE], &["uv_*", "napi_*"]),
    ];
    Ok(all.into_iter().filter(|leaver| leaver.path.exists()).collect())
}

#[test]
#[ignore = "takes minutes, and depends on what is installed"]
fn other_runtimes_work_as_untraced() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = tempfile::tempdir().unwrap();
    let mut failures = Vec::new();
    for leaver in other_runtimes(dir.path()).unwrap() {
        println!("{}", leaver.path.display());
        if let Err(error) = attack(&env, &leaver) {
            failures.push(format!("{}: {error:#}", leaver.path.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
