//! Hands requests to the page's files and to the interface behind them.

use super::{answer::refused, api::Api, gate::Gate, page::Page};
use crate::connections::http::{Answer, HttpServer, Service};
use ctrace_core::recording::ReadAt;
use hyper::{Method, Request, StatusCode, body::Incoming};
use std::{io, sync::Arc, time::Duration};
use tokio::net::TcpListener;

struct Timeline<R> {
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
    let server = HttpServer::new(Timeline { gate, api, page });
    loop {
        let accepted = listener.accept().await.map(|(stream, _)| {
            // A picture must not wait for more to send.
            let _ = stream.set_nodelay(true);
            stream
        });
        server.take(accepted).await;
    }
}

impl<R: ReadAt + Send + Sync + 'static> Service for Timeline<R> {
    const NAME: &'static str = "timeline";
    /// A browser opens six.
    const CONNECTIONS: usize = 16;
    /// A report of a large recording takes long.
    const TIME: Duration = Duration::from_secs(600);

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
