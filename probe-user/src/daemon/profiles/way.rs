//! The receivers, and how each is reached.

use super::{Profiled, otlp, parca, pyroscope};
use crate::daemon::{
    metrics::{catalog::Own, hub::MetricsHub, otlp::Receiver},
    post::{Endpoint, PostFailure, Request, deliver},
    random_ids::Ids,
};
use hyper::{
    body::Bytes,
    header::{HeaderName, HeaderValue},
};
use std::path::PathBuf;
use tokio::time::Instant;

/// A receiver of pprof.
#[derive(Clone, Debug)]
pub(crate) struct Push {
    /// Its path comes before that of each request.
    pub endpoint: Endpoint,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The file with a token, which goes into `Authorization`.
    pub token: Option<PathBuf>,
    pub labels: Vec<(String, String)>,
}

impl Push {
    pub(super) fn request(&self, path: &str, content_type: &'static str, body: Bytes) -> Request {
        Request {
            path: format!("{}{path}", self.endpoint.path.trim_end_matches('/')),
            content_type: HeaderValue::from_static(content_type),
            headers: self.headers.clone(),
            token: self.token.clone(),
            body,
            // A body that was not read in time, and a store behind the server that is away.
            temporary: &[408, 500],
            doubtful: &[],
        }
    }
}

/// One of the receivers.
pub(super) enum Way {
    Otlp(Receiver, Ids),
    Pyroscope(Push),
    Parca(Push),
}

impl Way {
    pub(super) fn otlp(receiver: Receiver) -> Self {
        Self::Otlp(receiver, Ids::new())
    }

    /// Returns the name of its thread.
    pub(super) fn thread(&self) -> &'static str {
        match self {
            Self::Otlp(..) => "otlp-profiles",
            Self::Pyroscope(_) => "pyroscope",
            Self::Parca(_) => "parca",
        }
    }

    /// Returns its name in the log.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Otlp(..) => "OTLP",
            Self::Pyroscope(_) => "Pyroscope",
            Self::Parca(_) => "Parca",
        }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        match self {
            Self::Otlp(receiver, _) => &receiver.endpoint,
            Self::Pyroscope(push) | Self::Parca(push) => &push.endpoint,
        }
    }

    /// Returns the counters of profiles that were sent and that were not.
    pub(super) fn counters(&self) -> [Own; 2] {
        match self {
            Self::Otlp(..) => [Own::OtlpProfiles, Own::OtlpProfilesDropped],
            Self::Pyroscope(_) | Self::Parca(_) => [Own::PprofProfiles, Own::PprofProfilesDropped],
        }
    }

    /// Sends a profile, with attempts until the given time. `failed` is called for each one that fails.
    pub(super) async fn send(
        &mut self,
        profiled: &Profiled,
        metrics: &MetricsHub,
        until: Instant,
        mut failed: impl FnMut(&PostFailure),
    ) -> anyhow::Result<()> {
        let (push, request) = match self {
            Self::Otlp(receiver, ids) => {
                let body = otlp::encode(profiled, &receiver.resource, ids);
                let left_out = receiver.send(body, metrics, until, failed).await?;
                return left_out.map_or(Ok(()), |left_out| Err(anyhow::anyhow!("{left_out}")));
            }
            Self::Pyroscope(push) => (&*push, pyroscope::request(profiled, push)?),
            Self::Parca(push) => (&*push, parca::request(profiled, push)?),
        };
        let failed = |failure: &PostFailure| {
            metrics.count_own(Own::PprofFailures);
            failed(failure);
        };
        deliver(&push.endpoint, &request, until, failed).await.map(drop)
    }
}
