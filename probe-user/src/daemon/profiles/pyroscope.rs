//! A push to Pyroscope: `POST /ingest?name=…&from=…&until=…&format=pprof` with the file as it is.

use super::{
    Profiled,
    labels::{labels, service},
    pprof,
    way::Push,
};
use crate::daemon::post::Request;
use std::{fmt::Write as _, io};

pub(super) fn request(profiled: &Profiled, push: &Push) -> io::Result<Request> {
    let labels = labels(profiled, &push.labels);
    let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let name = format!("{}{{{}}}", service(profiled, &push.labels), labels.join(","));
    // In nanoseconds: Pyroscope tells the unit by the number of digits.
    let (from, until) = (profiled.origin.start_ns.max(0), profiled.origin.end_ns.max(0));
    let query =
        format!("name={}&from={from}&until={until}&format=pprof&spyName=ctrace", escaped(&name));
    let body = pprof::encode(profiled)?.into();
    let request = push.request(&format!("/ingest?{query}"), "application/octet-stream", body);
    // It answers 422 where it cannot tell a wrong profile from a limit or from a part of it that is away.
    Ok(Request { doubtful: &[422], ..request })
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
