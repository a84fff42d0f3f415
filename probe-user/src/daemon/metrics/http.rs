//! Serves `GET /metrics` and `GET /healthz`, and nothing else.

use super::{catalog::Own, hosts::Hosts, hub::MetricsHub, listen::Bound, protobuf, text};
use crate::connections::http::{Answer, Ending, HttpServer, Service};
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ACCEPT, ALLOW, CONTENT_TYPE},
};
use std::{io, time::Duration};
use tokio::net::{TcpListener, UnixListener};

/// The answer to requests for another host.
const STRANGE: &str = "not asked for by a name of this machine: use its address, or add the name \
                       to `hosts` in [metrics]\n";

/// Answers until it is dropped. `hosts` lists the allowed names for an address. A socket needs no
/// check: browsers cannot reach it.
pub(super) async fn serve(bound: Bound, hosts: Hosts, metrics: MetricsHub) -> io::Result<()> {
    match bound {
        Bound::Address(listener) => {
            let listener = TcpListener::from_std(listener)?;
            let server = HttpServer::new(Metrics { hosts: Some(hosts), metrics });
            loop {
                server.take(listener.accept().await.map(|(stream, _)| stream)).await;
            }
        }
        Bound::Socket(listener, _file) => {
            let listener = UnixListener::from_std(listener)?;
            let server = HttpServer::new(Metrics { hosts: None, metrics });
            loop {
                server.take(listener.accept().await.map(|(stream, _)| stream)).await;
            }
        }
    }
}

struct Metrics {
    hosts: Option<Hosts>,
    metrics: MetricsHub,
}

impl Service for Metrics {
    const NAME: &'static str = "metrics";
    const CONNECTIONS: usize = 32;
    const TIME: Duration = Duration::from_secs(30);

    async fn answer(&self, request: &Request<Incoming>) -> Answer {
        match &self.hosts {
            Some(hosts) if !hosts.allow(request) => plain(StatusCode::MISDIRECTED_REQUEST, STRANGE),
            _ => answer(request, &self.metrics).await,
        }
    }

    fn ended(&self, ending: Ending) {
        match ending {
            Ending::Served => {}
            Ending::Failed => self.metrics.count_own(Own::HttpErrors),
            Ending::Refused => self.metrics.count_own(Own::Refused),
        }
    }
}

async fn answer(request: &Request<Incoming>, metrics: &MetricsHub) -> Answer {
    let path = request.uri().path();
    if !["/metrics", "/healthz"].contains(&path) {
        return plain(StatusCode::NOT_FOUND, "there are /metrics and /healthz\n");
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        response.headers_mut().insert(ALLOW, "GET, HEAD".parse().expect("a header's value"));
        return response;
    }
    if path == "/healthz" {
        return plain(StatusCode::OK, "ok\n");
    }
    let families = metrics.scrape().await;
    metrics.count_own(Own::Scrapes);
    let accept = request.headers().get_all(ACCEPT);
    let accept: Vec<&str> = accept.iter().filter_map(|value| value.to_str().ok()).collect();
    if wants_protobuf(&accept.join(",")) {
        return with_type(protobuf::CONTENT_TYPE, protobuf::encode(&families, metrics.edges()));
    }
    with_type(text::CONTENT_TYPE, text::encode(&families, metrics.edges()))
}

/// Returns whether a scraper prefers the binary format to text.
fn wants_protobuf(accept: &str) -> bool {
    let (mut binary, mut text) = (0.0, 0.0);
    for offer in accept.split(',') {
        let mut parts = offer.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let parts: Vec<&str> = parts.collect();
        let quality = parts.iter().find_map(|part| part.strip_prefix("q=")?.parse::<f64>().ok());
        let quality = quality.unwrap_or(1.0);
        match kind.as_str() {
            "application/vnd.google.protobuf"
                if parts.contains(&"proto=io.prometheus.client.MetricFamily")
                    && parts.contains(&"encoding=delimited") =>
            {
                binary = quality;
            }
            "text/plain" | "text/*" | "*/*" => text = quality.max(text),
            _ => {}
        }
    }
    binary > 0.0 && binary >= text
}

fn with_type(kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    response.headers_mut().insert(CONTENT_TYPE, kind.parse().expect("a header's value"));
    response
}

fn plain(status: StatusCode, body: &'static str) -> Answer {
    let mut response = with_type("text/plain; charset=utf-8", body);
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_format_is_for_those_who_prefer_it() {
        let binary = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                      encoding=delimited";
        assert!(wants_protobuf(&format!("{binary},text/plain;version=0.0.4;q=0.3,*/*;q=0.1")));
        assert!(wants_protobuf(&binary.replace(';', "; ")));
        assert!(!wants_protobuf(&format!("{binary};q=0.2, text/plain;q=0.5")));
        assert!(!wants_protobuf("application/vnd.google.protobuf;encoding=text"));
        assert!(!wants_protobuf("") && !wants_protobuf("*/*") && !wants_protobuf(";;,,q=x"));
    }
}
