//! Checks that functions whose threads sleep do not lead a table, and that one whose thread works does, though
//! both have most self time. Only the kernel knows which is which, as it ends a thread.

use crate::env::Env;
use crate::process::run;
use crate::recorded::Recorded;
use crate::report::Report;
use crate::targets::program;
use crate::trace::{LIMIT, Trace};
use anyhow::{Result, ensure};
use std::process::Command;

const SLEEPERS: [&str; 3] = ["once", "ticker", "waiter"];
const WORKERS: [&str; 2] = ["burner", "work"];

fn functions() -> impl Iterator<Item = &'static str> {
    SLEEPERS.into_iter().chain(WORKERS)
}

pub(super) fn sleepers_do_not_lead(env: &Env) -> Result<()> {
    let path = env.targets.get(&program("sleepers.c"))?;
    let live = Trace::run(env)?.functions(functions()).program(&path, []).finish()?;
    let live = live.expect_code(0)?;
    live.report()?.check_schema()?;
    check_numbers(live.report()?)?;
    let mut recorded = Recorded::new(env, functions())?;
    let finished = recorded.program(&path, &[])?;
    ensure!(finished.shell_code() == 0, "{}", finished.stderr);
    check_numbers(&recorded.report(&[])?)?;
    let mut command = Command::new(&env.ctrace);
    command.arg("report").arg(&recorded.file);
    check_table(&run(&mut command, LIMIT)?.stdout)
}

fn check_numbers(report: &Report) -> Result<()> {
    for name in functions() {
        let row = report.expect(name)?;
        let (own, idle) = (row.integer("self_ns")?, row.integer("idle_ns").unwrap_or(0));
        let sleeps = SLEEPERS.contains(&name);
        ensure!((idle > own / 2) == sleeps, "{name}: {idle} of {own} ns are idle");
    }
    Ok(())
}

fn check_table(table: &str) -> Result<()> {
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|row| row.first().is_some_and(|name| functions().any(|it| it == *name)))
        .collect();
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    let (first, last) = names.split_at(WORKERS.len().min(names.len()));
    ensure!(first == WORKERS, "{table}");
    ensure!(last.len() == SLEEPERS.len() && last.iter().all(|it| SLEEPERS.contains(it)), "{table}");
    for row in &rows {
        let (waits, bar) = (row[1].contains('w'), row.concat().contains('█'));
        let sleeps = SLEEPERS.contains(&row[0]);
        ensure!(waits == sleeps && bar != sleeps, "{row:?} in\n{table}");
    }
    ensure!(table.contains("w: waits: most of its self time is no work"), "{table}");
    Ok(())
}
