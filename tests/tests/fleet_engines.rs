//! Compares the queries in `docs/fleet` with `ctrace fleet`, in every engine that is there.

use anyhow::{Context, Result, ensure};
use ctrace_tests::daemon::Daemon;
use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::run;
use ctrace_tests::targets::program;
use ctrace_tests::tools::engines::Engine;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);
/// Names that an engine could take for a number, or for a path.
const HOSTS: [&str; 2] = ["07", "web/2"];
const BUILDS: [&str; 2] = ["old", "new"];
/// How far two numbers that are the same may be apart: reports round.
const ROUNDED: f64 = 1e-3;

/// Starts a daemon with targets in its folder: two builds of a program.
fn daemon(env: &Env, tables: &Path, host: &str) -> Result<Daemon> {
    let dir = TempDir::new()?;
    let mut config = format!("[fleet]\nfolder = \"{}\"\nhost = \"{host}\"\n", tables.display());
    config += "slow_from = \"1ns\"\n";
    for (build, flag) in BUILDS.into_iter().zip(["-O2", "-O1"]) {
        std::fs::create_dir(dir.path().join(build))?;
        let built = env.targets.get(&program("spin.c").flag(flag))?;
        std::fs::copy(built, dir.path().join(build).join("spin"))?;
        config += &format!(
            "[[target]]\nid = \"{build}\"\nexe = \"DIR/{build}/spin\"\n\
             functions = [\"step\", \"mix\"]\ninterval = \"300ms\"\n"
        );
    }
    Daemon::start(env, dir, &config)
}

/// Returns the tables of two hosts, on which first the old build ran and then the new one.
fn tables(env: &Env) -> Result<TempDir> {
    let tables = TempDir::new()?;
    let daemons = HOSTS.iter().map(|host| daemon(env, tables.path(), host));
    let daemons = daemons.collect::<Result<Vec<_>>>()?;
    for build in BUILDS {
        let mut running = Vec::new();
        for daemon in &daemons {
            let spin = daemon.target(&format!("{build}/spin"), &["0", "500"])?;
            daemon.wait_until_traced(spin.pid())?;
            running.push(spin);
        }
        std::thread::sleep(Duration::from_secs(1));
        for spin in running {
            spin.signal(Signal::TERM)?;
            spin.wait(LIMIT)?;
        }
    }
    for daemon in daemons {
        let (finished, _) = daemon.end()?;
        ensure!(finished.shell_code() == 0, "{}", finished.stderr);
    }
    for table in ["functions", "paths", "slow_calls", "targets"] {
        let mut folder = tables.path().join(table);
        while folder.read_dir()?.flatten().any(|entry| entry.path().is_dir()) {
            let first = folder.read_dir()?.next().context("an empty folder")??;
            folder = first.path();
        }
        // As a daemon leaves it that is killed while it writes.
        std::fs::write(folder.join("part-0-00.parquet.0123456789abcdef.part"), "PAR1 half")?;
    }
    Ok(tables)
}

/// What `ctrace fleet` says.
struct Ours {
    all: Value,
    by_host: Value,
    folded: Vec<String>,
    /// The builds' ids, as far as users type them: the new one first.
    builds: [String; 2],
    compared: Value,
    slow: Value,
}

fn ours(env: &Env, tables: &Path) -> Result<Ours> {
    let text = |arguments: &[&str]| {
        let (query, options) = arguments.split_first().context("a query")?;
        let mut command = Command::new(&env.ctrace);
        let finished = run(command.args(["fleet", query]).arg(tables).args(options), LIMIT)?;
        ensure!(finished.shell_code() == 0, "{}", finished.stderr);
        Ok(finished.stdout)
    };
    let json = |arguments: &[&str]| -> Result<Value> {
        Ok(serde_json::from_str(&text(&[arguments, &["--format", "json"]].concat())?)?)
    };
    let id = |unit| {
        let of_unit = json(&["report", "--unit", unit])?;
        let version = of_unit["parts"][0]["versions"][0].as_str().context("a build id")?;
        Ok(version[..8].to_owned())
    };
    let [old, new]: [Result<String>; 2] = BUILDS.map(id);
    let builds = [new?, old?];
    let mut folded: Vec<String> =
        text(&["flamegraph", "--folded"])?.lines().map(str::to_owned).collect();
    folded.sort();
    Ok(Ours {
        all: json(&["report"])?["parts"][0].clone(),
        by_host: json(&["report", "--by", "host"])?["parts"].clone(),
        folded,
        compared: json(&["diff", "--version", &builds[0], &builds[1]])?["functions"].clone(),
        slow: json(&["slow", "--top", "50"])?["calls"].clone(),
        builds,
    })
}

fn rows<'a>(found: &'a Value, query: &str, count: usize) -> Result<&'a [Value]> {
    let rows = found[query].as_array().with_context(|| format!("no {query}"))?;
    ensure!(rows.len() == count, "{query} has {} rows, not {count}: {rows:?}", rows.len());
    Ok(rows)
}

/// Returns the row of a function.
fn function<'a>(functions: &'a Value, row: &Value) -> Result<&'a Value> {
    let mut functions = functions.as_array().context("functions")?.iter();
    functions.find(|it| it["name"] == row["function"]).with_context(|| format!("{row}: unknown"))
}

fn is_near(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= ROUNDED + 1e-9 * a.abs(),
        _ => a == b,
    }
}

impl Ours {
    /// Checks that an engine found the same.
    fn check(&self, found: &Value) -> Result<()> {
        for row in rows(found, "slowest functions", 2)? {
            let same = function(&self.all["report"]["functions"], row)?;
            for key in ["object", "calls", "total_ns", "self_ns", "p50_ns", "p99_ns"] {
                ensure!(row[key] == same[key], "{key} of {row} is {}", same[key]);
            }
            ensure!(row["hosts"] == 2, "{row}");
        }
        let of_host = |row: &Value| -> Result<Value> {
            let mut parts = self.by_host.as_array().context("parts")?.iter();
            let part = parts.find(|part| part["name"] == row["host"]).context("the host")?;
            Ok(function(&part["report"]["functions"], row)?.clone())
        };
        for row in rows(found, "p99 by host", 4)? {
            let same = of_host(row)?;
            for key in ["timed", "p99_ns"] {
                ensure!(row[key] == same[key], "{key} of {row} is {}", same[key]);
            }
        }
        for row in rows(found, "two builds", 2)? {
            let same = function(&self.compared, row)?;
            let mean = &same["changes"]["mean_ns"];
            for (key, same) in [
                ("old_calls", &same["old_calls"]),
                ("new_calls", &same["new_calls"]),
                ("old_mean_ns", &mean["old"]),
                ("new_mean_ns", &mean["new"]),
                ("change_percent", &mean["change_percent"]),
            ] {
                ensure!(is_near(&row[key], same), "{key} of {row} is {same}");
            }
            ensure!(row["errors"].is_number(), "{row}");
        }
        // Without two builds that are asked for, they are the first and the last: the other way round.
        for row in rows(found, "build against build", 2)? {
            let same = function(&self.compared, row)?;
            let calls = [&row["new_calls"], &row["old_calls"]];
            ensure!(calls == [&same["old_calls"], &same["new_calls"]], "{row} is {same}");
        }
        for row in rows(found, "a host that differs", 4)? {
            let same = of_host(row)?;
            let mean = row["mean_ns"].as_f64().zip(same["mean_ns"].as_f64());
            ensure!(mean.is_some_and(|(mean, whole)| (mean - whole).abs() < 0.501), "{row}");
            // Each of two is as far from their middle as the other.
            let deviations = row["deviations"].as_f64().map(f64::abs);
            ensure!(deviations.is_some_and(|it| (it * 1.4826 - 1.0).abs() < ROUNDED), "{row}");
        }
        let lines = rows(found, "flame graph", self.folded.len())?;
        let mut lines: Vec<&str> = lines.iter().filter_map(|row| row["line"].as_str()).collect();
        lines.sort_unstable();
        ensure!(lines == self.folded, "{lines:?} is {:?}", self.folded);
        let slow = self.slow.as_array().context("slow calls")?;
        for (row, same) in rows(found, "slowest calls", slow.len())?.iter().zip(slow) {
            for key in
                ["function", "host", "unit", "tid", "call_start_ns", "duration_ns", "self_ns"]
            {
                ensure!(row[key] == same[key], "{key} of {row} is {}", same[key]);
            }
            let names = same["path"].as_array().context("a path")?.iter().filter_map(Value::as_str);
            ensure!(row["path"] == names.collect::<Vec<_>>().join(" > "), "{row} is {same}");
            let most = same["inside"].get(0).unwrap_or(&Value::Null);
            ensure!(
                row["most_in"] == most["name"] && row["most_in_ns"] == most["total_ns"],
                "{row}"
            );
        }
        let cost = found["cost of tracing"].as_array().context("cost")?;
        let calls: Option<u64> = cost.iter().map(|row| row["calls"].as_u64()).sum();
        ensure!(calls == self.all["calls"].as_u64() && cost[0]["hosts"] == 2, "{cost:?}");
        let lost: Option<u64> = cost.iter().map(|row| row["lost_events"].as_u64()).sum();
        ensure!(lost == self.all["report"]["loss"]["events"].as_u64(), "{cost:?}");
        Ok(())
    }
}

/// Checks that two engines found the same rows, in whatever order.
fn check_same(found: &Value, other: &Value) -> Result<()> {
    let sorted = |rows: &Value| {
        let mut rows = rows.as_array().cloned().unwrap_or_default();
        let names = ["function", "object", "host", "unit", "line", "call_start_ns", "tid"];
        rows.sort_by_key(|row| names.map(|name| row[name].to_string()));
        rows
    };
    let queries = found.as_object().context("queries")?;
    ensure!(Some(queries.len()) == other.as_object().map(|it| it.len()), "other queries");
    for (query, of_query) in queries {
        let (rows, others) = (sorted(of_query), sorted(&other[query]));
        ensure!(rows.len() == others.len(), "{query} has {} rows", others.len());
        for (row, other) in rows.iter().zip(&others) {
            let columns = row.as_object().context("a row")?;
            let same = columns.iter().all(|(key, value)| is_near(value, &other[key]));
            ensure!(same, "{query}: {row} and {other}");
        }
    }
    Ok(())
}

fn check(env: &Env, engines: impl IntoIterator<Item = Engine>) -> Result<()> {
    let tables = tables(env)?;
    let ours = ours(env, tables.path())?;
    let [new, old] = &ours.builds;
    let mut first: Option<(Engine, Value)> = None;
    for engine in engines {
        let found = engine.queries(tables.path(), [new, old]);
        let found = found.with_context(|| engine.name)?;
        ours.check(&found).with_context(|| engine.name)?;
        match &first {
            Some((other, same)) => check_same(&found, same)
                .with_context(|| format!("{} and {}", engine.name, other.name))?,
            None => first = Some((engine, found)),
        }
    }
    Ok(())
}

fn build() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

#[test]
fn engines_say_what_ctrace_says() {
    let env = or_skip!(gate::live(Link::Session));
    let here = [Engine::duckdb(build()), Engine::clickhouse(build()), Engine::trino(build())];
    let name = gate::test_name();
    let there = |engine: Result<Engine, String>| {
        engine.inspect_err(|why| gate::skipped(&format!("fleet_engines::{name}"), why)).ok()
    };
    let engines: Vec<Engine> = here.into_iter().filter_map(there).collect();
    if let Err(error) = check(&env, engines) {
        panic!("{error:#}");
    }
}

#[test]
#[ignore = "Spark takes long to start"]
fn spark_says_what_ctrace_says() {
    let env = or_skip!(gate::live(Link::Session));
    let engines = [or_skip!(Engine::duckdb(build())), or_skip!(Engine::spark(build()))];
    if let Err(error) = check(&env, engines) {
        panic!("{error:#}");
    }
}
