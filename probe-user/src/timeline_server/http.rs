//! Hands requests to the page's files and to the interface behind them.

use super::{
    answer::refused,
    gate::Gate,
    page::Page,
    site::{Found, Site},
};
use crate::connections::http::{Answer, HttpServer, Service};
use ctrace_core::stop::Stop;
use hyper::{Method, Request, StatusCode, body::Incoming};
use std::{future::poll_fn, io, sync::Arc, task::Poll, time::Duration};
use tokio::net::TcpListener;

struct Timeline {
    gate: Gate,
    site: Site,
    page: Page,
}

/// Stops work for which nobody waits any more.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Answers until it is dropped.
pub(super) async fn serve(
    listeners: Vec<std::net::TcpListener>,
    gate: Gate,
    site: Site,
    page: Page,
) -> io::Result<()> {
    let listeners: Vec<_> =
        listeners.into_iter().map(TcpListener::from_std).collect::<io::Result<_>>()?;
    let server = HttpServer::new(Timeline { gate, site, page });
    loop {
        let accepted = poll_fn(|context| {
            let mut each = listeners.iter().map(|listener| listener.poll_accept(context));
            each.find(Poll::is_ready).unwrap_or(Poll::Pending)
        });
        let accepted = accepted.await.map(|(stream, _)| {
            // A picture must not wait for more to send.
            let _ = stream.set_nodelay(true);
            stream
        });
        server.take(accepted).await;
    }
}

impl Service for Timeline {
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
        let (api, name) = match self.site.find(path) {
            Found::File(name) => return self.page.file(name),
            Found::Verdicts(verdicts) => return verdicts.answer(),
            Found::Answer(api, name) => (Arc::clone(api), name.to_owned()),
        };
        let query = request.uri().query().unwrap_or_default().to_owned();
        // This is dropped when the browser has closed the connection.
        let stop = StopOnDrop(Stop::default());
        let stopped = stop.0.clone();
        // Other requests are answered meanwhile.
        let work = move || api.answer(&name, &query, &stopped);
        let answer = tokio::task::spawn_blocking(work).await;
        answer.unwrap_or_else(|_| {
            refused(
                StatusCode::INTERNAL_SERVER_ERROR,
                "ctrace failed to answer: please report it\n",
            )
        })
    }
}
