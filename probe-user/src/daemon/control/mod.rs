//! The control socket: answers `ctrace ctl` and other programs, with one line of JSON each way.
//! `docs/daemon.md` describes the protocol.

pub(crate) mod client;
mod gone;
mod patience;
mod peer;
mod server;
mod underway;

pub(crate) use server::{ControlRequest, Listener};

use crate::{
    daemon::{
        ids::{SessionId, TargetName},
        looks::Looks,
    },
    session::keep::live::Command,
};
use ctrace_core::units::{Nanos, Pid};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;

/// The version of the protocol. Within one, keys are only added.
pub(crate) const VERSION: u32 = 1;

/// A request line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RequestLine {
    pub v: u32,
    #[serde(flatten)]
    pub ask: Ask,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Ask {
    /// Return the daemon's state.
    Status,
    /// Return all targets and their processes.
    Targets,
    /// Trace this process, by its target or as chosen here.
    Attach {
        pid: u32,
        #[serde(default)]
        target: Option<String>,
        #[serde(flatten)]
        choice: Choice,
    },
    /// Stop tracing a process, or all of a target, until told otherwise.
    Detach {
        #[serde(flatten)]
        whom: Whom,
    },
    /// Return the current interval so far.
    Report {
        #[serde(flatten)]
        whom: Whom,
        /// Return text for people.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        table: bool,
        /// Include all that a client needs to compute the difference of two answers.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        full: bool,
        /// With `full`: the time up to which the client knows all. Adds intervals that ended later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since_ns: Option<Nanos>,
    },
    /// Read the configuration again.
    Reload,
    /// Record every call for a while, into a file of the daemon's folder.
    Record {
        #[serde(flatten)]
        whom: Whom,
        seconds: f64,
    },
}

/// The selection for a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Choice {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usdt: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

impl Choice {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A target, one of its processes, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Whom {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

impl Whom {
    /// Returns whether a process of a target is meant.
    pub(crate) fn is(&self, target: &TargetName, pid: Pid) -> bool {
        self.target.as_ref().is_none_or(|name| *target.0 == **name)
            && self.pid.is_none_or(|meant| pid.0 == meant)
    }
}

/// An answer line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub v: u32,
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The requested data.
    #[serde(flatten)]
    pub what: serde_json::Map<String, serde_json::Value>,
}

impl Reply {
    pub(crate) fn error(what: impl Into<String>) -> Self {
        let error = Some(what.into());
        Self { v: VERSION, ok: false, error, what: serde_json::Map::new() }
    }

    /// Makes an answer of `value`, which must be an object.
    pub(crate) fn ok(value: serde_json::Value) -> Self {
        let what = match value {
            serde_json::Value::Object(what) => what,
            _ => serde_json::Map::new(),
        };
        Self { v: VERSION, ok: true, error: None, what }
    }
}

/// The supervisor's answer.
pub(crate) enum ControlAnswer {
    Now(Reply),
    /// Sessions with which the connection's thread goes on itself.
    Sessions(Vec<Handle>),
}

/// A session, for requests to it.
pub(crate) struct Handle {
    pub id: SessionId,
    pub pid: Pid,
    pub target: std::sync::Arc<crate::daemon::config::Target>,
    pub commands: UnboundedSender<Command>,
    pub looks: std::sync::Arc<Looks>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_documented() {
        let ask = |text: &str| serde_json::from_str::<RequestLine>(text).map(|line| line.ask).ok();
        assert_eq!(ask(r#"{"v":1,"do":"status"}"#), Some(Ask::Status));
        let whom = Whom { target: Some("web".into()), pid: None };
        assert_eq!(
            ask(r#"{"v":1,"do":"record","target":"web","seconds":2}"#),
            Some(Ask::Record { whom, seconds: 2.0 })
        );
        let choice = Choice { functions: vec!["f*".into()], ..Choice::default() };
        assert_eq!(
            ask(r#"{"v":1,"do":"attach","pid":7,"functions":["f*"]}"#),
            Some(Ask::Attach { pid: 7, target: None, choice })
        );
        assert_eq!(ask(r#"{"v":1,"do":"dance"}"#), None);
        let whom = Whom { target: None, pid: Some(4711) };
        let report = |full, since_ns| {
            let ask = Ask::Report { whom: whom.clone(), table: false, full, since_ns };
            serde_json::to_string(&RequestLine { v: VERSION, ask }).unwrap()
        };
        assert_eq!(report(false, None), r#"{"v":1,"do":"report","pid":4711}"#);
        assert_eq!(
            report(true, Some(Nanos(5))),
            r#"{"v":1,"do":"report","pid":4711,"full":true,"since_ns":5}"#
        );
        let reply = serde_json::to_string(&Reply::error("no")).unwrap();
        assert_eq!(reply, r#"{"v":1,"ok":false,"error":"no"}"#);
    }
}
