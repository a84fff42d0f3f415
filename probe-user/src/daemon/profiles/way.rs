//! The receivers, and how each is reached.

use super::{Profiled, otlp, parca, pyroscope, token::authorization};
use crate::daemon::{
    metrics::{catalog::Own, hub::MetricsHub, otlp::Receiver},
    post::{Endpoint, deliver},
    random_ids::Ids,
};
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use std::{io, path::PathBuf};
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
    pub(super) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.endpoint.path.trim_end_matches('/'))
    }

    pub(super) fn headers(&self) -> io::Result<Vec<(HeaderName, HeaderValue)>> {
        let token = self.token.as_deref().map(authorization).transpose()?;
        let token = token.map(|token| (AUTHORIZATION, token));
        Ok(self.headers.iter().cloned().chain(token).collect())
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

    /// Sends a profile, with attempts until the given time. `failed` is called with the reason for each
    /// one that fails. Returns false if the receiver left it out.
    pub(super) async fn send(
        &mut self,
        profiled: &Profiled,
        metrics: &MetricsHub,
        until: Instant,
        mut failed: impl FnMut(&str),
    ) -> anyhow::Result<bool> {
        let (push, request) = match self {
            Self::Otlp(receiver, ids) => {
                let body = otlp::encode(profiled, &receiver.resource, ids);
                return Ok(receiver.send(body, metrics, until, failed).await? == 0);
            }
            Self::Pyroscope(push) => (&*push, pyroscope::request(profiled, push)?),
            Self::Parca(push) => (&*push, parca::request(profiled, push)?),
        };
        let failed = |why: &str| {
            metrics.count_own(Own::PprofFailures);
            failed(why);
        };
        deliver(&push.endpoint, &request, until, failed).await.map(|_| true)
    }
}
