//! objdump's view of an object, as the oracle for instruction boundaries and returns.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Instructions by address, as objdump prints them.
pub(crate) struct Listing {
    pub(crate) instructions: BTreeMap<u64, String>,
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
        let instructions = text
            .lines()
            .filter_map(|line| {
                let (address, instruction) = line.split_once(":\t")?;
                let address = u64::from_str_radix(address.trim(), 16).ok()?;
                Some((address, instruction.trim().to_owned()))
            })
            .collect();
        Self { instructions }
    }

    pub(crate) fn has(&self, address: u64) -> bool {
        self.instructions.contains_key(&address)
    }

    /// The addresses of the `ret`s from `start` to `end`.
    pub(crate) fn returns(&self, start: u64, end: u64) -> impl Iterator<Item = u64> + '_ {
        self.instructions.range(start..end).filter_map(|(address, text)| {
            let mnemonic = text.split_whitespace().find(|word| !matches!(*word, "repz" | "bnd"));
            (mnemonic == Some("ret")).then_some(*address)
        })
    }
}
