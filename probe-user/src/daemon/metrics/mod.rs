//! Metrics of the daemon: what targets did since it started, for Prometheus and OTLP.
//!
//! ```text
//! session thread ── Snapshot ──▶ accumulator ──▶ families ──┬▶ text, protobuf ─▶ GET /metrics
//!                ◀── look ─────────────────────── scrape ◀──┴▶ otlp ──────────▶ POST /v1/metrics
//! ```
//!
//! Sessions hand in their snapshots on their own threads; whoever wants to know what there is asks
//! each for its present interval first. `docs/metrics.md` tells of each metric.

pub mod accumulator;
#[cfg(test)]
mod accumulator_tests;
mod amounts;
pub mod catalog;
#[cfg(test)]
mod docs_tests;
pub mod family;
#[cfg(test)]
pub(super) mod fixtures;
mod health;
mod hosts;
mod http;
pub mod hub;
pub mod latency;
pub mod listen;
pub mod metric;
pub(super) mod names;
pub mod otlp;
pub mod protobuf;
mod series;
pub mod service;
#[cfg(test)]
mod service_tests;
pub mod target;
pub mod text;
#[cfg(test)]
mod text_tests;
