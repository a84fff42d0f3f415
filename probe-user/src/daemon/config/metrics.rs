//! `[metrics]`: the readers and receivers of metrics.

use super::keys::{Key, at_least_one, group};
use crate::{
    daemon::{
        metrics::{
            accumulator::Bounds,
            latency::Edges,
            listen::Listen,
            otlp::{self, Receiver, Resource},
            service::Options,
        },
        post::Endpoint,
        spans,
    },
    values,
};
use hyper::header::{
    CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Metrics {
    pub listen: Option<Listen>,
    /// The group that may use the socket besides root.
    pub group: Option<u32>,
    /// Names under which the address may be asked.
    pub hosts: Vec<String>,
    /// The number of functions of each target with their own series.
    pub functions: u32,
    pub edges: Edges,
    pub otlp: Option<Endpoint>,
    pub otlp_interval: Duration,
    pub otlp_spans: Option<Endpoint>,
    /// The limit of exported slow calls a minute.
    pub otlp_spans_most: u32,
    pub otlp_profiles: Option<Endpoint>,
    pub otlp_headers: Vec<(HeaderName, HeaderValue)>,
    pub otlp_attributes: Vec<(String, String)>,
}

impl Metrics {
    pub(crate) fn is_wanted(&self) -> bool {
        self.listen.is_some() || self.otlp.is_some()
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { functions: self.functions as usize, edges: self.edges.clone() }
    }

    pub(crate) fn service(&self) -> Options {
        let otlp = self.otlp.as_ref().map(|endpoint| otlp::Options {
            receiver: self.receiver(endpoint),
            interval: self.otlp_interval,
        });
        Options { listen: self.listen.clone(), group: self.group, hosts: self.hosts.clone(), otlp }
    }

    /// Returns the options for exporting slow calls, if that is on.
    pub(crate) fn spans(&self) -> Option<spans::Options> {
        let endpoint = self.otlp_spans.as_ref()?;
        Some(spans::Options { receiver: self.receiver(endpoint), a_minute: self.otlp_spans_most })
    }

    /// Returns the receiver of profiles, if there is one.
    pub(super) fn profiles(&self) -> Option<Receiver> {
        self.otlp_profiles.as_ref().map(|endpoint| self.receiver(endpoint))
    }

    fn receiver(&self, endpoint: &Endpoint) -> Receiver {
        Receiver {
            endpoint: endpoint.clone(),
            headers: self.otlp_headers.clone(),
            resource: Resource { more: self.otlp_attributes.clone() },
        }
    }
}

/// The keys; `docs/metrics.md` explains them.
pub(crate) const METRICS: [Key<Metrics>; 12] = [
    Key::new(
        "listen",
        r#""127.0.0.1:9779""#,
        Some(r#""unix:/run/ctrace/metrics.sock""#),
        "Where Prometheus scrapes /metrics: an address with its port, unix: with the path of a \
         socket, or off.",
        |c, v| v.unless_off(Listen::parse).map(|listen| c.listen = listen),
    ),
    Key::new(
        "group",
        r#""""#,
        Some(r#""prometheus""#),
        "A group, by name or number, whose members may use that socket; root always may.",
        |c, v| v.parsed(group).map(|group| c.group = group),
    ),
    Key::new(
        "hosts",
        "[]",
        Some(r#"["metrics.example.org"]"#),
        "Names by which that address may be asked, besides localhost, this machine's name, and \
         addresses.",
        |c, v| v.texts().map(|hosts| c.hosts = hosts),
    ),
    Key::new(
        "functions",
        "300",
        None,
        "Functions of each target with series of their own; all others share one series.",
        |c, v| at_least_one(v).map(|functions| c.functions = functions),
    ),
    Key::new(
        "buckets",
        "[]",
        Some(r#"["100us", "1ms", "10ms", "100ms", "1s"]"#),
        "Upper edges of the buckets of histograms; none: 1, 2 and 5 of each decade, 1us to 100s.",
        |c, v| {
            let edges: Vec<_> =
                v.texts()?.iter().map(|text| values::nanos(text)).collect::<Result<_, _>>()?;
            let made = if edges.is_empty() { Ok(Edges::default()) } else { Edges::new(edges) };
            c.edges = made.map_err(|error| error.to_string())?;
            Ok(())
        },
    ),
    Key::new(
        "otlp",
        r#""off""#,
        Some(r#""http://localhost:4318""#),
        "Export by OTLP to this address as well.",
        |c, v| v.unless_off(|text| endpoint(text, "/v1/metrics")).map(|endpoint| c.otlp = endpoint),
    ),
    Key::new("otlp_interval", r#""60s""#, None, "Between exports.", |c, v| {
        v.parsed(values::seconds).map(|interval| c.otlp_interval = interval)
    }),
    Key::new(
        "otlp_spans",
        r#""off""#,
        Some(r#""http://localhost:4318""#),
        "Export the slow calls of targets with `slow` as spans to this address.",
        |c, v| {
            v.unless_off(|text| endpoint(text, "/v1/traces"))
                .map(|endpoint| c.otlp_spans = endpoint)
        },
    ),
    Key::new(
        "otlp_spans_most",
        "60",
        None,
        "Slow calls to export in a minute; further ones are counted.",
        |c, v| at_least_one(v).map(|most| c.otlp_spans_most = most),
    ),
    Key::new(
        "otlp_profiles",
        r#""off""#,
        Some(r#""http://localhost:4318""#),
        "Export a profile of each interval of each target to this address.",
        |c, v| {
            v.unless_off(|text| endpoint(text, "/v1development/profiles"))
                .map(|endpoint| c.otlp_profiles = endpoint)
        },
    ),
    Key::new(
        "otlp_headers",
        "[]",
        Some(r#"["X-Scope-OrgID: shop"]"#),
        "Sent with each export.",
        |c, v| {
            let headers = v.texts()?.iter().map(|text| header(text)).collect::<Result<_, _>>();
            headers.map(|headers| c.otlp_headers = headers)
        },
    ),
    Key::new(
        "otlp_attributes",
        "[]",
        Some(r#"["deployment.environment=production"]"#),
        "Attributes of the exporting resource, besides those of the process and its host.",
        |c, v| {
            let all = v.texts()?.iter().map(|text| attribute(text)).collect::<Result<_, _>>();
            all.map(|attributes| c.otlp_attributes = attributes)
        },
    ),
];

fn endpoint(text: &str, path: &str) -> Result<Endpoint, String> {
    Endpoint::parse(text, (4318, path)).map_err(|error| format!("{error:#}"))
}

/// Headers of every request.
const OURS: [HeaderName; 4] = [CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING];

pub(super) fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let parts = text
        .split_once(':')
        .and_then(|(name, value)| Some((name.trim().parse().ok()?, value.trim().parse().ok()?)));
    let (name, value) =
        parts.ok_or_else(|| format!("`{text}`: a header is needed, as `Name: value`"))?;
    match OURS.contains(&name) {
        true => Err(format!("`{name}` is a header that ctrace sends")),
        false => Ok((name, value)),
    }
}

fn attribute(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let parts = parts.ok_or_else(|| format!("`{text}`: key=value is needed"))?;
    Ok((parts.0.to_owned(), parts.1.to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::daemon::{config::Config, metrics::listen::Listen};

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(&format!("[metrics]\n{text}\n")).map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn only_this_machine_can_ask_unless_told_otherwise() {
        let metrics = parse("").expect("nothing is wrong").metrics;
        let is_local = |listen: &Listen| match listen {
            Listen::Address(address) => address.ip().is_loopback(),
            Listen::Socket(_) => true,
        };
        assert!(metrics.listen.as_ref().is_some_and(is_local));
        assert_eq!(metrics, Config::parse("").expect("nothing is wrong").metrics);
        assert!(metrics.service().otlp.is_none() && metrics.spans().is_none());
        assert_eq!(metrics.bounds().edges, Default::default());
    }

    #[test]
    fn everything_can_be_said() {
        let metrics = parse(
            "listen = 'off'\nbuckets = ['1ms', '1s']\nfunctions = 5\notlp = 'http://[::1]:9'\n\
             otlp_headers = ['A: b: c']\notlp_attributes = ['k=v=w', 'e=']\notlp_interval = '5s'\n\
             otlp_spans = 'http://[::1]:9'\notlp_spans_most = 7\notlp_profiles = 'http://[::1]:8/p'",
        );
        let metrics = metrics.expect("nothing is wrong").metrics;
        assert!(metrics.is_wanted() && metrics.listen.is_none());
        assert_eq!((metrics.edges.iter().count(), metrics.bounds().functions), (2, 5));
        assert_eq!(metrics.otlp_headers[0].1, "b: c");
        assert_eq!(metrics.otlp_attributes[0].1, "v=w");
        let spans = metrics.spans().expect("they are wanted");
        assert_eq!((spans.a_minute, &*spans.receiver.endpoint.path), (7, "/v1/traces"));
        let profiles = metrics.profiles().expect("they are wanted");
        assert_eq!((profiles.endpoint.port, &*profiles.endpoint.path), (8, "/p"));
        assert!(!parse("listen = 'off'").expect("nothing is wrong").metrics.is_wanted());
        let metrics = parse("listen = 'unix:/run/m'\ngroup = '77'\nhosts = ['a.b', 'c']");
        let options = metrics.expect("nothing is wrong").metrics.service();
        assert_eq!(options.listen, Some(Listen::Socket("/run/m".into())));
        assert_eq!((options.group, options.hosts.len()), (Some(77), 2));
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, why) in [
            ("listen = '9779'", "2:10: listen: `9779`: an address"),
            ("listen = 'unix:m'", "unix:/run"),
            ("group = 'no such group'", "no group"),
            ("otlp = 'https://a'", "TLS"),
            ("otlp_spans = 'a:1'", "http://"),
            ("otlp_spans_most = 0", "at least 1"),
            ("otlp_profiles = 'https://a'", "TLS"),
            ("otlp_profiles = true", "a text in quotes"),
            ("buckets = ['1s', '1ms']", "ascend"),
            ("functions = 0", "at least 1"),
            ("otlp_headers = ['a b: c']", "header"),
            (
                "otlp_headers = ['host: c']",
                "2:16: otlp_headers: `host` is a header that ctrace sends",
            ),
            ("otlp = 'http://user@a'", "cannot have a user"),
            ("otlp_attributes = '=c'", "key=value"),
            ("listn = 'off'", "the nearest is `listen`"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{error}");
        }
    }
}
