//! A push to Parca: `ProfileStoreService.WriteRaw`, in JSON by its gateway, which is at
//! `POST /api/profiles/writeraw`.

use super::{
    Profiled,
    base64::base64,
    labels::{SERVICE, labels, service},
    pprof,
    way::Push,
};
use crate::daemon::post::Request;
use serde_json::json;
use std::io;

/// The name of the profile: Parca calls its kinds `ctrace:wall:…` and `ctrace:calls:…`.
const NAME: &str = "ctrace";

pub(super) fn request(profiled: &Profiled, push: &Push) -> io::Result<Request> {
    let label = |(name, value): (String, String)| json!({"name": name, "value": value});
    let own = [("__name__", NAME.to_owned()), (SERVICE, service(profiled, &push.labels))];
    let own = own.map(|(key, value)| (key.to_owned(), value));
    let labels = own.into_iter().chain(labels(profiled, &push.labels));
    let labels: Vec<_> = labels.map(label).collect();
    let file = base64(&pprof::encode(profiled)?);
    // Addresses are those of files: there are none.
    let body = json!({
        "series": [{"labels": {"labels": labels}, "samples": [{"rawProfile": file}]}],
        "normalized": true,
    });
    let body = body.to_string().into();
    Ok(push.request("/api/profiles/writeraw", "application/json", body))
}
