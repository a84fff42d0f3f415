//! A receiver for tests. It decodes requests with OpenTelemetry's types.

use super::{Receiver, Resource};
use crate::daemon::post::Endpoint;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
};

/// Makes the options to export to it.
pub(crate) fn receiver(listener: &TcpListener) -> Receiver {
    let port = listener.local_addr().expect("it listens").port();
    let endpoint = Endpoint::parse(&format!("http://127.0.0.1:{port}"), (0, "/v1/metrics"));
    Receiver {
        endpoint: endpoint.expect("an address"),
        headers: Vec::new(),
        resource: Resource::default(),
    }
}

/// Receives a request and sends an answer. Returns the request's head and body.
pub(crate) fn receive(listener: &TcpListener, answer: &str) -> (String, Vec<u8>) {
    receive_and(listener, answer, || {})
}

/// Like [`receive`], and does something before the answer.
pub(crate) fn receive_and(
    listener: &TcpListener,
    answer: &str,
    then: impl FnOnce(),
) -> (String, Vec<u8>) {
    let (stream, _) = listener.accept().expect("somebody exports");
    let mut reader = BufReader::new(&stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).expect("a head"), 0, "{head}");
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).expect("a length")];
    reader.read_exact(&mut body).expect("a body");
    then();
    (&stream).write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).expect("it listens");
    (head, body)
}

/// Returns the text of the attribute with this name.
pub(crate) fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.key == key)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text.clone()),
        _ => None,
    }
}
