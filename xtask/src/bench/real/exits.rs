//! The share of functions whose exit is cheap to see, in real programs with the libraries that they
//! are linked to.

use super::process::bounded;
use crate::bench::{Row, redis};
use crate::{paths, peers};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;

/// Programs of Debian packages, for those of them that are here.
const PROGRAMS: &[&str] = &[
    "postgres",
    "nginx",
    "python3",
    "wrk",
    "bash",
    "perl",
    "sqlite3",
    "git",
    "curl",
    "ssh",
    "gdb",
    "tmux",
    "node",
    "java",
    "ruby",
    "php",
    "lua5.4",
    "bpftrace",
    "perf",
    "vim.basic",
    "openssl",
    "tar",
    "make",
    "rsync",
    "apt-get",
    "xmllint",
    "ffmpeg",
    "memcached",
    "haproxy",
    "uftrace",
    "qemu-system-x86_64",
];

/// As many of them are asked.
const MOST: usize = 20;

const GOAL: f64 = 95.0;

pub(in crate::bench) fn run() -> Result<Vec<Row>> {
    let redis = redis::server()?.map(|path| ("redis-server", path));
    let found = PROGRAMS.iter().filter_map(|name| Some((*name, peers::find(name)?)));
    let mut rows = Vec::new();
    let (mut good, mut all) = (0, 0);
    for (name, path) in redis.into_iter().chain(found).take(MOST) {
        let what = format!("cheap exits, {name} with its libraries");
        match shares(&path) {
            Ok(shares) => {
                all += 1;
                good += u32::from(shares.cheap() >= GOAL);
                rows.push(Row::new(what, shares.shown()));
            }
            Err(error) => rows.push(Row::new(what, format!("cannot be told: {error:#}"))),
        }
    }
    let row = Row::new("programs with 95 % of cheap exits or more", format!("{good} of {all}"));
    rows.push(row.goal("all", good == all));
    Ok(rows)
}

/// Functions by how their end is seen.
#[derive(Debug, Default, PartialEq)]
struct Shares {
    /// By a return probe, or by sites that the kernel emulates. Also functions that never return.
    cheap: u64,
    stepped: u64,
    unseen: u64,
    /// Not traceable at all.
    refused: u64,
}

impl Shares {
    fn add(&mut self, how: &str) {
        let exit = how.split_once(", exit ").map(|(_, exit)| exit);
        *match exit {
            _ if how.starts_with("not traced") => &mut self.refused,
            Some(exit) if exit.starts_with("not seen") => &mut self.unseen,
            Some(exit) if exit.ends_with("single-stepped") => &mut self.stepped,
            _ => &mut self.cheap,
        } += 1;
    }

    fn traced(&self) -> u64 {
        self.cheap + self.stepped + self.unseen
    }

    fn cheap(&self) -> f64 {
        percent(self.cheap, self.traced())
    }

    fn shown(&self) -> String {
        let share = |part| percent(part, self.traced());
        format!(
            "{:.1} % of {} functions that can be traced ({:.1} % single-stepped, {:.1} % not seen)",
            self.cheap(),
            self.traced(),
            share(self.stepped),
            share(self.unseen),
        )
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64 * 100.0
}

/// Asks `ctrace list`. In JSON each function has the sentence of `-v`.
fn shares(program: &Path) -> Result<Shares> {
    let mut command = bounded(&paths::ctrace());
    command.args(["list", "--json", "--max-functions", "10000000", "-f", "*@*"]).arg(program);
    let output = command.output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", output.status, errors.trim());
    let list: Value = serde_json::from_slice(&output.stdout)?;
    let mut shares = Shares::default();
    for function in list["functions"].as_array().context("functions")? {
        shares.add(function["how"].as_str().context("how")?);
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exits_count() {
        let mut shares = Shares::default();
        for how in [
            "entry +4 emulated, exit at 2 rets, 1 conditional jump single-stepped",
            "entry +0 single-stepped (also a loop's head), exit by return probe",
            "entry +0 single-stepped, exit at 1 jump emulated",
            "entry +0 emulated, never returns",
            "entry +0 emulated, exit not seen: it runs on into the next function",
            "entry +0 emulated, exit not seen: no probe fits one of its ways out: single-stepped",
            "not traced: a part of another function, entered by a jump",
        ] {
            shares.add(how);
        }
        assert_eq!(shares, Shares { cheap: 3, stepped: 1, unseen: 2, refused: 1 });
        assert_eq!(shares.cheap(), 50.0);
    }
}
