//! Posts to a receiver over HTTP, usually one on this machine: exports by OTLP, and pushes of pprof.
//!
//! Nothing here runs on a thread that traces.

mod explanation;
pub(crate) mod queue;
mod send;
mod token;

pub(crate) use explanation::explanation;
pub(crate) use send::PostFailure;

use anyhow::{Context as _, bail, ensure};
use hyper::{
    Uri,
    body::Bytes,
    header::{HeaderName, HeaderValue},
};
use send::{Again, post};
use std::{fmt, path::PathBuf, time::Duration};
use tokio::time::{Instant, sleep};

/// Time limit of one attempt.
const ATTEMPT: Duration = Duration::from_secs(10);
/// The pause before the second attempt. It doubles with each further one.
const BACK_OFF: Duration = Duration::from_secs(1);
/// Attempts that may be answered by a [doubtful](Request::doubtful) status.
const DOUBTFUL: usize = 3;
/// The limit of that pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// An address like `http://localhost:4318`, with a path if it differs from the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) path: String,
}

impl Endpoint {
    /// Parses an address. `usual` has the port and the path where it names none.
    pub(crate) fn parse(url: &str, usual: (u16, &str)) -> anyhow::Result<Self> {
        let uri: Uri = url.parse().with_context(|| format!("`{url}` is no address"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => bail!(
                "`{url}`: no TLS is built in; send to a collector on this machine \
                 (http://localhost:{}), which can",
                usual.0
            ),
            _ => bail!("`{url}` must begin with http://"),
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            bail!("an address cannot have a user or a password: send them in a header");
        }
        let host = uri.host().filter(|host| !host.is_empty());
        let host = host.with_context(|| format!("`{url}` names no host"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path == "/" { usual.1 } else { path };
        Ok(Self { host: host.into(), port: uri.port_u16().unwrap_or(usual.0), path: path.into() })
    }

    /// Returns the host and port for a socket: an IPv6 address loses its brackets.
    fn address(&self) -> (&str, u16) {
        (self.host.trim_matches(['[', ']']), self.port)
    }
}

/// Shows the host and the port.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A request that can be sent several times.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) content_type: HeaderValue,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// The file with a token for `Authorization`. Each attempt reads it.
    pub(crate) token: Option<PathBuf>,
    pub(crate) body: Bytes,
    /// Statuses of temporary failures, besides 429, 502, 503 and 504.
    pub(crate) temporary: &'static [u16],
    /// Statuses that may be temporary. A few attempts find out.
    pub(crate) doubtful: &'static [u16],
}

/// Sends a request, with attempts until the given time and none after it. `failed` is called for each
/// one that fails. Returns the answer's body.
pub(crate) async fn deliver(
    endpoint: &Endpoint,
    request: &Request,
    until: Instant,
    mut failed: impl FnMut(&PostFailure),
) -> anyhow::Result<Bytes> {
    let (mut pause, mut doubtful) = (BACK_OFF, 0);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        ensure!(!left.is_zero(), "cannot export to {endpoint}: the time for it is over");
        let sent = tokio::time::timeout(ATTEMPT.min(left), post(endpoint, request)).await;
        let mut failure = match sent {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(failure)) => failure,
            Err(_) => PostFailure::later("it did not answer in time"),
        };
        if failure.again == Again::Perhaps {
            doubtful += 1;
            failure.again = if doubtful < DOUBTFUL { Again::Yes } else { Again::No };
        }
        failed(&failure);
        let (is_temporary, PostFailure { why, after, .. }) = (failure.is_temporary(), failure);
        let wait = after.unwrap_or(pause);
        // A receiver may ask for any wait.
        let late = Instant::now().checked_add(wait).is_none_or(|at| at >= until);
        ensure!(is_temporary && !late, "cannot export to {endpoint}: {why}");
        sleep(wait).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_takes_no_longer_than_the_time_for_all() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = silent.local_addr().expect("it listens");
        let endpoint = Endpoint::parse(&format!("http://{address}"), (0, "/")).expect("an address");
        let request = Request {
            path: "/".to_owned(),
            content_type: HeaderValue::from_static("text/plain"),
            headers: Vec::new(),
            token: None,
            body: Bytes::new(),
            temporary: &[],
            doubtful: &[],
        };
        let mut attempts = 0;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let until = Instant::now() + Duration::from_millis(100);
            let given_up = deliver(&endpoint, &request, until, |_| attempts += 1);
            // An attempt may take ten seconds otherwise.
            let given_up = tokio::time::timeout(ATTEMPT / 2, given_up).await;
            assert!(given_up.expect("it is given up").is_err());
            // And none is made when the time is over.
            let late = deliver(&endpoint, &request, Instant::now(), |_| attempts += 1).await;
            assert!(late.is_err_and(|error| error.to_string().contains("is over")));
        });
        assert_eq!(attempts, 1);
    }

    #[test]
    fn the_usual_path_need_not_be_given() {
        let usual = (4318, "/v1/metrics");
        let parse = |url| Endpoint::parse(url, usual).map_err(|error| error.to_string());
        let endpoint = parse("http://localhost:9090").expect("an address");
        assert_eq!((endpoint.port, &*endpoint.path), (9090, "/v1/metrics"));
        let endpoint = parse("http://[::1]:9090/api/v1/otlp/v1/metrics").expect("an address");
        assert_eq!(endpoint.address(), ("::1", 9090));
        assert_eq!(endpoint.path, "/api/v1/otlp/v1/metrics");
        assert_eq!(parse("http://collector").map(|e| e.port), Ok(4318));
        for (url, why) in [("https://a", "TLS"), ("a:1", "http://"), ("ftp://a/", "http://")] {
            assert!(parse(url).is_err_and(|error| error.contains(why)), "{url}");
        }
    }
}
