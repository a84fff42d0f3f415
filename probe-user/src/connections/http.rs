//! Serves HTTP, with limits on connections, on the head of a request and on time.
//!
//! It uses hyper, not axum: a few paths need no router, and axum's server cannot limit the size and
//! the time of a request's head, or the connections. Each connection is closed after one answer, so
//! that one time limit covers all of it. Silent connections keep nobody out: see [`ConnectionPlaces`].

use super::places::{ConnectionPlace, ConnectionPlaces};
use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::oneshot,
    time::{sleep, timeout},
};

/// Time limit for the head of a request.
const HEAD: Duration = Duration::from_secs(5);
/// Limits of a request's head in bytes and lines.
const HEAD_BYTES: usize = 16 << 10;
const HEAD_LINES: usize = 64;

pub(crate) type Answer = Response<Full<Bytes>>;

/// The end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Served,
    /// It broke, said nothing that HTTP allows, or took too long.
    Failed,
    /// It found no place, or lost its place to a newcomer.
    Refused,
}

/// The service behind a server.
pub(crate) trait Service: Send + Sync + 'static {
    /// The name of the server in messages.
    const NAME: &'static str;
    /// The limit of connections at a time.
    const CONNECTIONS: usize;
    /// Time limit for a whole connection.
    const TIME: Duration;

    fn answer(&self, request: &Request<Incoming>) -> impl Future<Output = Answer> + Send;

    /// Takes note of the end of a connection.
    fn ended(&self, _ending: Ending) {}
}

pub(crate) struct HttpServer<S> {
    places: Arc<ConnectionPlaces>,
    service: S,
}

impl<S: Service> HttpServer<S> {
    pub(crate) fn new(service: S) -> Arc<Self> {
        Arc::new(Self { places: ConnectionPlaces::new(S::CONNECTIONS, Duration::ZERO), service })
    }

    /// Takes what a listener has accepted.
    pub(crate) async fn take<T>(self: &Arc<Self>, accepted: io::Result<T>)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match accepted {
            Ok(stream) => self.admit(stream).await,
            // Probably for lack of descriptors.
            Err(error) => {
                tracing::warn!("{}: cannot take a connection: {error}", S::NAME);
                sleep(Duration::from_secs(1)).await;
            }
        }
    }

    async fn admit(self: &Arc<Self>, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let (close, closed) = oneshot::channel();
        let close = move || close.send(()).unwrap_or_default();
        let Some(place) = self.places.take(Duration::ZERO, close) else {
            return self.service.ended(Ending::Refused);
        };
        let server = Arc::clone(self);
        tokio::spawn(async move {
            let ending = tokio::select! {
                served = timeout(S::TIME, server.connection(stream, &place)) => match served {
                    Ok(Ok(())) => Ending::Served,
                    _ => Ending::Failed,
                },
                _ = closed => Ending::Refused,
            };
            server.service.ended(ending);
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
            let answer = self.service.answer(&request).await;
            place.send();
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{Read as _, Write as _},
        net::{Ipv4Addr, TcpListener, TcpStream},
    };

    /// More than the buffers of a connection hold.
    const LARGE: usize = 64 << 20;

    struct Large;

    impl Service for Large {
        const NAME: &'static str = "test";
        const CONNECTIONS: usize = 1;
        const TIME: Duration = Duration::from_secs(600);

        async fn answer(&self, _request: &Request<Incoming>) -> Answer {
            Response::new(Full::new(Bytes::from(vec![b'x'; LARGE])))
        }
    }

    #[test]
    fn a_newcomer_does_not_cut_off_an_answer() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("it can wait");
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("it listens");
                let server = HttpServer::new(Large);
                let serve = async {
                    loop {
                        server.take(listener.accept().await.map(|accepted| accepted.0)).await;
                    }
                };
                tokio::select! { () = serve => {}, _ = stopped => {} }
            });
        };
        let serving = std::thread::spawn(serve);
        let ask = || {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is open");
            stream
        };
        let mut first = ask();
        let mut answer = vec![0];
        first.read_exact(&mut answer).expect("the answer has begun");
        let mut nothing = Vec::new();
        let _ = ask().read_to_end(&mut nothing);
        assert!(nothing.is_empty(), "there is one place");
        first.read_to_end(&mut answer).expect("the rest of it");
        assert!(answer.len() > LARGE, "{}", answer.len());
        drop(stop);
        serving.join().expect("it ends");
    }
}
