//! `[pprof]`: servers of profiles, to which pprof is pushed.

use super::{keys::Key, metrics::header, value::path};
use crate::daemon::{
    post::Endpoint,
    profiles::{Push, label_of},
};
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use std::{collections::HashSet, path::PathBuf};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pprof {
    pub pyroscope: Option<Endpoint>,
    pub parca: Option<Endpoint>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub token_file: Option<PathBuf>,
    pub labels: Vec<(String, String)>,
}

impl Pprof {
    /// Returns what is pushed to Pyroscope, and to Parca.
    pub(super) fn pushes(&self) -> [Option<Push>; 2] {
        [&self.pyroscope, &self.parca].map(|endpoint| {
            Some(Push {
                endpoint: endpoint.clone()?,
                headers: self.headers.clone(),
                token: self.token_file.clone(),
                labels: self.labels.clone(),
            })
        })
    }

    /// Checks combinations of keys that are valid one by one. A mistake has its key.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let unused = [
            ("headers", !self.headers.is_empty()),
            ("token_file", self.token_file.is_some()),
            ("labels", !self.labels.is_empty()),
        ];
        let unused = unused.into_iter().find(|(_, is_given)| *is_given);
        if let (Some((key, _)), None, None) = (unused, &self.pyroscope, &self.parca) {
            return Err((key, format!("`{key}` needs `pyroscope` or `parca`")));
        }
        let has_header = self.headers.iter().any(|(name, _)| name == AUTHORIZATION);
        if self.token_file.is_some() && has_header {
            return Err(("token_file", "there is Authorization in `headers` already".to_owned()));
        }
        let secret = match has_header {
            true => Some("headers"),
            false => self.token_file.as_ref().map(|_| "token_file"),
        };
        match (secret, &self.pyroscope, &self.parca) {
            (Some(key), Some(one), Some(other)) if !one.host.eq_ignore_ascii_case(&other.host) => {
                let what = format!(
                    "`{key}` would show the token of one host to the other ({} and {}); send to an agent \
                     on this machine, which knows both tokens",
                    one.host, other.host
                );
                Err((key, what))
            }
            _ => Ok(()),
        }
    }
}

/// The keys; `docs/profiles.md` explains them.
pub(crate) const PPROF: [Key<Pprof>; 5] = [
    Key::new(
        "pyroscope",
        r#""off""#,
        Some(r#""http://localhost:4040""#),
        "Push a profile of each interval of each target to Pyroscope at this address, or off.",
        |c, v| v.unless_off(|text| server(text, 4040)).map(|server| c.pyroscope = server),
    ),
    Key::new(
        "parca",
        r#""off""#,
        Some(r#""http://localhost:7070""#),
        "Push a profile of each interval of each target to Parca at this address, or off.",
        |c, v| v.unless_off(|text| server(text, 7070)).map(|server| c.parca = server),
    ),
    Key::new(
        "headers",
        "[]",
        Some(r#"["X-Scope-OrgID: shop"]"#),
        "Sent with each push.",
        |c, v| {
            let headers = v.texts()?.iter().map(|text| header(text)).collect::<Result<_, _>>();
            headers.map(|headers| c.headers = headers)
        },
    ),
    Key::new(
        "token_file",
        r#""off""#,
        Some(r#""/etc/ctrace/pprof.token""#),
        "A file with a token, read for each attempt, which is sent as `Authorization: Bearer`, or off.",
        |c, v| match v.unless_off(|_| Ok(()))? {
            None => Ok(c.token_file = None),
            Some(()) => path(v).map(|path| c.token_file = Some(path)),
        },
    ),
    Key::new(
        "labels",
        "[]",
        Some(r#"["env=production"]"#),
        "Labels of each profile, besides those of the process and its host.",
        |c, v| {
            c.labels = labels(&v.texts()?)?;
            Ok(())
        },
    ),
];

/// The limit of labels. With those of each profile they are within Pyroscope's limit of 30.
const LABELS: usize = 24;

fn labels(texts: &[String]) -> Result<Vec<(String, String)>, String> {
    let labels: Vec<_> = texts.iter().map(|text| label_of(text)).collect::<Result<_, _>>()?;
    if labels.len() > LABELS {
        return Err(format!("there are {}, and {LABELS} at most", labels.len()));
    }
    let mut names = HashSet::new();
    match labels.iter().find(|(name, _)| !names.insert(name)) {
        Some((name, _)) => Err(format!("`{name}` is there twice")),
        None => Ok(labels),
    }
}

/// Reads an address, whose path comes before those of requests.
fn server(text: &str, port: u16) -> Result<Endpoint, String> {
    let endpoint = Endpoint::parse(text, (port, "/")).map_err(|error| format!("{error:#}"))?;
    match endpoint.path.contains('?') {
        true => Err("an address without ? is needed".to_owned()),
        false => Ok(endpoint),
    }
}

#[cfg(test)]
mod tests {
    use crate::daemon::config::Config;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(&format!("[pprof]\n{text}\n")).map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn nothing_is_pushed_unless_asked_for() {
        let options = Config::parse("").expect("nothing is wrong").profiles();
        assert!(options.otlp.is_none() && options.pyroscope.is_none() && options.parca.is_none());
        let config = parse(
            "pyroscope = 'http://[::1]'\nparca = 'http://[::1]:9/parca/'\nlabels = 'env=a/b'\n\
             headers = ['A: b']\ntoken_file = '/t'",
        );
        let options = config.expect("nothing is wrong").profiles();
        let (pyroscope, parca) = (options.pyroscope.expect("on"), options.parca.expect("on"));
        assert_eq!((pyroscope.endpoint.port, parca.endpoint.port), (4040, 9));
        assert_eq!((pyroscope.headers.len(), parca.labels.len()), (1, 1));
        assert_eq!(parca.token.as_deref(), Some(std::path::Path::new("/t")));
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, why) in [
            ("pyroscope = 'https://a'", "2:13: pyroscope: `https://a`: `https://a`: no TLS"),
            ("parca = 'http://a/?x=y'", "without ?"),
            ("parca = true", "a text in quotes"),
            ("labels = 'env=a'", "2:1: `labels` needs `pyroscope` or `parca`"),
            ("token_file = '/t'", "`token_file` needs"),
            ("parca = 'http://a'\ntoken_file = 't'", "from the root"),
            ("parca = 'http://a'\nlabels = 'a=b,c'", "a value has"),
            (
                "parca = 'http://a'\ntoken_file = '/t'\nheaders = 'authorization: x'",
                "3:1: there is Authorization",
            ),
            (
                "parca = 'http://a'\nlabels = ['a=b', 'c=d', 'a=e']",
                "3:10: labels: `a` is there twice",
            ),
            ("parca = 'http://u:p@a'", "2:9: parca: "),
            ("parca = 'http://u:p@a'", "cannot have a user"),
            ("parca = 'http://a'\nheaders = 'Content-Length: 1'", "3:11: headers: "),
            (
                "parca = 'http://a'\npyroscope = 'http://b'\ntoken_file = '/t'",
                "4:1: `token_file` would show",
            ),
            (
                "parca = 'http://a'\npyroscope = 'http://b'\nheaders = 'authorization: x'",
                "4:1: `headers` would show",
            ),
            ("push = 'parca'", "there is no key `push`"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{error}");
        }
        let labels = |count: usize| {
            let labels: Vec<_> = (0..count).map(|at| format!("'a{at}=b'")).collect();
            parse(&format!("parca = 'http://a'\nlabels = [{}]", labels.join(",")))
        };
        assert!(labels(24).is_ok());
        assert!(labels(25).is_err_and(|error| error.contains("3:10: labels: there are 25")));
    }

    #[test]
    fn one_host_may_have_a_token_for_both() {
        let both = "parca = 'http://a:1'\npyroscope = 'http://A:2'\ntoken_file = '/t'";
        assert!(parse(both).is_ok());
    }
}
