//! Runs the table of checks without cargo, in a virtual machine.
//!
//! `cases build DIR` compiles the targets; `cases run --ctrace PATH --targets DIR --link KIND
//! [--slower N] [--on links|kernel] [--part K/N] [--after NAME] [NAME...]` prints a line per check
//! (`ok NAME`, `failed NAME: why`, `skipped NAME: why`) and a last line
//! `cases: N passed, N failed, N skipped`.

use anyhow::{Context, Result, bail};
use ctrace_tests::cases::{self, Case, MANY, On, builds};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::gate;
use ctrace_tests::targets::Targets;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("build") => build(Path::new(arguments.get(1).context("cases build DIR")?)),
        Some("run") => run(&arguments[1..]),
        Some("list") => {
            cases::all().for_each(|case| println!("{}", case.name));
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!(
            "usage: cases build DIR | list | run --ctrace PATH --targets DIR --link KIND [NAME...]"
        ),
    }
}

fn build(dir: &Path) -> Result<ExitCode> {
    let targets = Targets::in_dir(dir);
    let mut wanted = vec![targets.many_functions(MANY)?];
    for build in builds() {
        wanted.push(targets.get(&build)?);
    }
    // Programs of an older table need not go into the machine.
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if !wanted.contains(&path) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn run(arguments: &[String]) -> Result<ExitCode> {
    let mut env = Env {
        ctrace: PathBuf::from("ctrace"),
        targets: Targets::prebuilt(Path::new("targets")),
        link: Link::Multi,
        slower: 1,
    };
    let (mut names, mut after, mut least) = (Vec::new(), None, On::Nothing);
    let mut part = (1, 1);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().with_context(|| format!("{argument} wants a value"));
        match argument.as_str() {
            "--ctrace" => env.ctrace = PathBuf::from(value()?),
            "--targets" => env.targets = Targets::prebuilt(Path::new(value()?)),
            "--link" => {
                env.link = Link::parse(value()?).context("--link session, multi or perf")?;
            }
            "--slower" => env.slower = value()?.parse().context("--slower wants a number")?,
            "--on" => least = On::parse(value()?).context("--on nothing, kernel or links")?,
            "--part" => part = parse_part(value()?).context("--part 1/2, or 2/2")?,
            "--after" => after = Some(value()?.clone()),
            name => names.push(name.to_owned()),
        }
    }
    if let Some(unknown) = names.iter().chain(&after).find(|name| cases::find(name).is_none()) {
        bail!("no case {unknown}; `cases list` shows them");
    }
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let is_wanted = |case: &&Case| {
        (names.is_empty() || names.iter().any(|name| name == case.name)) && case.depends >= least
    };
    // Neighbours take similarly long.
    let mut chosen: Vec<&Case> =
        cases::all().filter(is_wanted).skip(part.0 - 1).step_by(part.1).collect();
    if let Some(last) = after.and_then(|after| chosen.iter().position(|case| case.name == after)) {
        chosen.drain(..=last);
    }
    for case in chosen {
        let start = Instant::now();
        if let Some(why) =
            (case.unsuited)(env.link).map(str::to_owned).or(gate::root_and_bpf().err())
        {
            skipped += 1;
            println!("skipped {}: {why}", case.name);
            continue;
        }
        match (case.check)(&env) {
            Ok(()) => {
                passed += 1;
                println!("ok {} ({:.1} s)", case.name, start.elapsed().as_secs_f64());
            }
            Err(error) => {
                failed += 1;
                println!("failed {}: {}", case.name, one_line(&format!("{error:#}")));
            }
        }
    }
    println!("cases: {passed} passed, {failed} failed, {skipped} skipped");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Parses the number of a part, and of all.
fn parse_part(text: &str) -> Option<(usize, usize)> {
    let (part, all) = text.split_once('/')?;
    let (part, all) = (part.parse().ok()?, all.parse().ok()?);
    (1..=all).contains(&part).then_some((part, all))
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" | ")
}
