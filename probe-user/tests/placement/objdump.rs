//! objdump's view of an object, as the oracle for instruction boundaries and returns.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Instructions by address, as objdump prints them.
pub(crate) struct Listing {
    pub(crate) instructions: BTreeMap<u64, String>,
    /// The targets of direct branches, each with the address of one.
    branches: BTreeMap<u64, u64>,
}

impl Listing {
    pub(crate) fn of(path: &Path) -> Self {
        let output = Command::new("objdump")
            .args(["-d", "--no-show-raw-insn", "-w"])
            .arg(path)
            .output()
            .expect("objdump runs");
        assert!(output.status.success(), "objdump fails on {}", path.display());
        let text = String::from_utf8_lossy(&output.stdout);
        let instructions: BTreeMap<u64, String> = text
            .lines()
            .filter_map(|line| {
                let (address, instruction) = line.split_once(":\t")?;
                let address = u64::from_str_radix(address.trim(), 16).ok()?;
                Some((address, instruction.trim().to_owned()))
            })
            .collect();
        let branches = instructions.iter().filter_map(|(from, text)| {
            let text = text.trim_start_matches("bnd ").trim_start_matches("notrack ");
            let (mnemonic, operands) = text.split_once(' ')?;
            let is_branch = ["j", "call", "loop"].iter().any(|kind| mnemonic.starts_with(kind));
            let target = operands.split_whitespace().next().filter(|_| is_branch)?;
            Some((u64::from_str_radix(target, 16).ok()?, *from))
        });
        Self { branches: branches.collect(), instructions }
    }

    pub(crate) fn has(&self, address: u64) -> bool {
        self.instructions.contains_key(&address)
    }

    /// Returns whether the instructions from `start` to `end` are `endbr64` and nops.
    pub(crate) fn is_padding(&self, start: u64, end: u64) -> bool {
        let mut between = self.instructions.range(start..end).map(|(_, text)| text);
        between.all(|text| {
            let mut words = text.split_whitespace();
            words.any(|word| word.starts_with("nop") || matches!(word, "endbr64" | "%ax,%ax"))
        })
    }

    /// Target and address of the direct branches to `first` to `last`.
    pub(crate) fn branches(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.branches.range(first..=last).map(|(target, from)| (*target, *from))
    }

    /// The addresses of the `ret`s from `start` to `end`.
    pub(crate) fn returns(&self, start: u64, end: u64) -> impl Iterator<Item = u64> + '_ {
        self.instructions.range(start..end).filter_map(|(address, text)| {
            let mnemonic = text.split_whitespace().find(|word| !matches!(*word, "repz" | "bnd"));
            (mnemonic == Some("ret")).then_some(*address)
        })
    }
}
