//! The daemon's metrics since its start, for Prometheus and OTLP.
//!
//! ```text
//! session thread ── Snapshot ──▶ accumulator ──▶ families ──┬▶ text, protobuf ─▶ GET /metrics
//!                ◀── look ─────────────────────── scrape ◀──┴▶ otlp ──────────▶ POST /v1/metrics
//! ```
//!
//! Sessions hand in their snapshots on their own threads. A reader first asks each session for its
//! current interval. `docs/metrics.md` describes each metric.

pub(crate) mod accumulator;
#[cfg(test)]
mod accumulator_tests;
mod amounts;
pub(crate) mod by_value;
pub(crate) mod catalog;
#[cfg(test)]
mod docs_tests;
pub(crate) mod family;
#[cfg(test)]
pub(super) mod fixtures;
mod health;
mod hosts;
mod http;
pub(crate) mod hub;
pub(crate) mod latency;
pub(crate) mod listen;
pub(crate) mod metric;
pub(super) mod names;
pub(crate) mod otlp;
pub(crate) mod plots;
pub(crate) mod protobuf;
mod series;
pub(crate) mod service;
#[cfg(test)]
mod service_tests;
pub(crate) mod target;
pub(crate) mod text;
#[cfg(test)]
mod text_tests;
