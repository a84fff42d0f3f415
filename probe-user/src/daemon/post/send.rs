//! Sends one POST on its own connection.

use super::{Endpoint, Request, explanation, token::authorization};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, StatusCode,
    body::Bytes,
    client::conn::http1,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER},
};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::TcpStream;

/// The limit of a receiver's answer, in bytes.
const ANSWER_BYTES: usize = 64 << 10;
/// The time for it. The request has been taken or refused by then.
const ANSWER: Duration = Duration::from_secs(1);

/// True if another attempt makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    Yes,
    /// A few more attempts find out.
    Perhaps,
    No,
}

/// A failed attempt.
#[derive(Debug)]
pub(crate) struct PostFailure {
    pub(crate) why: String,
    pub(super) again: Again,
    /// The pause that the receiver asked for.
    pub(super) after: Option<Duration>,
}

impl PostFailure {
    pub(super) fn later(why: impl ToString) -> Self {
        Self { why: why.to_string(), again: Again::Yes, after: None }
    }

    fn never(why: impl ToString) -> Self {
        Self { again: Again::No, ..Self::later(why) }
    }

    /// Returns true if another attempt makes sense.
    pub(crate) fn is_temporary(&self) -> bool {
        self.again != Again::No
    }
}

/// Sends a request. Returns the answer's body.
pub(super) async fn post(endpoint: &Endpoint, request: &Request) -> Result<Bytes, PostFailure> {
    let stream = TcpStream::connect(endpoint.address()).await.map_err(PostFailure::later)?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(PostFailure::later)?;
    let driver = tokio::spawn(connection);
    let result = async {
        let mut posted = hyper::Request::new(Full::new(request.body.clone()));
        *posted.method_mut() = Method::POST;
        *posted.uri_mut() = request.path.parse().map_err(PostFailure::never)?;
        let headers = posted.headers_mut();
        headers.insert(HOST, endpoint.to_string().parse().map_err(PostFailure::never)?);
        headers.insert(CONTENT_TYPE, request.content_type.clone());
        headers.extend(request.headers.iter().cloned());
        if let Some(token) = &request.token {
            // Whoever replaces the file may not be ready yet.
            headers.insert(AUTHORIZATION, authorization(token).map_err(PostFailure::later)?);
        }
        let response = sender.send_request(posted).await.map_err(PostFailure::later)?;
        let (status, after) = (response.status(), response.headers().get(RETRY_AFTER));
        let after = after.and_then(|after| after.to_str().ok()?.parse().ok());
        let again = match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Again::Yes,
            status if request.temporary.contains(&status.as_u16()) => Again::Yes,
            status if request.doubtful.contains(&status.as_u16()) => Again::Perhaps,
            _ => Again::No,
        };
        let said = Limited::new(response.into_body(), ANSWER_BYTES).collect();
        let said = tokio::time::timeout(ANSWER, said).await;
        let said = said.ok().and_then(Result::ok).map(|said| said.to_bytes()).unwrap_or_default();
        if status.is_success() {
            return Ok(said);
        }
        let why = match explanation(&said) {
            none if none.is_empty() => format!("it answered {status}"),
            said => format!("it answered {status}: {said}"),
        };
        Err(PostFailure { why, again, after: after.map(Duration::from_secs) })
    };
    let result = result.await;
    driver.abort();
    result
}
