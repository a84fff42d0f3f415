//! A worker of nginx serves a small file to wrk on the loopback device.

use super::process::{NOBODY, Server, bounded, children, unprivileged, wait_for};
use super::turns::{Load, Rate, Started, Work, rows};
use crate::bench::{Row, output};
use crate::peers;
use anyhow::{Context, Result};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::path::Path;

/// The path of a request.
const FUNCTIONS: &[&str] = &[
    "ngx_http_create_request",
    "ngx_http_parse_request_line",
    "ngx_http_process_request",
    "ngx_http_handler",
    "ngx_http_core_run_phases",
    "ngx_http_core_find_config_phase",
    "ngx_http_map_uri_to_path",
    "ngx_http_send_header",
    "ngx_http_output_filter",
    "ngx_http_free_request",
];

pub(in crate::bench) fn run() -> Result<Vec<Row>> {
    let name = "nginx, a static file, 10 functions";
    let (Some(program), Some(wrk)) = (peers::find("nginx"), peers::find("wrk")) else {
        return Ok(vec![Row::new(name, "nginx or wrk is not there")]);
    };
    let server = program.clone();
    let start = Box::new(move || start(&server, &wrk));
    rows(&Load { name, rate: Rate::PerSecond("request"), program, functions: FUNCTIONS, start })
}

fn start(program: &Path, wrk: &Path) -> Result<Started> {
    let dir = tempfile::tempdir()?;
    let log = dir.path().join("log");
    // The port is free again before nginx takes it.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    std::fs::write(dir.path().join("nginx.conf"), configuration(dir.path(), port))?;
    std::fs::write(dir.path().join("file"), "0123456789abcdef".repeat(64))?;
    chown(dir.path(), Some(NOBODY), Some(NOBODY))?;
    let mut command = unprivileged(program);
    command.args(["-e", "stderr", "-p"]).arg(dir.path());
    command.arg("-c").arg(dir.path().join("nginx.conf"));
    let mut server = Server::start(&mut command, &log)?;
    server.until_ready(&log, || Ok(TcpStream::connect(("127.0.0.1", port)).is_ok()))?;
    let master = server.id();
    let pid = wait_for("nginx's worker", || Ok(children(master).first().copied()))?;
    let (wrk, url) = (wrk.to_owned(), format!("http://127.0.0.1:{port}/file"));
    let work = move || {
        let _alive = (&dir, &server);
        let mut client = bounded(&wrk);
        client.args(["--threads", "1", "--connections", "20", "--duration", "3s", &url]);
        let printed = output("wrk", &mut client)?;
        let (units, rate) = requests(&printed).with_context(|| format!("no rate in: {printed}"))?;
        Ok(Work { units, seconds: units / rate, printed })
    };
    Ok(Started { pid, work: Box::new(work) })
}

fn configuration(dir: &Path, port: u16) -> String {
    let dir = dir.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {dir}/{kind};\n"))
        .concat();
    format!(
        "daemon off;\nworker_processes 1;\nerror_log stderr error;\npid {dir}/pid;\n\
         events {{ worker_connections 256; }}\nhttp {{\naccess_log off;\nsendfile on;\n\
         default_type text/plain;\nkeepalive_requests 1000000000;\n{temporary}\
         server {{ listen 127.0.0.1:{port}; root {dir}; }}\n}}\n"
    )
}

/// Returns the number of requests and their rate.
fn requests(printed: &str) -> Option<(f64, f64)> {
    let mut lines = printed.lines().map(str::trim);
    let number = lines.find_map(|line| line.split_once(" requests in ")?.0.parse().ok())?;
    let rate = lines.find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok())?;
    Some((number, rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrk_says_how_many_and_how_fast() {
        let printed = "Running 3s test @ http://127.0.0.1:1/file\n  1 threads and 20 connections\n    \
            Latency   392.07us\n  152014 requests in 3.10s, 190.00MB read\nRequests/sec:  49036.77\n\
            Transfer/sec:     61.29MB\n";
        assert_eq!(requests(printed), Some((152_014.0, 49_036.77)));
        assert_eq!(requests("unable to connect"), None);
    }
}
