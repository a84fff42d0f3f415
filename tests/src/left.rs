//! Makes breakpoints of a dying tracer in a process, by the test program `leave.c`, and counts them
//! from outside.

use crate::env::Env;
use crate::process::Running;
use crate::targets::{Build, program};
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command};
use std::time::Duration;

/// The functions of `field.c`, and the bytes of each.
pub const FUNCTIONS: u64 = 20_000;
const EACH: u64 = 16;

/// A process that runs `field.c`.
#[derive(Debug)]
pub struct Field {
    running: Running,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    first: u64,
}

/// Returns how to build it.
pub fn field() -> Build {
    program("field.c").flags(["-O1"])
}

impl Field {
    pub fn start(program: &Path) -> Result<Field> {
        let (running, input, output) = Running::start_piped(&mut Command::new(program))?;
        let mut field = Field { running, input, output: BufReader::new(output), first: 0 };
        let line = field.line()?;
        let first = line.strip_prefix("ready ").with_context(|| format!("not ready: {line}"))?;
        field.first = u64::from_str_radix(first, 16)?;
        Ok(field)
    }

    pub fn pid(&self) -> i32 {
        self.running.pid()
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn ask(&mut self, question: &str) -> Result<String> {
        writeln!(self.input, "{question}")?;
        self.line()
    }

    /// Returns picoseconds of CPU time per call of its functions, the least of some rounds.
    pub fn speed(&mut self) -> Result<u64> {
        let rounds: Result<Vec<u64>> =
            (0..3).map(|_| Ok(self.ask("round")?.parse::<u64>()?.max(1))).collect();
        rounds?.into_iter().min().context("no round")
    }

    /// Makes it put a breakpoint of its own there.
    pub fn break_itself(&mut self, place: u64) -> Result<()> {
        let answer = self.ask(&format!("own {place}"))?;
        ensure!(answer == "own", "{answer}");
        Ok(())
    }

    /// Returns the file offset of a function.
    pub fn place(&self, function: u64) -> u64 {
        self.first + function * EACH
    }

    /// Returns the file offsets where its memory differs.
    pub fn left(&self) -> Result<Vec<u64>> {
        changed_code(self.pid())
    }

    /// Writes breakpoints into its memory at an offset behind the starts of functions, as the
    /// process itself could. Those behind the last instruction are never executed.
    pub fn forge(&self, functions: std::ops::Range<u64>, behind: u64) -> Result<()> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid()))?;
        let code = maps.lines().find(|line| line.contains(" r-xp ") && line.contains("field"));
        let words: Vec<&str> = code.context("its code")?.split_whitespace().collect();
        let start = u64::from_str_radix(words[0].split('-').next().unwrap_or_default(), 16)?;
        let offset = u64::from_str_radix(words[2], 16)?;
        let memory = File::options().write(true).open(format!("/proc/{}/mem", self.pid()))?;
        for function in functions {
            memory.write_all_at(&[0xcc], self.place(function) + behind - offset + start)?;
        }
        Ok(())
    }

    /// Leaves unused breakpoints: a tracer of all its functions dies while it removes its probes.
    /// Returns `None` when the kernel left none in many tries.
    pub fn leave(&self, env: &Env, how: &str, of: Whose) -> Result<Option<usize>> {
        let leaver = Leaver::new(env, self)?;
        again_and_again(&[10_000, 5_000, 20_000, 2_000, 40_000, 1_000], |microseconds| {
            leaver.once(of, how, microseconds)?;
            let left = self.left()?.len();
            Ok((left > 100).then_some(left))
        })
    }
}

/// Kills a tracer until that leaves breakpoints. Each time, it dies so many microseconds after it
/// began to detach. The right moment depends on the machine and its load.
pub fn again_and_again<T>(
    microseconds: &[u64],
    mut once: impl FnMut(u64) -> Result<Option<T>>,
) -> Result<Option<T>> {
    const ROUNDS: usize = 5;
    for delay in std::iter::repeat_n(microseconds, ROUNDS).flatten() {
        if let Some(left) = once(*delay)? {
            return Ok(Some(left));
        }
    }
    Ok(None)
}

/// The processes that the dying tracer's link is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    This,
    All,
}

/// The tracer that dies.
#[derive(Debug)]
pub struct Leaver {
    program: PathBuf,
    places: tempfile::NamedTempFile,
    pid: i32,
}

impl Leaver {
    /// Makes one for all functions of the process.
    pub fn new(env: &Env, field: &Field) -> Result<Leaver> {
        Leaver::on(env, field.pid(), (0..FUNCTIONS).map(|function| (field.place(function), None)))
    }

    /// Makes one for some places of a process's program, with semaphores if it has some.
    pub fn on(
        env: &Env,
        pid: i32,
        places: impl IntoIterator<Item = (u64, Option<u64>)>,
    ) -> Result<Leaver> {
        let program = env.targets.get(&program("leave.c").flags(["-O1"]))?;
        let mut file = tempfile::NamedTempFile::new()?;
        for (place, semaphore) in places {
            match semaphore {
                Some(semaphore) => writeln!(file, "{place:x} {semaphore:x}")?,
                None => writeln!(file, "{place:x}")?,
            }
        }
        Ok(Leaver { program, places: file, pid })
    }

    fn command(&self, of: Whose, how: &str, microseconds: u64) -> Command {
        let pid = if of == Whose::All { 0 } else { self.pid };
        let mut command = Command::new(&self.program);
        command.arg(pid.to_string()).arg(format!("/proc/{}/exe", self.pid));
        command.arg(self.places.path()).arg(how).arg(microseconds.to_string());
        command
    }

    /// Lets it die once.
    pub fn once(&self, of: Whose, how: &str, microseconds: u64) -> Result<()> {
        let finished =
            crate::process::run(&mut self.command(of, how, microseconds), Duration::from_secs(60))?;
        ensure!(finished.stdout == "armed\n", "leave: {}", finished.stderr);
        Ok(())
    }

    /// Starts a tracer that detaches in order when its input is dropped.
    pub fn hold(&self, of: Whose) -> Result<(Running, ChildStdin)> {
        self.start(of, "hold", 0)
    }

    /// Starts a tracer, with the manner of its end.
    pub fn start(&self, of: Whose, how: &str, microseconds: u64) -> Result<(Running, ChildStdin)> {
        let mut command = self.command(of, how, microseconds);
        let (running, input, output) = Running::start_piped(&mut command)?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        ensure!(line == "armed\n", "leave did not arm");
        Ok((running, input))
    }
}

/// Returns file offsets of a process's program, deleted or not, where its code differs in memory.
pub fn changed_code(pid: i32) -> Result<Vec<u64>> {
    let exe = std::fs::read_link(format!("/proc/{pid}/exe"))?;
    let exe = exe.to_string_lossy();
    let disk = std::fs::read(format!("/proc/{pid}/exe"))?;
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let mut changed = Vec::new();
    for line in std::fs::read_to_string(format!("/proc/{pid}/maps"))?.lines() {
        let mut words = line.splitn(6, ' ');
        let (Some(addresses), Some(rights), Some(offset)) =
            (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let is_code = rights.contains('x') && line.ends_with(&*exe);
        let Some((start, end)) = addresses.split_once('-').filter(|_| is_code) else { continue };
        let hex = |text| u64::from_str_radix(text, 16);
        let (start, end, offset) = (hex(start)?, hex(end)?, hex(offset)?);
        let mut bytes = vec![0; usize::try_from(end - start)?];
        memory.read_exact_at(&mut bytes, start)?;
        let on_disk = disk.iter().skip(usize::try_from(offset)?).chain(std::iter::repeat(&0));
        let differing = on_disk.zip(&bytes).enumerate().filter(|(_, (a, b))| a != b);
        changed.extend(differing.map(|(at, _)| offset + at as u64));
    }
    Ok(changed)
}
