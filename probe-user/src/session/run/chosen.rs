//! The running processes that a command line chose. The first of them is the target.

use super::{
    event_loop::{self, Watched},
    later::Later,
    setup::Setup,
};
use crate::{
    session::{keep::output::Output, spec::TraceSpec},
    target::process::{Process, maps::MappedObject},
};
use ctrace_core::units::Pid;
use std::fs::File;

/// Processes to trace together.
pub(crate) struct Chosen {
    pub(crate) first: First,
    /// Others that run already.
    pub(crate) others: Vec<Process>,
    /// Finds those that come later, if they are wanted.
    pub(crate) later: Option<Later>,
}

/// A process that was alive when what it has mapped was read.
pub(crate) struct First {
    pub(crate) process: Process,
    pub(crate) objects: Vec<MappedObject>,
    pub(crate) watched: Watched,
    /// The files that a plan needs as long as its probes are in place.
    pub(crate) files: Vec<File>,
}

impl First {
    pub(crate) fn look(process: Process) -> anyhow::Result<Self> {
        let watched = event_loop::watch(Pid(process.pid()))?;
        Ok(Self { objects: process.objects()?, process, watched, files: Vec::new() })
    }
}

impl Chosen {
    /// Plans the probes. Where later processes are wanted, another one becomes the first if it ends
    /// meanwhile, and its end later stands against nothing.
    pub(crate) fn plan<'a>(
        &mut self,
        spec: &'a TraceSpec,
        output: &Output,
    ) -> anyhow::Result<Setup<'a>> {
        loop {
            let planned = Setup::plan(spec, &self.first.objects, output).and_then(|mut setup| {
                if self.later.is_some() {
                    setup.plan.find_again(&self.first.process)?;
                    self.first.files = setup.plan.hold()?;
                }
                Ok(setup)
            });
            if planned.is_ok() || Process::is_running(self.first.process.pid()) {
                return planned;
            }
            match self.next_first() {
                Some(next) => self.first = next,
                None => return planned,
            }
        }
    }

    fn next_first(&mut self) -> Option<First> {
        let later = self.later.as_mut()?;
        let others = std::iter::from_fn(|| self.others.pop());
        let mut running = others.filter_map(|other| First::look(other).ok());
        running.next().or_else(|| later.first())
    }
}
