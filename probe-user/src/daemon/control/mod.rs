//! The control socket: what `ctrace ctl` and other programs may ask of a running daemon, a line of
//! JSON each way. `docs/daemon.md` describes it for others.

pub(crate) mod client;
mod patience;
mod peer;
mod server;
mod underway;

pub(crate) use server::{Listener, Request};

use crate::{
    daemon::{SessionId, config::TargetName, looks::Looks},
    session::keep::live::Command,
};
use ctrace_core::units::{Nanos, Pid};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;

/// Of the protocol: keys are only ever added within one.
pub(crate) const VERSION: u32 = 1;

/// A line from the asker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub v: u32,
    #[serde(flatten)]
    pub ask: Ask,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Ask {
    /// The daemon itself.
    Status,
    /// All targets and their processes.
    Targets,
    /// Trace this process: as the target says, or else what is chosen here.
    Attach {
        pid: u32,
        #[serde(default)]
        target: Option<String>,
        #[serde(flatten)]
        choice: Choice,
    },
    /// Let go of a process, or of all of a target, until told otherwise.
    Detach {
        #[serde(flatten)]
        whom: Whom,
    },
    /// The interval so far.
    Report {
        #[serde(flatten)]
        whom: Whom,
        /// As text for people.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        table: bool,
        /// With all that somebody needs who asks again and again to tell what happened between.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        full: bool,
        /// With `full`: up to when the asker knows all. Intervals that ended later are told, too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since_ns: Option<Nanos>,
    },
    /// Read the configuration again.
    Reload,
    /// Every call for a while, into a file of the daemon's folder.
    Record {
        #[serde(flatten)]
        whom: Whom,
        seconds: f64,
    },
}

/// What to trace of a process.
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
    /// Whether a process of a target is meant.
    pub(crate) fn is(&self, target: &TargetName, pid: Pid) -> bool {
        self.target.as_ref().is_none_or(|name| *target.0 == **name)
            && self.pid.is_none_or(|meant| pid.0 == meant)
    }
}

/// A line back.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub v: u32,
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What was asked for.
    #[serde(flatten)]
    pub what: serde_json::Map<String, serde_json::Value>,
}

impl Reply {
    pub(crate) fn error(what: impl Into<String>) -> Self {
        let error = Some(what.into());
        Self { v: VERSION, ok: false, error, what: serde_json::Map::new() }
    }

    /// `value` is an object.
    pub(crate) fn ok(value: serde_json::Value) -> Self {
        let what = match value {
            serde_json::Value::Object(what) => what,
            _ => serde_json::Map::new(),
        };
        Self { v: VERSION, ok: true, error: None, what }
    }
}

/// What the supervisor answers.
pub(crate) enum Answer {
    Now(Reply),
    /// The asker deals with these sessions itself.
    Sessions(Vec<Handle>),
}

/// A session, to somebody who wants something of it.
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
        let ask = |text: &str| serde_json::from_str::<Line>(text).map(|line| line.ask).ok();
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
            serde_json::to_string(&Line { v: VERSION, ask }).unwrap()
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
