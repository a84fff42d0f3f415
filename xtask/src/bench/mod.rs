//! `cargo xtask bench`: measures the cost of tracing, as ratios within one run, beside other tools
//! on the same functions. One file per benchmark; each returns rows of one table. With `--write`
//! the table goes to docs/overhead.md.

mod attach;
mod call;
mod daemon;
mod engine;
mod exports;
mod fleet;
mod footprint;
mod marker;
mod real;
mod recording;
mod redis;
mod target;
mod throughput;
mod ui;
mod watch;

use crate::setup::{self, Need};
use crate::{build, machine, paths, progress};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fmt::Write;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print what would be installed instead of installing it
    #[arg(long)]
    no_install: bool,
    /// Run only the benchmarks whose name contains this (repeatable)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Write the table to docs/overhead.md
    #[arg(long)]
    write: bool,
    /// ui: the sizes of recordings, such as 1G, which takes some 5 GB of disk and half an hour
    #[arg(long, value_name = "CALLS", value_delimiter = ',', default_value = "20M,100M", value_parser = ui::calls)]
    calls: Vec<u64>,
}

/// A line of the table.
#[derive(Debug)]
struct Row {
    what: String,
    measured: String,
    goal: String,
    /// `None` where nothing is promised: a peer, or a number for scale.
    met: Option<bool>,
}

impl Row {
    fn new(what: impl Into<String>, measured: impl Into<String>) -> Row {
        Row { what: what.into(), measured: measured.into(), goal: String::new(), met: None }
    }

    /// Sets the goal.
    fn goal(mut self, goal: &str, met: bool) -> Row {
        self.goal = goal.into();
        self.met = Some(met);
        self
    }
}

type Bench = fn(&Options) -> Result<Vec<Row>>;

const BENCHES: &[(&str, Bench)] = &[
    ("attach", |_| attach::run()),
    ("call", |_| call::run()),
    ("throughput", |_| throughput::run()),
    ("engine", |_| engine::run()),
    ("exports", |_| exports::run()),
    ("fleet", |_| fleet::run()),
    ("ui-server", ui::served),
    ("ui-page", ui::page),
    ("ui-tracy", ui::tracy),
    ("ui-perfetto", ui::perfetto),
    ("ui-speedscope", ui::speedscope),
    ("footprint", |_| footprint::run()),
    ("daemon", |_| daemon::run()),
    ("marker-cost", |_| marker::cost()),
    ("marker-peers", |_| marker::peers()),
    ("marker-rate", |_| marker::rate()),
    ("marker-burst", |_| marker::burst()),
    ("marker-arm", |_| marker::arm()),
    ("recording", |_| recording::run()),
    ("real-redis", |_| real::redis()),
    ("real-postgres", |_| real::postgres()),
    ("real-nginx", |_| real::nginx()),
    ("real-python", |_| real::python()),
    ("real-unwinding", |_| real::unwinding()),
    ("real-exits", |_| real::exits()),
];

/// Benchmarks that start so have packages of their own.
const REAL: &str = "real-";

impl Options {
    fn selects(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(&**part))
    }
}

pub(crate) fn main(options: &Options) -> Result<()> {
    let mut needs = vec![Need::Bpf, Need::Compilers, Need::Peers];
    if BENCHES.iter().any(|(name, _)| name.starts_with(REAL) && options.selects(name)) {
        needs.push(Need::Real);
    }
    setup::ensure(&needs, options.no_install)?;
    build::release()?;
    if let Some(why) = machine::no_live_tests() {
        bail!("benchmarks trace with eBPF and cannot do so here: {why}");
    }
    let load = machine::load();
    let mut text = String::new();
    text.push_str("| what | measured | goal | |\n|---|---|---|---|\n");
    let mut missed = Vec::new();
    for (name, bench) in BENCHES {
        if !options.selects(name) {
            continue;
        }
        eprintln!("{name} …");
        for row in bench(options).with_context(|| format!("benchmark {name}"))? {
            let mark = match row.met {
                None => "",
                Some(true) => "met",
                Some(false) => "**missed**",
            };
            let _ = writeln!(text, "| {} | {} | {} | {mark} |", row.what, row.measured, row.goal);
            if row.met == Some(false) {
                missed.push(row.what);
            }
        }
    }
    let date = machine::output_of("date", &["-u", "+%F"]).unwrap_or_default();
    let text = format!(
        "Measured on {date} on {}; load average {load} before and {} after.\n\n{text}",
        machine::description(),
        machine::load(),
    );
    println!("{text}");
    if options.write {
        write_document(&text)?;
    }
    if !missed.is_empty() {
        bail!("goals missed: {}", missed.join("; "));
    }
    Ok(())
}

const BEGIN: &str = "<!-- table: written by `cargo xtask bench --write` -->";
const END: &str = "<!-- end of table -->";

/// Puts the table between its markers in docs/overhead.md, or creates the document.
fn write_document(table: &str) -> Result<()> {
    let path = paths::root().join("docs/overhead.md");
    let old = std::fs::read_to_string(&path).unwrap_or_else(|_| {
        format!(
            "# What tracing costs\n\nRatios are within one run; absolute figures are the named \
             machine's. `cargo xtask bench` measures again.\n\n{BEGIN}\n{END}\n"
        )
    });
    let new = replaced(&old, table).context("docs/overhead.md has lost the table's markers")?;
    std::fs::create_dir_all(paths::root().join("docs"))?;
    std::fs::write(&path, new)?;
    Ok(())
}

fn replaced(old: &str, table: &str) -> Option<String> {
    let (before, rest) = old.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", table.trim()))
}

/// Runs a command that must succeed, and returns its whole output.
fn output(stage: &str, command: &mut std::process::Command) -> Result<String> {
    Ok(progress::must(stage, command)?.output)
}

/// Returns the line of a name, without it.
fn line<'a>(printed: &'a str, name: &str) -> Result<&'a str> {
    let found = printed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.with_context(|| format!("no line of {name} in: {printed}"))
}

/// Returns the number before `unit` in the line of a name.
fn number(printed: &str, name: &str, unit: &str) -> Result<f64> {
    let line = line(printed, name)?;
    let number = line.split(unit).next().and_then(|before| before.rsplit(' ').next());
    number.and_then(|number| number.parse().ok()).with_context(|| format!("no number in {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_of_the_document_changes() {
        let old = format!("# Title\n\n{BEGIN}\nold\n{END}\nwords\n");
        let new = replaced(&old, "| a |\n").expect("markers");
        assert_eq!(new, format!("# Title\n\n{BEGIN}\n\n| a |\n\n{END}\nwords\n"));
        assert_eq!(replaced("no markers", "x"), None);
    }
}
