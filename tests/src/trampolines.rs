//! Looks for the kernel's trampoline on the stacks of a process: a return probe puts its address in
//! the place of a return address. Once ctrace is gone, no live call may return by it.

use crate::env::Env;
use crate::maps::{self, Mapping};
use crate::process::Running;
use crate::targets::program;
use crate::unwind::{Registers, Unwinder};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

/// Returns the address of the trampoline, if the process has one.
fn trampoline(maps: &[Mapping]) -> Option<u64> {
    maps.iter().find(|mapping| mapping.path == "[uprobes]").map(|area| area.start)
}

/// Returns the number of words in writable memory that hold the address of the trampoline. Words of
/// calls that are over count as well.
pub fn words(pid: i32) -> Result<usize> {
    let maps = maps::of(pid)?;
    let Some(trampoline) = trampoline(&maps) else { return Ok(0) };
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let mut found = 0;
    for mapping in maps.iter().filter(|mapping| mapping.rights == "rw-p") {
        let mut bytes = vec![0; (mapping.end - mapping.start) as usize];
        if memory.read_exact_at(&mut bytes, mapping.start).is_ok() {
            let (words, _) = bytes.as_chunks::<8>();
            found += words.iter().filter(|word| u64::from_le_bytes(**word) == trampoline).count();
        }
    }
    Ok(found)
}

/// The live calls of a process, as far as its return addresses lead: behind one that is replaced,
/// nothing tells the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// The calls whose return address was found.
    pub seen: usize,
    /// The calls among them that return by the trampoline.
    pub replaced: usize,
}

/// Looks at the calls of all threads, while these are held for a moment.
pub fn calls(env: &Env, pid: i32) -> Result<Calls> {
    let registers = env.targets.get(&program("registers.c"))?;
    let mut command = Command::new(registers);
    let (holder, input, output) = Running::start_piped(command.arg(pid.to_string()))?;
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    let lines: Vec<String> = lines.take_while(|line| line != "end").collect();
    let calls = look(pid, &lines);
    // It lets them go on when its input ends.
    drop(input);
    holder.wait(LIMIT)?;
    calls
}

fn look(pid: i32, registers: &[String]) -> Result<Calls> {
    let trampoline = trampoline(&maps::of(pid)?);
    let unwinder = Unwinder::new(pid)?;
    let mut calls = Calls::default();
    for registers in registers.iter().filter_map(|line| parse(line)) {
        for slot in unwinder.return_slots(&registers) {
            let word = unwinder.word(slot).context("a return address")?;
            calls.seen += 1;
            calls.replaced += usize::from(Some(word) == trampoline);
        }
    }
    Ok(calls)
}

/// Parses the registers of a thread, behind its id.
fn parse(line: &str) -> Option<Registers> {
    let words = line.split_whitespace().skip(1);
    let words: Vec<u64> =
        words.map(|word| u64::from_str_radix(word, 16)).collect::<Result<_, _>>().ok()?;
    words.try_into().ok()
}
