//! Decides who is answered: a browser on this machine that was given the address, and no page of
//! anybody else.
//!
//! - Other users of the machine can connect, but do not know the token. It is the first part of
//!   every path, so the page's own addresses have it without a word about it.
//! - A foreign page can point its own name at this machine (DNS rebinding): its requests have that
//!   name as `Host`.
//! - A foreign page can send requests here: they have its `Origin`, or say that they are cross-site.

use anyhow::Context as _;
use hyper::{
    HeaderMap, Request, StatusCode,
    header::{HOST, ORIGIN},
};
use rustix::rand::{GetRandomFlags, getrandom};

/// Random bytes of a token.
const TOKEN: usize = 16;

/// The address of a server, with its token.
pub(super) struct Gate {
    port: u16,
    token: String,
}

impl Gate {
    pub(super) fn new(port: u16) -> anyhow::Result<Self> {
        let mut bytes = [0; TOKEN];
        let read = getrandom(&mut bytes, GetRandomFlags::empty());
        let is_full = read.context("the kernel has no random numbers")? == TOKEN;
        anyhow::ensure!(is_full, "the kernel has too few random numbers");
        Ok(Self { port, token: bytes.iter().map(|byte| format!("{byte:02x}")).collect() })
    }

    /// Returns the address of the page.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Returns the path behind the token, or why there is no answer.
    pub(super) fn pass<'a, T>(
        &self,
        request: &'a Request<T>,
    ) -> Result<&'a str, (StatusCode, &'static str)> {
        let strange = (
            StatusCode::MISDIRECTED_REQUEST,
            "this is answered at 127.0.0.1, [::1] and localhost only, to its own page\n",
        );
        if request.uri().authority().is_some() || !self.is_from_here(request.headers()) {
            return Err(strange);
        }
        let path = request.uri().path().strip_prefix('/').unwrap_or_default();
        let (token, rest) = path.split_once('/').unwrap_or((path, ""));
        match is_same(token.as_bytes(), self.token.as_bytes()) {
            true => Ok(rest),
            false => Err((
                StatusCode::FORBIDDEN,
                "the address is not the one that `ctrace ui` printed\n",
            )),
        }
    }

    /// Returns the name before the port, which must be this server's.
    fn name_in<'a>(&self, host: &'a str) -> Option<&'a str> {
        let port = format!(":{}", self.port);
        host.strip_suffix(&*port).or((self.port == USUAL).then_some(host))
    }

    fn is_from_here(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|host| self.name_in(host.to_str().ok()?));
        let is_ours = host.is_some_and(|host| OURS.contains(&host));
        let origin = headers.get_all(ORIGIN).iter().all(|origin| {
            let origin = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
            let origin = origin.and_then(|origin| self.name_in(origin));
            origin.is_some() && origin == host
        });
        let site = headers.get_all("sec-fetch-site").iter();
        let mut site = site.map(|site| site.as_bytes());
        is_ours
            && hosts.next().is_none()
            && origin
            && site.all(|site| matches!(site, b"same-origin" | b"none"))
    }
}

/// The names under which this machine is asked.
const OURS: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];
/// The port that browsers leave out.
const USUAL: u16 = 80;

/// Compares in a time that tells nothing about the place of a difference.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differ = one.iter().zip(other).fold(0, |differ, (one, other)| differ | (one ^ other));
    one.len() == other.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_port_may_be_left_out_and_no_other() {
        let gate = |port| Gate { port, token: "t".to_owned() };
        let passes = |port, host: &str, origin: Option<&str>| {
            let request = Request::builder().uri("/t/main.js").header(HOST, host);
            let request = origin.into_iter().fold(request, |it, origin| it.header(ORIGIN, origin));
            gate(port).pass(&request.body(()).expect("a request")) == Ok("main.js")
        };
        for host in ["127.0.0.1", "localhost", "[::1]", "localhost:80"] {
            assert!(passes(80, host, None), "{host}");
            assert!(!passes(8080, host, None), "{host}");
        }
        assert!(passes(80, "localhost", Some("http://localhost")));
        assert!(passes(8080, "[::1]:8080", Some("http://[::1]:8080")));
        for (host, origin) in [
            ("localhost", "http://127.0.0.1"),
            ("localhost", "http://localhost:8080"),
            ("localhost", "http://evil.example"),
            ("evil.example", "http://evil.example"),
            ("evil.example:80", "http://evil.example"),
        ] {
            assert!(!passes(80, host, Some(origin)), "{host} {origin}");
        }
    }
}
