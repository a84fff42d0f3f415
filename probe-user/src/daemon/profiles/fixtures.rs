//! Makes a profile for tests, of an engine's report, and reads pprof with its own types.

use super::{
    Profiled, Push,
    profile::{Profile, ProfiledFunction, ProfiledPath},
};
use crate::daemon::{
    metrics::fixtures::{MS, event},
    post::Endpoint,
};
use ctrace_common::Kind;
use ctrace_core::{
    engine::{Engine, EngineConfig, ReportMeta},
    fleet::rows::Origin,
    function::FunctionInfo,
    units::{Nanos, Pid},
};
use flate2::read::GzDecoder;
use prost::Message;
use std::{io::Read as _, net::TcpListener};

/// A name that a target could have chosen to harm.
pub(super) const EVIL: &str = "evil\x1b]0;x\x07,}{\"\u{202e}";
/// The same as a receiver sees it.
pub(super) const HARMLESS: &str = "evil\\u{1b}]0;x\\u{7},}{\"\\u{202e}";
/// The beginning of the interval, in nanoseconds since 1970.
pub(super) const START: i64 = 1_700_000_000_123_456_789;

/// Makes the profile of an interval of 10 s with so many calls of `handle`, each with `query` inside, and
/// in that a function of an evil name: 60, 40 and 2 ms. One more call of `handle` is open.
pub(super) fn profiled(calls: u64) -> Profiled {
    let mut engine = Engine::new(EngineConfig::default());
    engine.add_function(FunctionInfo::new("handle", "web"));
    engine.add_function(FunctionInfo::new("query", "libdb.so"));
    engine.add_function(FunctionInfo::new(EVIL, "libdb.so"));
    engine.begin(Nanos::ZERO);
    for at in (0..calls).map(|call| 1 + call * 100) {
        for (kind, function, sp, after) in [
            (Kind::Enter, 0, 900, 0),
            (Kind::Enter, 1, 800, 5),
            (Kind::Enter, 2, 700, 6),
            (Kind::Return, 2, 700, 8),
            (Kind::Return, 1, 800, 45),
            (Kind::Return, 0, 900, 60),
        ] {
            engine.push(0, &event(kind, function, sp, at + after));
        }
    }
    engine.push(0, &event(Kind::Enter, 0, 900, calls * 100 + 50));
    engine.advance(Nanos(10_000 * MS));
    let mut report = engine.report(Nanos(10_000 * MS), ReportMeta::default());
    report.loss.events = 3;
    let build_id = |object: &str| (object == "web").then(|| "c0ffee".into());
    Profiled {
        profile: Profile::of(&report, &build_id),
        program: "/srv/we,b}\x1b".to_owned(),
        origin: Origin {
            start_ns: START,
            end_ns: START + 10_000 * MS as i64,
            target: "shop {1}".into(),
            pid: Pid(4711),
            version: Some("c0ffee".into()),
        },
    }
}

/// Makes the options to push to a listener.
pub(super) fn push(listener: &TcpListener) -> Push {
    let address = listener.local_addr().expect("it listens");
    Push {
        endpoint: Endpoint::parse(&format!("http://{address}/pre/"), (0, "/")).expect("an address"),
        headers: Vec::new(),
        token: None,
        labels: vec![("env".to_owned(), "test".to_owned())],
    }
}

/// Makes a profile of paths with their caller, calls and own time. Each has a function of its own.
pub(super) fn profile(paths: &[(Option<u32>, u64, u64)]) -> Profile {
    let function = |at: usize| ProfiledFunction {
        name: format!("f{at}").into(),
        object: None,
        file: None,
        line: 0,
    };
    let path =
        |(&(parent, calls, self_ns), function)| ProfiledPath { parent, function, calls, self_ns };
    Profile {
        functions: (0..paths.len()).map(function).collect(),
        paths: paths.iter().zip(0..).map(path).collect(),
        ..Profile::default()
    }
}

/// Makes a profile of 16,384 paths, which are up to 512 deep.
pub(super) fn deep() -> Profile {
    let paths = (0..16_384_u32).map(|at| match at % 512 {
        0 => (None, 1, 1_000_000),
        _ => (Some(at - 1), 1, u64::from(at)),
    });
    profile(&paths.collect::<Vec<_>>())
}

/// The parts of pprof's `Profile` that are used.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Pprof {
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<Pair>,
    #[prost(message, repeated, tag = "2")]
    pub(super) sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub(super) mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<Pair>,
    #[prost(string, repeated, tag = "6")]
    pub(super) string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub(super) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(super) duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub(super) period_type: Option<Pair>,
    #[prost(int64, tag = "12")]
    pub(super) period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub(super) comment: Vec<i64>,
}

/// A value's type, or a function's id and name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Pair {
    #[prost(int64, tag = "1")]
    pub(super) first: i64,
    #[prost(int64, tag = "2")]
    pub(super) second: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "5")]
    pub(super) filename: i64,
    #[prost(int64, tag = "6")]
    pub(super) build_id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) mapping_id: u64,
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Pair>,
}

/// Returns a gzipped file's bytes.
pub(super) fn unpacked(file: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).expect("it is gzipped");
    bytes
}

impl Pprof {
    pub(super) fn read(file: &[u8]) -> Self {
        Self::decode(&*unpacked(file)).expect("a profile")
    }

    pub(super) fn text(&self, at: i64) -> &str {
        &self.string_table[at as usize]
    }

    /// Returns the names of each stack, innermost first, with its values.
    pub(super) fn stacks(&self) -> Vec<(Vec<&str>, &[i64])> {
        let name = |id: &u64| {
            let location = &self.location[*id as usize - 1];
            assert_eq!(location.id, *id);
            let function = &self.function[location.line[0].first as usize - 1];
            assert_eq!(function.first, location.line[0].first);
            self.text(function.second)
        };
        let stack = |sample: &Sample| sample.location_id.iter().map(name).collect();
        self.sample.iter().map(|sample| (stack(sample), &*sample.value)).collect()
    }
}
