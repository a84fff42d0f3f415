//! One client of a private PostgreSQL cluster runs pgbench's select-only transactions. Its backend
//! is traced.
//!
//! A backend lives as long as its client. So the client's script first tells the backend's id, and
//! then waits until the tracer is there.

use super::compare::rows;
use super::process::{NOBODY, Server, bounded, tied, unprivileged, wait_for};
use super::turns::{Load, Rate, Started, Work};
use crate::bench::{Row, output, target::Running};
use crate::peers;
use anyhow::{Result, bail};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Instant;
use tempfile::TempDir;

const TRANSACTIONS: u32 = 40_000;

/// The path of a query.
const FUNCTIONS: &[&str] = &[
    "pg_parse_query",
    "pg_analyze_and_rewrite_fixedparams",
    "planner",
    "CreatePortal",
    "PortalStart",
    "standard_ExecutorStart",
    "PortalRun",
    "standard_ExecutorRun",
    "index_getnext_slot",
    "PortalDrop",
];

pub(in crate::bench) fn run() -> Result<Vec<Row>> {
    let name = "pgbench -S, 10 functions of the backend";
    let Some(program) = peers::find("postgres") else {
        return Ok(vec![Row::new(name, "postgresql is not there")]);
    };
    let cluster = Rc::new(Cluster::start(&program)?);
    let start = Box::new(move || start(&cluster));
    rows(&Load { name, rate: Rate::PerSecond("transaction"), program, functions: FUNCTIONS, start })
}

/// A cluster of its own, with nothing but a socket. Dropping this ends it.
struct Cluster {
    _server: Server,
    programs: PathBuf,
    dir: TempDir,
}

impl Cluster {
    fn start(program: &Path) -> Result<Cluster> {
        let dir = tempfile::tempdir()?;
        chown(dir.path(), Some(NOBODY), Some(NOBODY))?;
        let programs = program.parent().unwrap_or(Path::new("/")).to_owned();
        let (data, log) = (dir.path().join("data"), dir.path().join("log"));
        let mut initdb = unprivileged(&programs.join("initdb"));
        initdb.args(["--username=bench", "--auth=trust", "--no-sync", "--locale=C"]);
        initdb.args(["--encoding=UTF8", "-D"]).arg(&data).current_dir(dir.path());
        output("initdb", &mut initdb)?;
        let mut command = unprivileged(program);
        command.arg("-D").arg(&data).arg("-k").arg(dir.path()).current_dir(dir.path());
        for setting in ["listen_addresses=", "fsync=off", "autovacuum=off", "jit=off"] {
            command.args(["-c", setting]);
        }
        let server = Server::start(&mut command, &log)?;
        let mut cluster = Cluster { _server: server, programs, dir };
        let mut question = cluster.client("pg_isready");
        question.stdout(Stdio::null()).stderr(Stdio::null());
        cluster._server.until_ready(&log, || Ok(question.status()?.success()))?;
        output("pgbench -i", cluster.client("pgbench").args(["-i", "-q", "postgres"]))?;
        Ok(cluster)
    }

    fn client(&self, name: &str) -> Command {
        let mut command = bounded(&self.programs.join(name));
        command.arg("-h").arg(self.dir.path()).args(["-U", "bench"]);
        command
    }
}

/// Tells the id of the backend in a file, and waits for another file, at most until pgbench has
/// ended. After the last transaction the backend stays, so that its tracer ends before it.
const GATE: &str = "#!/bin/sh\ncd \"${0%/*}\" && echo \"$3\" >\"$1.part\" && mv \"$1.part\" \"$1\"\n\
    for _ in $(seq 36000); do [ -e \"$2\" ] && exit 0; kill -0 $PPID || exit 1; sleep 0.005; done\nexit 1\n";

fn start(cluster: &Rc<Cluster>) -> Result<Started> {
    let dir = tempfile::tempdir()?;
    let (script, gate) = (dir.path().join("script"), dir.path().join("gate"));
    std::fs::write(&gate, GATE)?;
    std::fs::set_permissions(&gate, std::fs::Permissions::from_mode(0o755))?;
    std::fs::write(&script, transaction(&gate))?;
    let mut command = tied(&cluster.programs.join("pgbench"));
    command.arg("-h").arg(cluster.dir.path()).args(["-U", "bench", "--no-vacuum"]);
    command.args(["-t", &TRANSACTIONS.to_string(), "--random-seed=7"]);
    command.args(["-Dnumber=0", "-Dscale=1", "-f"]).arg(&script).arg("postgres");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut client = Running(command.spawn()?);
    let pid = told(&mut client, &dir.path().join("begin"))?;
    let cluster = Rc::clone(cluster);
    let work = move || {
        let _alive = &cluster;
        let begun = Instant::now();
        std::fs::write(dir.path().join("go"), "")?;
        told(&mut client, &dir.path().join("end"))?;
        let seconds = begun.elapsed().as_secs_f64();
        Ok(Work { units: f64::from(TRANSACTIONS), seconds, printed: String::new() })
    };
    Ok(Started { pid, work: Box::new(work) })
}

/// Waits for the file of a gate. Returns the id in it.
fn told(client: &mut Running, file: &Path) -> Result<u32> {
    wait_for("pgbench", || {
        if let Some(status) = client.0.try_wait()? {
            bail!("pgbench ended too early: {status}");
        }
        let text = std::fs::read_to_string(file).ok();
        Ok(text.and_then(|text| text.trim().parse().ok()))
    })
}

/// The script of `pgbench -S`, between a gate in the first transaction and one in the last.
fn transaction(gate: &Path) -> String {
    let gate = gate.display();
    format!(
        "\\if :number = 0\nSELECT pg_backend_pid() AS id \\gset\n\\shell exec {gate} begin go :id\n\\endif\n\
         \\set aid random(1, 100000 * :scale)\n\
         SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
         \\set number :number + 1\n\
         \\if :number = {TRANSACTIONS}\n\\shell exec {gate} end never :id\n\\endif\n"
    )
}
