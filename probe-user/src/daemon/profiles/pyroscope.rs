//! A push to Pyroscope: `POST /ingest?name=…&from=…&until=…&format=pprof` with the file as it is.

use super::{
    Profiled,
    labels::{labels, service},
    pprof,
    way::Push,
};
use crate::daemon::post::Request;
use hyper::header::HeaderValue;
use std::{fmt::Write as _, io};

/// Nanoseconds in a second: `from` and `until` are in seconds.
const SECOND: i64 = 1_000_000_000;

pub(super) fn request(profiled: &Profiled, push: &Push) -> io::Result<Request> {
    let labels = labels(profiled, &push.labels);
    let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let name = format!("{}{{{}}}", service(profiled, &push.labels), labels.join(","));
    let origin = &profiled.origin;
    let (from, until) = (origin.start_ns / SECOND, origin.end_ns / SECOND);
    let query =
        format!("name={}&from={from}&until={until}&format=pprof&spyName=ctrace", escaped(&name));
    Ok(Request {
        path: push.path(&format!("/ingest?{query}")),
        content_type: HeaderValue::from_static("application/octet-stream"),
        headers: push.headers()?,
        body: pprof::encode(profiled)?.into(),
    })
}

/// Escapes a value of a query.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte.into());
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}
