//! Serves `GET /metrics` and `GET /healthz`, and nothing else.
//!
//! It uses hyper, not axum: two paths need no router, and axum's server cannot limit the size and
//! the time of a request's head, or the connections. Each connection is closed after one answer, so
//! that one time limit covers all of it. Silent connections keep nobody out: see [`ConnectionPlaces`].

use super::{catalog::Own, hosts::Hosts, hub::MetricsHub, listen::Bound, protobuf, text};
use crate::daemon::places::{ConnectionPlace, ConnectionPlaces};
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ACCEPT, ALLOW, CONTENT_TYPE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::oneshot,
    time::{sleep, timeout},
};

/// The limit of connections at a time.
const CONNECTIONS: usize = 32;
/// Time limit for the head of a request.
const HEAD: Duration = Duration::from_secs(5);
/// Time limit for a whole connection.
const ALL: Duration = Duration::from_secs(30);
/// Limits of a request's head in bytes and lines.
const HEAD_BYTES: usize = 16 << 10;
const HEAD_LINES: usize = 64;
/// The answer to requests for another host.
const STRANGE: &str = "not asked for by a name of this machine: use its address, or add the name \
                       to `hosts` in [metrics]\n";

/// Answers until it is dropped. `hosts` lists the allowed names for an address. A socket needs no
/// check: browsers cannot reach it.
pub(super) async fn serve(bound: Bound, hosts: Hosts, metrics: MetricsHub) -> io::Result<()> {
    let server = |hosts| {
        Arc::new(Server {
            places: ConnectionPlaces::new(CONNECTIONS, Duration::ZERO),
            hosts,
            metrics,
        })
    };
    match bound {
        Bound::Address(listener) => {
            let (listener, server) = (TcpListener::from_std(listener)?, server(Some(hosts)));
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => server.admit(stream).await,
                    Err(error) => pause(&error).await,
                }
            }
        }
        Bound::Socket(listener, _file) => {
            let (listener, server) = (UnixListener::from_std(listener)?, server(None));
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => server.admit(stream).await,
                    Err(error) => pause(&error).await,
                }
            }
        }
    }
}

/// Waits after a failed accept, probably for lack of descriptors.
async fn pause(error: &io::Error) {
    tracing::warn!("metrics: cannot take a connection: {error}");
    sleep(Duration::from_secs(1)).await;
}

struct Server {
    places: Arc<ConnectionPlaces>,
    hosts: Option<Hosts>,
    metrics: MetricsHub,
}

impl Server {
    async fn admit(self: &Arc<Self>, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let (close, closed) = oneshot::channel();
        let Some(place) =
            self.places.take(Duration::ZERO, move || close.send(()).unwrap_or_default())
        else {
            self.metrics.count_own(Own::Refused);
            return;
        };
        let server = Arc::clone(self);
        tokio::spawn(async move {
            tokio::select! {
                served = timeout(ALL, server.connection(stream, &place)) => {
                    if !matches!(served, Ok(Ok(()))) {
                        server.metrics.count_own(Own::HttpErrors);
                    }
                }
                _ = closed => server.metrics.count_own(Own::Refused),
            }
        });
        // Read what it has sent before the next one can take its place.
        tokio::task::yield_now().await;
    }

    async fn connection(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        place: &ConnectionPlace,
    ) -> hyper::Result<()> {
        let service = service_fn(|request| async move {
            place.keep();
            let response = match &self.hosts {
                Some(hosts) if !hosts.allow(&request) => {
                    plain(StatusCode::MISDIRECTED_REQUEST, STRANGE)
                }
                _ => answer(&request, &self.metrics).await,
            };
            place.wait();
            Ok::<_, Infallible>(response)
        });
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(HEAD_BYTES)
            .max_headers(HEAD_LINES)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service)
            .await
    }
}

async fn answer(request: &Request<Incoming>, metrics: &MetricsHub) -> Response<Full<Bytes>> {
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

fn with_type(kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    response.headers_mut().insert(CONTENT_TYPE, kind.parse().expect("a header's value"));
    response
}

fn plain(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
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
