//! Sends one POST on its own connection.

use super::{
    Receiver,
    answer::{explanation, left_out},
};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, Request, StatusCode,
    body::Bytes,
    client::conn::http1,
    header::{CONTENT_TYPE, HOST, RETRY_AFTER},
};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::TcpStream;

/// The limit of a receiver's explanation, in bytes.
const ANSWER_BYTES: usize = 64 << 10;
/// The time for it. The export has been taken or refused by then.
const ANSWER: Duration = Duration::from_secs(1);

/// The reason of a failed export, and whether to try again.
#[derive(Debug)]
pub(super) struct ExportFailure {
    pub(super) why: String,
    pub(super) again: bool,
    /// The pause that the receiver asked for.
    pub(super) after: Option<Duration>,
}

impl ExportFailure {
    pub(super) fn later(why: impl ToString) -> Self {
        Self { why: why.to_string(), again: true, after: None }
    }
}

/// Sends a request. Returns what the receiver left out, if anything: that must not be sent again.
pub(super) async fn post(
    receiver: &Receiver,
    body: Bytes,
) -> Result<Option<String>, ExportFailure> {
    let endpoint = &receiver.endpoint;
    let stream = TcpStream::connect(endpoint.address()).await.map_err(ExportFailure::later)?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(ExportFailure::later)?;
    let driver = tokio::spawn(connection);
    let result = async {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        let never = |why: &dyn std::fmt::Display| ExportFailure {
            why: why.to_string(),
            again: false,
            after: None,
        };
        *request.uri_mut() = endpoint.path.parse().map_err(|error| never(&error))?;
        let host = format!("{}:{}", endpoint.host, endpoint.port);
        let headers = request.headers_mut();
        headers.insert(HOST, host.parse().map_err(|error| never(&error))?);
        let kind = "application/x-protobuf";
        headers.insert(CONTENT_TYPE, kind.parse().map_err(|error| never(&error))?);
        headers.extend(receiver.headers.iter().cloned());
        let response = sender.send_request(request).await.map_err(ExportFailure::later)?;
        let (status, after) = (response.status(), response.headers().get(RETRY_AFTER));
        let after = after.and_then(|after| after.to_str().ok()?.parse().ok());
        let again = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        let said = Limited::new(response.into_body(), ANSWER_BYTES).collect();
        let said = tokio::time::timeout(ANSWER, said).await;
        let said = said.ok().and_then(Result::ok).map(|said| said.to_bytes()).unwrap_or_default();
        let with = |what: String, said: &str| match said.is_empty() {
            true => what,
            false => format!("{what}: {said}"),
        };
        if status.is_success() {
            let left_out = left_out(&said);
            return Ok(left_out.map(|(number, said)| {
                with(format!("left out {number} of the points or spans"), &said)
            }));
        }
        let why = with(format!("it answered {status}"), &explanation(&said));
        Err(ExportFailure { why, again, after: after.map(Duration::from_secs) })
    };
    let result = result.await;
    driver.abort();
    result
}
