//! Measures the cost of one traced call for its caller, against peers on the same function in the
//! same run. Contenders take turns, and the best of their rounds counts.

use super::{Row, output, target};
use crate::{machine, paths};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

const ROUNDS: usize = 5;

/// One way to trace `FUNCTION` of a program.
struct Contender {
    name: &'static str,
    calls: &'static str,
    command: fn(&Path, kind: &str, calls: &str) -> Command,
}

const CTRACE: Contender = Contender { name: "ctrace", calls: "300000", command: ctrace };
const BPFTRACE: Contender = Contender { name: "bpftrace", calls: "50000", command: bpftrace };
/// The floor: a session program that returns at once. It is an example of the `ctrace` package,
/// which has the only door to the kernel. It is measured where the example exists.
const EMPTY: Contender =
    Contender { name: "empty session program", calls: "300000", command: empty_session };

pub(super) fn run() -> Result<Vec<Row>> {
    let program = target::compile("cost.c")?;
    let mut rows = Vec::new();
    for (kind, function) in
        [("nop", "nop"), ("push", "endbr64; push"), ("nop5", "a 5-byte nop; push")]
    {
        let mut contenders = vec![&CTRACE];
        if machine::which("bpftrace").is_some() {
            contenders.push(&BPFTRACE);
        }
        if has_empty_session()? {
            contenders.push(&EMPTY);
        }
        let costs = race(&program, kind, &contenders)?;
        let ours = costs[0];
        rows.push(Row::new(format!("traced call, entry {function}: ctrace"), nanos(ours)));
        for (contender, cost) in contenders.iter().zip(&costs).skip(1) {
            let row = Row::new(
                format!("traced call, entry {function}: {}", contender.name),
                format!("{}, {:.2} times ctrace's", nanos(*cost), cost / ours),
            );
            rows.push(match (contender.name, kind) {
                ("bpftrace", "push") => row.goal("at least 8 times ctrace's", *cost >= 8.0 * ours),
                // bpftrace sits on the nop itself, which ctrace leaves alone for the target's sake.
                ("bpftrace", "nop5") => row,
                ("bpftrace", _) => row.goal("never less than ctrace's", *cost >= ours),
                _ => row.goal("ctrace at most 1.1 times this", ours <= 1.1 * cost),
            });
        }
    }
    Ok(rows)
}

fn race(program: &Path, kind: &str, contenders: &[&Contender]) -> Result<Vec<f64>> {
    let mut best = vec![f64::INFINITY; contenders.len()];
    for _ in 0..ROUNDS {
        for (contender, best) in contenders.iter().zip(&mut best) {
            let mut command = (contender.command)(program, kind, contender.calls);
            let printed = output(contender.name, &mut command)?;
            *best = best.min(value(&printed, "ns_per_call")?);
        }
    }
    Ok(best)
}

fn ctrace(program: &Path, kind: &str, calls: &str) -> Command {
    let mut command = Command::new(paths::ctrace());
    command.args(["run", "-f", &format!("{kind}_entry"), "--"]).arg(program).args([kind, calls]);
    command
}

fn bpftrace(program: &Path, kind: &str, calls: &str) -> Command {
    let path = program.display();
    let script = format!(
        "uprobe:{path}:{kind}_entry {{ @in = count(); }} uretprobe:{path}:{kind}_entry \
         {{ @out = count(); }}"
    );
    let mut command = Command::new("bpftrace");
    command.args(["-e", &script, "-c", &format!("{path} {kind} {calls}")]);
    command
}

fn empty_session(program: &Path, kind: &str, calls: &str) -> Command {
    let mut command = Command::new(paths::target().join("release/examples/empty_session"));
    command.arg(format!("{kind}_entry")).arg("--").arg(program).args([kind, calls]);
    command
}

fn has_empty_session() -> Result<bool> {
    if !paths::root().join("probe-user/examples/empty_session.rs").exists() {
        return Ok(false);
    }
    let mut command = paths::cargo();
    command.args(["build", "--release", "--package", "ctrace", "--example", "empty_session"]);
    output("build the empty session", &mut command)?;
    Ok(true)
}

/// Returns the number behind a word that starts a line.
pub(super) fn value(printed: &str, word: &str) -> Result<f64> {
    printed
        .lines()
        .find_map(|line| line.trim().strip_prefix(word)?.trim().parse().ok())
        .with_context(|| format!("no {word} in: {printed}"))
}

fn nanos(cost: f64) -> String {
    format!("{cost:.0} ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_between_a_tracers_words() {
        let printed = "Attaching 2 probes...\ncalls push_entry 5\nns_per_call 744.5\n\n@in: 5\n";
        assert_eq!(value(printed, "ns_per_call").expect("there"), 744.5);
        assert!(value("nothing", "ns_per_call").is_err());
    }
}
