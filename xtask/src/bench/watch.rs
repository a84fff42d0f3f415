//! Counts the armed probes in a process from outside, and measures a process's resources.

use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The executable mapping of a program in a process, and its bytes without probes.
pub(super) struct Text {
    memory: File,
    start: u64,
    pristine: Vec<u8>,
}

impl Text {
    pub(super) fn of(pid: u32, program: &Path) -> Result<Text> {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let program = std::fs::canonicalize(program)?;
        let line = maps
            .lines()
            .find(|line| {
                line.split_whitespace().nth(1).is_some_and(|mode| mode.contains('x'))
                    && line.ends_with(&*program.to_string_lossy())
            })
            .context("the program's code is not mapped")?;
        let range = line.split_whitespace().next().unwrap_or_default();
        let (start, end) = range.split_once('-').context("a range of addresses")?;
        let (start, end) = (u64::from_str_radix(start, 16)?, u64::from_str_radix(end, 16)?);
        let memory = File::open(format!("/proc/{pid}/mem"))?;
        let mut pristine = vec![0; usize::try_from(end - start)?];
        memory.read_exact_at(&mut pristine, start)?;
        Ok(Text { memory, start, pristine })
    }

    /// Counts bytes that differ from the untraced code. A breakpoint is one byte.
    pub(super) fn changed(&self) -> Result<usize> {
        let mut now = vec![0; self.pristine.len()];
        self.memory.read_exact_at(&mut now, self.start)?;
        // The comparison as a whole is fast. This matters, since it runs beside the watched
        // process.
        if now == self.pristine {
            return Ok(0);
        }
        Ok(now.iter().zip(&self.pristine).filter(|(now, then)| now != then).count())
    }

    /// Measures the time until `wanted` accepts the number of changed bytes. `tracer` must not end
    /// before.
    pub(super) fn until(
        &self,
        start: Instant,
        mut tracer: Option<&mut Child>,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Duration> {
        loop {
            if wanted(self.changed()?) {
                return Ok(start.elapsed());
            }
            if start.elapsed() > Duration::from_secs(300) {
                bail!("probes did not change within five minutes");
            }
            if let Some(tracer) = &mut tracer
                && let Some(status) = tracer.try_wait()?
            {
                bail!("the tracer ended before its probes were there: {status}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Asks a process to end, as Ctrl-C does.
pub(super) fn interrupt(pid: u32) -> Result<()> {
    signal(pid, "-INT")
}

/// Sends a signal, such as `-INT`.
pub(super) fn signal(pid: u32, name: &str) -> Result<()> {
    let status = Command::new("kill").args([name, &pid.to_string()]).status()?;
    if !status.success() {
        bail!("kill {name} {pid}: {status}");
    }
    Ok(())
}

/// Returns the CPU time of a process so far.
pub(super) fn cpu_time(pid: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, after_name) = stat.rsplit_once(')').context("a name in parentheses")?;
    let mut fields = after_name.split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    // Ticks are 10 ms for user space on every Linux of this kind of machine.
    Ok(Duration::from_millis((ticks() + ticks()) * 10))
}

/// Returns the CPU time of a process's current threads, in nanoseconds: ticks are too coarse.
pub(super) fn threads_time(pid: u32) -> Result<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let first = text.split_whitespace().next().context("a time in schedstat")?;
        sum += first.parse::<u64>()?;
    }
    Ok(sum)
}

/// Returns resident memory in KiB: all of it, and that of BPF maps such as rings.
pub(super) fn resident(pid: u32) -> Result<(u64, u64)> {
    let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps"))?;
    let (mut all, mut maps, mut in_map) = (0, 0, false);
    for line in smaps.lines() {
        if let Some(rss) = line.strip_prefix("Rss:") {
            let kib: u64 = rss.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0);
            all += kib;
            maps += if in_map { kib } else { 0 };
        } else if line.split_whitespace().next().is_some_and(|word| word.contains('-')) {
            in_map = line.contains("bpf");
        }
    }
    Ok((all, maps))
}

/// The resources that a command used.
pub(super) struct Used {
    pub(super) elapsed: Duration,
    pub(super) processor: Duration,
    /// Peak of resident memory, sampled every few milliseconds.
    pub(super) peak_kib: u64,
}

impl Used {
    /// Runs a command that must succeed. Also returns its output.
    pub(super) fn by(command: &mut Command) -> Result<(String, Used)> {
        let begun = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut stdout = child.stdout.take().context("a pipe")?;
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        });
        let mut peak_kib = 0;
        while !reading.is_finished() {
            peak_kib = peak_kib.max(peak(child.id()).unwrap_or(0));
            std::thread::sleep(Duration::from_millis(5));
        }
        let text = reading.join().map_err(|_| anyhow!("the reader panicked"))??;
        let elapsed = begun.elapsed();
        // The kernel keeps the numbers until the process is waited for.
        let until_gone = Instant::now();
        while !is_gone(child.id()) && until_gone.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let processor = cpu_time(child.id())?;
        let status = child.wait()?;
        if !status.success() {
            bail!("{command:?}: {status}");
        }
        Ok((text, Used { elapsed, processor, peak_kib }))
    }
}

/// Returns whether it has ended and waits to be collected.
fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|state| state.starts_with('Z'))
}

pub(super) fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").trim().parse().ok()
}
