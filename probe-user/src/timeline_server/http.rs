//! Takes connections and requests, with limits on both.

use super::{
    answer::{Answer, refused},
    api::Api,
    gate::Gate,
    page::Page,
};
use crate::daemon::places::{ConnectionPlace, ConnectionPlaces};
use ctrace_core::recording::ReadAt;
use hyper::{
    Method, Request, StatusCode, body::Incoming, server::conn::http1, service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, io, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::{sleep, timeout},
};

/// The limit of connections at a time. A browser opens six.
const CONNECTIONS: usize = 16;
/// Time limit for the head of a request.
const HEAD: Duration = Duration::from_secs(5);
/// Time limit for a whole connection: a report of a large recording takes long.
const ALL: Duration = Duration::from_secs(600);
/// Limits of a request's head in bytes and lines.
const HEAD_BYTES: usize = 16 << 10;
const HEAD_LINES: usize = 64;

struct Service<R> {
    places: Arc<ConnectionPlaces>,
    gate: Gate,
    api: Arc<Api<R>>,
    page: Page,
}

/// Answers until it is dropped.
pub(super) async fn serve<R: ReadAt + Send + Sync + 'static>(
    listener: std::net::TcpListener,
    gate: Gate,
    api: Arc<Api<R>>,
    page: Page,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let places = ConnectionPlaces::new(CONNECTIONS, Duration::ZERO);
    let service = Arc::new(Service { places, gate, api, page });
    loop {
        match listener.accept().await {
            Ok((stream, _)) => service.admit(stream).await,
            // Probably for lack of descriptors.
            Err(error) => {
                tracing::warn!("cannot take a connection: {error}");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

impl<R: ReadAt + Send + Sync + 'static> Service<R> {
    async fn admit(self: &Arc<Self>, stream: TcpStream) {
        let (close, closed) = oneshot::channel();
        let close = move || close.send(()).unwrap_or_default();
        let Some(place) = self.places.take(Duration::ZERO, close) else { return };
        let service = Arc::clone(self);
        tokio::spawn(async move {
            tokio::select! {
                _ = timeout(ALL, service.connection(stream, &place)) => {}
                _ = closed => {}
            }
        });
        // Read what it has sent before the next one can take its place.
        tokio::task::yield_now().await;
    }

    async fn connection(&self, stream: TcpStream, place: &ConnectionPlace) -> hyper::Result<()> {
        // A picture must not wait for more to send.
        let _ = stream.set_nodelay(true);
        let service = service_fn(|request| async move {
            place.keep();
            let answer = self.answer(&request).await;
            place.wait();
            Ok::<_, Infallible>(answer)
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

    async fn answer(&self, request: &Request<Incoming>) -> Answer {
        let path = match self.gate.pass(request) {
            Ok(path) => path,
            Err((status, why)) => return refused(status, why),
        };
        if request.method() != Method::GET {
            return refused(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
        }
        let Some(name) = path.strip_prefix("api/") else { return self.page.file(path) };
        let (api, name) = (Arc::clone(&self.api), name.to_owned());
        let query = request.uri().query().unwrap_or_default().to_owned();
        // Other requests are answered meanwhile.
        let answer = tokio::task::spawn_blocking(move || api.answer(&name, &query)).await;
        answer.unwrap_or_else(|_| {
            refused(
                StatusCode::INTERNAL_SERVER_ERROR,
                "ctrace failed to answer: please report it\n",
            )
        })
    }
}
