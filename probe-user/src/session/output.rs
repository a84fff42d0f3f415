//! Where what a session finds out goes: into reports, or into a recording.

use super::{
    recording::Recording,
    sink::{Default, Sink, check_live},
};
use crate::cli::OutputArgs;
use std::time::Duration;

pub enum Output {
    Reports(Reports),
    Recording(Box<Recording>),
}

/// Reports, and what they are made with.
pub struct Reports {
    pub sink: Sink,
    pub center_cut: f64,
    pub interval: Option<Duration>,
    pub cumulative: bool,
}

impl Reports {
    /// Checks what was asked for, before anything is attached.
    pub fn open(args: &OutputArgs, default: Default) -> anyhow::Result<Self> {
        check_live(args)?;
        Ok(Self {
            sink: Sink::open(args, default)?,
            center_cut: args.center,
            interval: args.interval,
            cumulative: args.cumulative,
        })
    }
}

impl Output {
    pub fn is_recording(&self) -> bool {
        matches!(self, Self::Recording(_))
    }

    /// Between reports.
    pub fn interval(&self) -> Option<Duration> {
        match self {
            Self::Reports(reports) => reports.interval,
            Self::Recording(_) => None,
        }
    }

    /// Bytes of the recording so far, if it is one.
    pub fn written(&self) -> Option<u64> {
        match self {
            Self::Reports(_) => None,
            Self::Recording(recording) => Some(recording.written()),
        }
    }
}
