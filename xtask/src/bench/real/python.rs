//! Debian's python3 parses and writes JSON and searches text, a fixed amount.

use super::compare::rows;
use super::process::{Gated, tied};
use super::turns::{Load, Rate, Started, Work};
use crate::bench::{Row, call::value};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Functions of the interpreter that both modules call, hot and less hot. None calls itself:
/// bpftrace's script has one start for each thread and function.
const FUNCTIONS: &[&str] = &[
    "PyDict_New",
    "PyDict_SetItem",
    "PyFloat_FromString",
    "PyList_New",
    "PyLong_FromString",
    "PyObject_GetIter",
    "PyTuple_New",
    "PyUnicode_Concat",
    "PyUnicode_InternInPlace",
    "PyUnicode_Substring",
];

const PROGRAM: &str = r#"
import json, re, sys, time
document = {"rows": [{"id": i, "name": f"name {i}", "ratio": i / 7, "tags": ["a", "b", str(i)]}
                     for i in range(200)]}
text = " ".join(f"word{i} user{i}@example.org {i}.{i}" for i in range(400))
address, number = re.compile(r"(\w+)@(\w+)\.org"), re.compile(r"\d+\.\d+")
print("ready", flush=True)
sys.stdin.readline()
begun = time.perf_counter()
total = 0
for _ in range(ROUNDS):
    copy = json.loads(json.dumps(document, indent=1))
    total += len(json.dumps(copy)) + sum(row["id"] for row in copy["rows"])
    total += sum(len(user) for user, _ in address.findall(text))
    total += len(number.sub("n", text))
print("seconds", time.perf_counter() - begun)
print("total", total)
print("done", flush=True)
sys.stdin.read()
"#;

const ROUNDS: u32 = 150;

pub(in crate::bench) fn run() -> Result<Vec<Row>> {
    let (name, program) = ("python3, json and re, 10 functions", Path::new("/usr/bin/python3"));
    if !program.exists() {
        return Ok(vec![Row::new(name, "python3 is not installed")]);
    }
    let program: PathBuf = std::fs::canonicalize(program)?;
    let interpreter = program.clone();
    let start = Box::new(move || start(&interpreter));
    rows(&Load { name, rate: Rate::Seconds, program, functions: FUNCTIONS, start })
}

fn start(interpreter: &Path) -> Result<Started> {
    let mut command = tied(interpreter);
    // No site packages, and hashes that are the same in each turn.
    command.args(["-S", "-c", &PROGRAM.replace("ROUNDS", &ROUNDS.to_string())]);
    let mut program = Gated::start(command.env("PYTHONHASHSEED", "0"))?;
    let pid = program.id();
    let work = move || {
        let printed = program.work()?;
        Ok(Work { units: 1.0, seconds: value(&printed, "seconds")?, printed })
    };
    Ok(Started { pid, work: Box::new(work) })
}
