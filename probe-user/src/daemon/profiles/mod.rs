//! Sends a profile of each interval to who keeps profiles: by OTLP, or as pprof to Pyroscope and Parca.
//!
//! ```text
//! session thread ── Profiled ──┬▶ thread of OTLP ─────▶ POST /v1development/profiles
//!                              ├▶ thread of Pyroscope ▶ POST /ingest
//!                              └▶ thread of Parca ────▶ POST /api/profiles/writeraw
//! ```
//!
//! A session hands over the sums of each call path ([`profile`]), within bounds ([`fold`]). Each
//! receiver has a thread of its own, which makes the request ([`way`]), sends it ([`sender`]) and tells
//! of failures ([`trouble`]). Nothing waits for a receiver: profiles without room, or not accepted in
//! time, are counted. `docs/profiles.md` has more.

mod base64;
#[cfg(test)]
mod fixtures;
mod fold;
mod labels;
mod otlp;
mod parca;
mod pprof;
pub(crate) mod profile;
mod pyroscope;
#[cfg(test)]
mod receiver_tests;
mod sender;
mod table;
mod trouble;
mod way;

pub(crate) use labels::label_of;
pub(crate) use way::Push;

use super::{
    metrics::{hub::MetricsHub, otlp::Receiver},
    post::queue::Ending,
};
use ctrace_core::fleet::rows::Origin;
use profile::Profile;
use sender::Sender;
use std::{io, sync::Arc};
use way::Way;

/// The receivers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub otlp: Option<Receiver>,
    pub pyroscope: Option<Push>,
    pub parca: Option<Push>,
}

/// The profile of an interval of a process.
#[derive(Debug)]
pub(crate) struct Profiled {
    pub origin: Origin,
    /// The path of the program.
    pub program: String,
    pub profile: Profile,
}

/// The ways to all receivers.
pub(crate) struct Profiles {
    senders: Vec<Sender>,
}

impl Profiles {
    /// Starts a thread for each receiver. Returns `None` if there is none.
    pub(crate) fn start(options: Options, metrics: &MetricsHub) -> io::Result<Option<Self>> {
        let ways = [
            options.otlp.map(Way::otlp),
            options.pyroscope.map(Way::Pyroscope),
            options.parca.map(Way::Parca),
        ];
        let ways = ways.into_iter().flatten();
        let senders: Vec<_> =
            ways.map(|way| Sender::start(way, metrics)).collect::<io::Result<_>>()?;
        Ok((!senders.is_empty()).then_some(Self { senders }))
    }

    /// Takes a profile and returns at once. One without samples is left out.
    pub(crate) fn put(&self, profiled: Profiled) {
        if profiled.profile.is_empty() {
            return;
        }
        let profiled = Arc::new(profiled);
        self.senders.iter().for_each(|sender| sender.put(&profiled));
    }

    /// Takes no more profiles. What waits is sent or given up.
    pub(crate) fn close(&self) -> Vec<Ending> {
        self.senders.iter().filter_map(Sender::close).collect()
    }
}
