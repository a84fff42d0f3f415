//! Sends one POST on its own connection.

use super::Receiver;
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

/// The reason of a failed export, and whether to try again.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) why: String,
    pub(super) again: bool,
    /// The pause that the receiver asked for.
    pub(super) after: Option<Duration>,
}

impl Refusal {
    pub(super) fn later(why: impl ToString) -> Self {
        Self { why: why.to_string(), again: true, after: None }
    }
}

pub(super) async fn post(receiver: &Receiver, body: Bytes) -> Result<(), Refusal> {
    let endpoint = &receiver.endpoint;
    let stream = TcpStream::connect(endpoint.address()).await.map_err(Refusal::later)?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(Refusal::later)?;
    let driver = tokio::spawn(connection);
    let result = async {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        let never = |why: &dyn std::fmt::Display| Refusal {
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
        let response = sender.send_request(request).await.map_err(Refusal::later)?;
        let (status, after) = (response.status(), response.headers().get(RETRY_AFTER));
        if status.is_success() {
            return Ok(());
        }
        let after = after.and_then(|after| after.to_str().ok()?.parse().ok());
        let again = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        let said = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
        let said = said.map(|said| said.to_bytes()).unwrap_or_default();
        let mut why = format!("it answered {status}");
        let said = String::from_utf8_lossy(&said);
        let said = said.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(200);
        let said: String = said.collect();
        if !said.is_empty() {
            why = format!("{why}: {said}");
        }
        Err(Refusal { why, again, after: after.map(Duration::from_secs) })
    };
    let result = result.await;
    driver.abort();
    result
}
