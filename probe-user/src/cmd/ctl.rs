//! `ctrace ctl`: sends one question to the daemon, and prints its answer as text or JSON.

use super::{Failure, print, process};
use crate::{
    cli::{CtlArgs, CtlCommand, WhomArgs},
    daemon::control::{Ask, Choice, Reply, Whom, client},
    ui::text::units,
};
use ctrace_core::report::render::clean::clean;
use serde_json::{Map, Value};

pub(super) fn main(args: &CtlArgs) -> Result<u8, Failure> {
    let ask = ask(&args.command, args.json)?;
    let show = show_for(&args.command);
    let (reply, line) = client::ask(&args.socket, ask)?;
    let text = if args.json { line } else { show(&reply) };
    print(&text)?;
    Ok(0)
}

fn ask(command: &CtlCommand, json: bool) -> Result<Ask, Failure> {
    Ok(match command {
        CtlCommand::Status => Ask::Status,
        CtlCommand::Targets => Ask::Targets,
        CtlCommand::Attach(args) => Ask::Attach {
            pid: process::id(&args.process)?,
            target: args.target.clone(),
            choice: Choice {
                functions: args.functions.clone(),
                usdt: args.usdt.clone(),
                markers: args.markers.clone(),
                exclude: args.exclude.clone(),
            },
        },
        CtlCommand::Detach(args) => Ask::Detach { whom: whom(args) },
        CtlCommand::Report(args) => {
            Ask::Report { whom: whom(args), table: !json, full: false, since_ns: None }
        }
        CtlCommand::Reload => Ask::Reload,
        CtlCommand::Record(args) => {
            Ask::Record { whom: whom(&args.whom), seconds: args.duration.as_secs_f64() }
        }
    })
}

/// Parses a target; a number is a process.
fn whom(args: &WhomArgs) -> Whom {
    let pid = args.whom.as_deref().and_then(|text| text.parse().ok());
    Whom { target: args.whom.clone().filter(|_| pid.is_none()), pid }
}

type Show = fn(&Reply) -> String;

fn show_for(command: &CtlCommand) -> Show {
    match command {
        CtlCommand::Status | CtlCommand::Reload => |reply| pairs(&reply.what),
        CtlCommand::Targets => |reply| targets(&reply.what),
        CtlCommand::Attach(_) => |reply| {
            let target = text(&reply.what, "target");
            format!("process {} is traced, as {target}\n", text(&reply.what, "pid"))
        },
        CtlCommand::Detach(_) => |reply| {
            let pids = reply.what.get("pids").and_then(Value::as_array).map_or(0, Vec::len);
            format!("let go of {}\n", units::counted(pids as u64, "process", "processes"))
        },
        CtlCommand::Report(_) => |reply| {
            // The daemon formatted it for a terminal.
            reply.what.get("text").and_then(Value::as_str).unwrap_or_default().to_owned()
        },
        CtlCommand::Record(_) => |reply| {
            let file = text(&reply.what, "file");
            format!("{file}: `ctrace report {file}` shows it\n")
        },
    }
}

/// Returns a value for people, escaped.
fn text(of: &Map<String, Value>, key: &str) -> String {
    match of.get(key) {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => clean(text).into_owned(),
        Some(Value::Number(number)) => match number.as_u64() {
            Some(whole) => whole.to_string(),
            None => format!("{:.2}", number.as_f64().unwrap_or_default()),
        },
        Some(other) => clean(&other.to_string()).into_owned(),
    }
}

fn pairs(of: &Map<String, Value>) -> String {
    columns(of.keys().map(|key| vec![key.replace('_', " "), text(of, key)]).collect())
}

fn targets(of: &Map<String, Value>) -> String {
    let head = ["TARGET", "STATE", "PID", "PROGRAM", "SINCE", "CALLS", "LOST", "COST %"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut notes = String::new();
    let list = |of: &Map<String, Value>, key: &str| -> Vec<Map<String, Value>> {
        let items = of.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        items.into_iter().filter_map(|item| item.as_object().cloned()).collect()
    };
    let object = |of: &Map<String, Value>, key: &str| {
        of.get(key).and_then(Value::as_object).cloned().unwrap_or_default()
    };
    for target in list(of, "targets") {
        let totals = object(&target, "since_start");
        let processes = list(&target, "processes");
        // "wanted" beside a process that is traced would be read as "not traced".
        let state = match (text(&target, "state").as_str(), processes.len()) {
            ("wanted", 0) => "no process".to_owned(),
            ("wanted", some) => units::counted(some as u64, "process", "processes"),
            (state, _) => state.to_owned(),
        };
        let dash = || "-".to_owned();
        rows.push(vec![
            text(&target, "target"),
            state,
            dash(),
            dash(),
            dash(),
            text(&totals, "calls"),
            text(&totals, "lost"),
            dash(),
        ]);
        for process in processes {
            let (sums, last) = (object(&process, "since_start"), object(&process, "last"));
            rows.push(vec![
                String::new(),
                text(&process, "state"),
                text(&process, "pid"),
                text(&process, "exe"),
                format!("{}s", text(&process, "since_s")),
                text(&sums, "calls"),
                text(&sums, "lost"),
                text(&last, "cost_percent"),
            ]);
        }
        for process in list(&target, "untraced") {
            let (target, pid) = (text(&target, "target"), text(&process, "pid"));
            let again = match process.get("again_in_s").and_then(Value::as_u64) {
                Some(seconds) => format!(", tried again in {seconds}s"),
                None => String::new(),
            };
            let why = text(&process, "why");
            notes += &format!("{target}: process {pid} is not traced{again}: {why}\n");
        }
    }
    if !notes.is_empty() {
        notes.insert(0, '\n');
    }
    columns(rows) + &notes
}

/// Formats left-aligned columns, two spaces apart.
fn columns(rows: Vec<Vec<String>>) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        out += cells.collect::<Vec<_>>().join("  ").trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_targets_is_harmless_and_aligned() {
        let what = serde_json::json!({"targets": [{
            "target": "web", "state": "wanted",
            "processes": [{"pid": 7, "exe": "/tmp/\u{1b}[2Jx", "since_s": 3, "state": "traced",
                "since_start": {"calls": 1234, "lost": 0},
                "last": {"calls": 10, "lost": 0, "cost_percent": 0.125}}],
            "untraced": [{"pid": 8, "why": "no function\u{1b}[2J fits", "again_in_s": 4}],
            "since_start": {"calls": 5678, "lost": 0},
        }]});
        let shown = targets(what.as_object().unwrap());
        let lines: Vec<&str> = shown.lines().collect();
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[1].find("5678"), lines[0].find("CALLS"));
        assert!(lines[1].starts_with("web     1 process "), "{shown}");
        assert_eq!(lines[2].find("1234"), lines[0].find("CALLS"));
        assert!(lines[2].contains("traced") && lines[2].ends_with("0.12"), "{shown}");
        assert!(
            lines[4].starts_with("web: process 8 is not traced, tried again in 4s: no function")
        );
    }
}
