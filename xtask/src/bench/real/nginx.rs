//! A worker of nginx serves a small file to wrk on the loopback device.

use super::compare::rows;
use super::process::{NOBODY, PATIENCE, Server, bounded, children, unprivileged, wait_for};
use super::turns::{Load, Rate, Started, Work};
use crate::bench::{Row, output};
use crate::peers;
use anyhow::{Context, Result};
use std::io::{Read, Write};
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
        // wrk does not count the requests that it leaves unanswered at its end.
        let before = served(port)?;
        let mut client = bounded(&wrk);
        client.args(["--threads", "1", "--connections", "20", "--duration", "3s", &url]);
        let printed = output("wrk", &mut client)?;
        let rate = rate(&printed).with_context(|| format!("no rate in: {printed}"))?;
        let units = served(port)? - before;
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
         server {{ listen 127.0.0.1:{port}; root {dir};\n\
         location = /status {{ stub_status; }} }}\n}}\n"
    )
}

/// Asks nginx how many requests it has served, this one included.
fn served(port: u16) -> Result<f64> {
    let mut connection = TcpStream::connect(("127.0.0.1", port))?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.write_all(b"GET /status HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    count(&answer).with_context(|| format!("no count in: {answer}"))
}

/// Finds the third of the numbers under `server accepts handled requests`.
fn count(status: &str) -> Option<f64> {
    let (_, numbers) = status.split_once("handled requests")?;
    numbers.split_whitespace().nth(2)?.parse().ok()
}

fn rate(printed: &str) -> Option<f64> {
    let mut lines = printed.lines().map(str::trim);
    lines.find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrk_has_the_rate_and_nginx_the_count() {
        let printed = "  152014 requests in 3.10s, 190.00MB read\nRequests/sec:  49036.77\n\
            Transfer/sec:     61.29MB\n";
        assert_eq!(rate(printed), Some(49_036.77));
        assert_eq!(rate("unable to connect"), None);
        let status = "HTTP/1.1 200 OK\r\n\r\nActive connections: 4 \n\
            server accepts handled requests\n 22 21 152035 \nReading: 0 Writing: 1 Waiting: 3 \n";
        assert_eq!(count(status), Some(152_035.0));
        assert_eq!(count("404 Not Found"), None);
    }
}
