//! Checks the host name of each request.
//!
//! In DNS rebinding, a web page points its own name at this machine. A reader's browser then
//! fetches the metrics and lets the page read them. Such a request has the page's name in `Host`,
//! so only our own names are answered. Numeric addresses are safe: nobody can make one point
//! elsewhere.

use crate::host_name::host_name;
use hyper::{
    Request, Version,
    header::{HOST, HeaderValue},
    http::uri::Authority,
};
use std::net::IpAddr;

/// The host names that are answered, besides `localhost` and addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Hosts(Vec<String>);

impl Hosts {
    /// Combines the name of this machine with the configured names.
    pub(super) fn new(configured: &[String]) -> Self {
        let own = host_name();
        let all = configured.iter().cloned().chain([own, "localhost".to_owned()]);
        Self(all.map(|name| plain(&name)).filter(|name| !name.is_empty()).collect())
    }

    /// Returns whether the request is for us.
    pub(super) fn allow<T>(&self, request: &Request<T>) -> bool {
        let mut named = false;
        let mut is_ours = |host: &str| {
            named = true;
            self.is_ours(host)
        };
        let of_uri = request.uri().authority().is_none_or(|authority| is_ours(authority.host()));
        let of_header = |value: &HeaderValue| {
            let authority = value.to_str().ok().and_then(|text| text.parse::<Authority>().ok());
            authority.is_some_and(|authority| is_ours(authority.host()))
        };
        let of_headers = request.headers().get_all(HOST).iter().all(of_header);
        // HTTP/1.0 need not name a host; a browser always does.
        of_uri && of_headers && (named || request.version() < Version::HTTP_11)
    }

    fn is_ours(&self, host: &str) -> bool {
        let host = plain(host);
        let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        self.0.contains(&host) || address.unwrap_or(&host).parse::<IpAddr>().is_ok()
    }
}

/// Ignores case and a trailing dot.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(uri: &str, hosts: &[&str], version: Version) -> bool {
        let request = Request::builder().uri(uri).version(version);
        let request = hosts.iter().fold(request, |request, host| request.header(HOST, *host));
        Hosts::new(&["Metrics.Example.org".to_owned()]).allow(&request.body(()).expect("a request"))
    }

    #[test]
    fn only_our_own_names_are_answered() {
        let host = |host: &str| allows("/metrics", &[host], Version::HTTP_11);
        for ours in ["localhost", "localhost:9779", "LOCALHOST.:1", "127.0.0.1:9779", "10.1.2.3"] {
            assert!(host(ours), "{ours}");
        }
        for ours in ["[::1]:9779", "[fe80::1]", "metrics.example.ORG:9779"] {
            assert!(host(ours), "{ours}");
        }
        assert!(host(&host_name()));
        for other in ["evil.example", "localhost.evil.example:9779", "127.0.0.1.evil.example"] {
            assert!(!host(other), "{other}");
        }
        for other in ["", "x.metrics.example.org", "0x7f.1", "[::1", "a b"] {
            assert!(!host(other), "{other}");
        }
    }

    #[test]
    fn whoever_is_named_must_be_ours() {
        assert!(allows("/metrics", &[], Version::HTTP_10));
        assert!(!allows("/metrics", &[], Version::HTTP_11));
        assert!(!allows("/metrics", &["localhost", "evil.example"], Version::HTTP_11));
        assert!(!allows("http://evil.example/metrics", &["localhost"], Version::HTTP_11));
        assert!(allows("http://127.0.0.1:1/metrics", &["localhost"], Version::HTTP_11));
    }
}
