//! Compares the daemon's metrics, as the real Prometheus scrapes them, with its reports.

use anyhow::{Context, Result, ensure};
use ctrace_tests::daemon::folder;
use ctrace_tests::env::{Env, Link};
use ctrace_tests::http;
use ctrace_tests::look::wait_until;
use ctrace_tests::process::Running;
use ctrace_tests::prometheus::{Programs, Prometheus, free_address};
use ctrace_tests::report::Report;
use ctrace_tests::serve::Server;
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const FUNCTIONS: [&str; 3] = ["read_from_disk", "write_log", "parse_request"];
const LIMIT: Duration = Duration::from_secs(120);

/// A daemon with one target. Each interval is as long as the target's process lives.
struct Daemon {
    running: Running,
    address: SocketAddr,
    reports: PathBuf,
    folder: TempDir,
}

impl Daemon {
    /// `keys`: what of the target to trace, and further lines.
    fn start(env: &Env, target: &Path, keys: &str) -> Result<Daemon> {
        let (folder, address) = (tempfile::tempdir()?, free_address()?);
        let config = folder.path().join("ctrace.toml");
        let reports = folder.path().join("reports.jsonl");
        let text = format!(
            "[daemon]\nsocket = '{}'\n[metrics]\nlisten = '{address}'\n[[target]]\nid = 'demo'\n\
             exe = '{}'\ninterval = '3600s'\noutput = '{}'\n{keys}",
            folder.path().join("socket").display(),
            target.display(),
            reports.display(),
        );
        fs::write(&config, text)?;
        let mut command = Command::new(&env.ctrace);
        let running = Running::start(command.arg("daemon").arg("--config").arg(config))?;
        let daemon = Daemon { running, address, reports, folder };
        wait_until("the daemon answers", || daemon.get("/healthz").is_ok())?;
        Ok(daemon)
    }

    /// Returns the body of an answer.
    fn get(&self, path: &str) -> Result<String> {
        http::get(self.address, path)
    }

    /// Returns the reports of ended processes.
    fn reports(&self) -> Result<Vec<Report>> {
        let text = fs::read_to_string(&self.reports).unwrap_or_default();
        text.lines().map(Report::parse).collect()
    }

    fn end(self) -> Result<()> {
        self.running.signal(Signal::TERM)?;
        let finished = self.running.wait(LIMIT)?;
        ensure!(finished.shell_code() == 0, "the daemon ended badly: {}", finished.stderr);
        Ok(())
    }
}

fn of(metric: &str, function: &str) -> String {
    format!("{metric}{{target=\"demo\",function=\"{function}\"}}")
}

/// Returns the line that selects the functions, and further ones.
fn with_functions(keys: &str) -> String {
    format!("functions = {FUNCTIONS:?}\n{keys}")
}

/// Returns whether Prometheus last saw this number of traced processes.
fn has_processes(prometheus: &Prometheus, count: f64) -> bool {
    prometheus.number("ctrace_target_processes").is_ok_and(|now| now == count)
}

/// Runs the target until Prometheus has seen calls, then kills it. Returns once that is seen.
fn run_target(target: &Path, daemon: &Daemon, all: &[&Prometheus], processes: usize) -> Result<()> {
    let running = Running::start(Command::new(target).arg("600"))?;
    for prometheus in all {
        wait_until("prometheus sees the process", || has_processes(prometheus, 1.0))?;
        let before = daemon.reports()?.iter().map(|report| calls(report, "write_log")).sum::<u64>();
        wait_until("calls are seen before their interval is over", || {
            let calls = prometheus.number(&of("ctrace_function_calls_total", "write_log"));
            calls.is_ok_and(|calls| calls >= before as f64 + 20.0)
        })?;
    }
    running.signal(Signal::KILL)?;
    wait_until("the last report is there", || {
        daemon.reports().is_ok_and(|reports| reports.len() == processes)
    })?;
    for prometheus in all {
        wait_until("prometheus sees the end", || has_processes(prometheus, 0.0))?;
    }
    Ok(())
}

/// Returns the calls that have ended.
fn calls(report: &Report, function: &str) -> u64 {
    report.function(function).map_or(0, |function| {
        let of = |key| function.integer(key).unwrap_or(0);
        of("timed") + of("untimed")
    })
}

fn near(what: &str, value: f64, expected: f64, factor: f64) -> Result<()> {
    let fits = value <= expected * factor && value >= expected / factor;
    ensure!(fits, "{what} is {value}, the report has {expected}");
    Ok(())
}

fn check_quantiles(classic: &Prometheus, native: &Prometheus, report: &Report) -> Result<()> {
    for function in FUNCTIONS {
        let row = report.expect(function)?;
        for (quantile, key) in [(0.5, "p50_ns"), (0.9, "p90_ns")] {
            let expected = row.integer(key)? as f64 / 1e9;
            let what = format!("quantile {quantile} of {function}");
            let buckets = of("ctrace_function_duration_seconds_bucket", function);
            let query = format!("histogram_quantile({quantile}, {buckets})");
            // Exact to the bucket: the edges are 1, 2 and 5 of a decade.
            near(&what, classic.number(&query)?, expected, 2.51)?;
            let exponential = of("ctrace_function_duration_seconds", function);
            let query = format!("histogram_quantile({quantile}, {exponential})");
            // Exact to one bucket, and to the calls beside the rank where it is between two.
            near(&what, native.number(&query)?, expected, 1.1)?;
        }
    }
    Ok(())
}

/// Every query of a dashboard that is chosen must find something. `one`: the host that is compared with the
/// others of a fleet. Returns the number of queries.
fn check_dashboard(
    prometheus: &Prometheus,
    name: &str,
    one: &str,
    chosen: impl Fn(&str) -> bool,
) -> Result<usize> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let panels = dashboard["panels"].as_array().context("panels")?;
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let mut asked = 0;
    for target in targets {
        let mut query = target["expr"].as_str().context("an expression")?.to_owned();
        if !chosen(&query) {
            continue;
        }
        for (variable, value) in [
            ("$__rate_interval", "10m"),
            ("$target", "demo"),
            ("$function", ".*"),
            ("$job", "ctrace"),
            ("$host", ".*"),
            ("$one", one),
            ("$top", "5"),
        ] {
            query = query.replace(variable, value);
        }
        ensure!(!prometheus.query(&query)?.is_empty(), "{name}: {query}: nothing");
        asked += 1;
    }
    Ok(asked)
}

/// Returns whether a query of a dashboard finds something: there is no budget, and there are no plots.
fn is_of_functions(query: &str) -> bool {
    !["budget", "disarmed", "plot"].iter().any(|word| query.contains(word))
}

fn scraped(env: &Env, programs: &Programs) -> Result<()> {
    let copy = folder(env, &[("demo", &program("demo.c"))])?;
    let target = fs::canonicalize(copy.path().join("demo"))?;
    let daemon = Daemon::start(env, &target, &with_functions(""))?;
    let classic = Prometheus::start(programs, daemon.address, false)?;
    let native = Prometheus::start(programs, daemon.address, true)?;
    // One daemon under two names looks like two hosts.
    let hosts = [daemon.address.to_string(), format!("localhost:{}", daemon.address.port())];
    let fleet = Prometheus::start_for(programs, &hosts, false)?;
    run_target(&target, &daemon, &[&classic, &native], 1)?;
    let reports = daemon.reports()?;
    check_quantiles(&classic, &native, &reports[0])?;

    // Counters continue when the target is started again.
    run_target(&target, &daemon, &[&classic, &native], 2)?;
    let reports = daemon.reports()?;
    for prometheus in [&classic, &native] {
        for function in FUNCTIONS {
            let sum = reports.iter().map(|report| calls(report, function)).sum::<u64>() as f64;
            let query = of("ctrace_function_calls_total", function);
            wait_until("the calls are those of the reports", || {
                prometheus.number(&query).is_ok_and(|calls| calls == sum)
            })
            .with_context(|| format!("{function}: {:?}, not {sum}", prometheus.number(&query)))?;
            ensure!(prometheus.number(&format!("resets({query}[10m])"))? == 0.0);
        }
        ensure!(prometheus.number("min_over_time(up[10m])")? == 1.0, "a scrape failed");
        ensure!(prometheus.number("ctrace_target_starts_total")? == 2.0);
    }
    let timed = reports.iter().map(|r| r.expect("parse_request")?.integer("timed"));
    let timed: u64 = timed.collect::<Result<Vec<_>>>()?.iter().sum();
    let count = of("ctrace_function_duration_seconds_count", "parse_request");
    ensure!(classic.number(&count)? == timed as f64);
    let count = of("ctrace_function_duration_seconds", "parse_request");
    ensure!(native.number(&format!("histogram_count({count})"))? == timed as f64);

    let asked = check_dashboard(&classic, "grafana-dashboard.json", "", is_of_functions)?;
    ensure!(asked > 20, "{asked} queries");
    let name = "grafana-fleet-dashboard.json";
    let asked = check_dashboard(&fleet, name, &hosts[0], |query| !query.contains("disarmed"))?;
    ensure!(asked > 20, "{asked} queries of a fleet");
    let text = daemon.folder.path().join("metrics.txt");
    fs::write(&text, daemon.get("/metrics")?)?;
    let said = programs.check(&text)?;
    ensure!(said.is_empty(), "{said}");
    [classic, native, fleet].into_iter().try_for_each(Prometheus::end)?;
    daemon.end()
}

/// Returns the value of a series in the text format, by what its labels contain.
fn value_calls(text: &str) -> Vec<(String, u64)> {
    let rows = text.lines().filter(|line| line.starts_with("ctrace_value_calls_total{"));
    let label = |line: &str, name: &str| {
        let rest = line.split(&format!("{name}=\"")).nth(1);
        rest.and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned()
    };
    let row = |line: &str| {
        let (which, value) = (label(line, "which"), label(line, "value"));
        let calls = line.rsplit(' ').next().and_then(|number| number.parse::<f64>().ok());
        (if which == "value" { value } else { which }, calls.unwrap_or(-1.0) as u64)
    };
    rows.map(row).collect()
}

fn split(env: &Env) -> Result<()> {
    let copy = folder(env, &[("demo", &program("demo.c"))])?;
    let target = fs::canonicalize(copy.path().join("demo"))?;
    let keys = "args = ['compress: level=1:i32']\nby = 'compress: level'\nby_values = 3\n";
    let daemon = Daemon::start(env, &target, &with_functions(keys))?;
    let running = Running::start(Command::new(&target).arg("600"))?;
    let seen = || daemon.get("/metrics").map(|text| value_calls(&text)).unwrap_or_default();
    let sum = |rows: &[(String, u64)]| rows.iter().map(|(_, calls)| calls).sum::<u64>();
    wait_until("calls are counted by their values", || sum(&seen()) > 100)?;
    let before = seen();
    wait_until("more are", || sum(&seen()) > sum(&before) + 100)?;
    running.signal(Signal::KILL)?;
    wait_until("the last report is there", || daemon.reports().is_ok_and(|all| all.len() == 1))?;
    let (rows, report) = (seen(), &daemon.reports()?[0]);
    ensure!(sum(&rows) == calls(report, "compress"), "{rows:?}\n{}", report.losses());
    for (value, calls) in &before {
        let now = rows.iter().find(|(other, _)| other == value);
        ensure!(now.is_some_and(|(_, now)| now >= calls), "{value} went down: {before:?} {rows:?}");
    }
    // There are five levels.
    let levels: Vec<u32> = rows.iter().filter_map(|(value, _)| value.parse().ok()).collect();
    ensure!(levels.len() >= 3 && levels.iter().all(|level| *level < 5), "{rows:?}");
    ensure!(rows.iter().any(|(which, calls)| which == "others" && *calls > 0), "{rows:?}");
    daemon.end()
}

#[test]
fn calls_are_counted_by_a_value_of_theirs() {
    let env = or_skip!(gate::live(Link::Session));
    if let Err(error) = split(&env) {
        panic!("{error:#}");
    }
}

/// Returns the value of the series of a metric whose labels begin so.
fn series(text: &str, metric: &str, labels: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(&format!("{metric}{{{labels}")))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn plotted(env: &Env) -> Result<()> {
    let copy = folder(env, &[("plots", &program("marks_plots.c"))])?;
    let target = fs::canonicalize(copy.path().join("plots"))?;
    let daemon = Daemon::start(env, &target, "markers = ['*']\nplots = true\n")?;
    let mut server = Server::start_as(&mut Command::new(&target))?;
    let of_target = "target=\"demo\"";
    wait_until("the process is traced", || {
        let text = daemon.get("/metrics").unwrap_or_default();
        series(&text, "ctrace_target_processes", of_target) == Some(1.0)
    })?;
    for line in ["queue 7", "queue -3", "queue 12", "queue 5", "load 0.25", "load nan", "load inf"]
    {
        server.ask(line)?;
    }
    let [queue, load] = [
        "target=\"demo\",plot=\"queue\",group=\"\",unit=\"jobs\"}",
        "target=\"demo\",plot=\"load\",group=\"health\",unit=\"\"}",
    ];
    let mut text = String::new();
    wait_until("all numbers are counted", || {
        text = daemon.get("/metrics").unwrap_or_default();
        series(&text, "ctrace_plot_numbers_total", queue) == Some(4.0)
            && series(&text, "ctrace_plot_not_finite_total", load) == Some(2.0)
    })?;
    let check = |text: &str, labels: &str, expected: &[(&str, Option<f64>)]| {
        for (metric, value) in expected {
            let seen = series(text, &format!("ctrace_plot_{metric}"), labels);
            ensure!(seen == *value, "{metric} of {labels} is {seen:?}, not {value:?}");
        }
        Ok(())
    };
    let sums = [("sum_total", Some(24.0)), ("negative_sum_total", Some(3.0))];
    let of_queue = [("last", Some(5.0)), ("min", Some(-3.0)), ("max", Some(12.0))];
    check(&text, queue, &sums)?;
    check(&text, queue, &of_queue)?;
    check(&text, queue, &[("not_finite_total", Some(0.0)), ("lost_total", Some(0.0))])?;
    let of_load = [("last", Some(0.25)), ("numbers_total", Some(1.0)), ("sum_total", Some(0.25))];
    check(&text, load, &of_load)?;
    if let Ok(programs) = Programs::find() {
        let prometheus = Prometheus::start(&programs, daemon.address, false)?;
        let has = |numbers: f64| {
            let query = "ctrace_plot_numbers_total{plot=\"queue\"}";
            wait_until("prometheus has the numbers", || {
                prometheus.number(query).is_ok_and(|now| now == numbers)
            })
        };
        has(4.0)?;
        server.ask("queue 0")?;
        has(5.0)?;
        let is_of_plots = |query: &str| query.contains("plot");
        let asked = check_dashboard(&prometheus, "grafana-dashboard.json", "", is_of_plots)?;
        ensure!(asked > 5, "{asked} queries of plots");
        prometheus.end()?;
    }
    server.end()?;
    // What the process had goes with it, what it wrote stays.
    wait_until("the process is gone", || {
        text = daemon.get("/metrics").unwrap_or_default();
        series(&text, "ctrace_target_ends_total", of_target) == Some(1.0)
    })?;
    check(&text, queue, &sums)?;
    check(&text, queue, &[("last", None), ("min", None), ("max", None)])?;
    daemon.end()
}

#[test]
fn plots_have_the_numbers_that_the_program_wrote() {
    let env = or_skip!(gate::live(Link::Session));
    if let Err(error) = plotted(&env) {
        panic!("{error:#}");
    }
}

#[test]
fn prometheus_agrees_with_the_reports() {
    let env = or_skip!(gate::live(Link::Session));
    let programs = or_skip!(Programs::find());
    if let Err(error) = scraped(&env, &programs) {
        panic!("{error:#}");
    }
}
