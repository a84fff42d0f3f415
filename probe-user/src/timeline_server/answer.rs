//! Answers, with the headers that keep the page to itself.

use crate::connections::http::Answer;
use ctrace_core::report::render::json;
use http_body_util::Full;
use hyper::{
    Response, StatusCode,
    body::Bytes,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde::Serialize;

const JSON: &str = "application/json";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";
pub(super) const BINARY: &str = "application/octet-stream";

/// The page has its own files and nothing else: no inline code, no other server, no foreign page around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'self'";

/// Headers of every answer.
const HEADERS: [(&str, &str); 6] = [
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", POLICY),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
];

pub(super) fn answer(kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    answer
}

pub(super) fn as_json(value: &impl Serialize) -> Answer {
    answer(JSON, json::line(value))
}

pub(super) fn refused(status: StatusCode, why: impl Into<Bytes>) -> Answer {
    let mut answer = answer(TEXT, why);
    *answer.status_mut() = status;
    answer
}
