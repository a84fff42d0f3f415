//! Reports processes that start: executed programs, and children of chosen processes.

use super::control::Control;
use crate::bpf::{
    BpfError, Config, LostCounter, News,
    load::{
        object,
        programs::{BpfProgram, Programs},
        settings::{Settings, load_maps},
    },
    machine::cpus::Cpus,
    rings::layout::RingLayout,
};
use ctrace_common::{PAGE_LEN, TRACED};
use ctrace_core::units::Pid;
use std::os::fd::{AsFd as _, OwnedFd};

/// Bytes for ids that wait to be read.
const NEWS_BYTES: u32 = 64 << 10;

/// The watching programs. Dropping this stops them.
pub(crate) struct Starts {
    control: Control,
    news: News,
    lost: LostCounter,
    lost_before: u64,
}

impl Starts {
    pub(crate) fn watch() -> Result<Self, BpfError> {
        let cpus = Cpus::read()?;
        let config = Config {
            ring_bytes: PAGE_LEN as u32,
            follow: true,
            admits: 0,
            launches: false,
            markers: false,
            values: false,
            python: false,
            conditions: false,
            guards: false,
            waits: false,
            wakers: false,
            counted: None,
            thrift: None,
        };
        let layout = RingLayout::new(1, config.ring_bytes)?;
        let mut maps = load_maps(&Settings {
            config: &config,
            layout,
            first_pages: &layout.first_pages(&[0]),
            filter: true,
            news_bytes: NEWS_BYTES,
        })?;
        let programs = Programs::parse(object::bytes()?, &maps.fds())?;
        let lost = LostCounter::new(maps.fd("LOST")?, cpus.possible as usize);
        let traced = maps.fd("TRACED")?;
        let control = Control::attach_to(
            &programs,
            traced,
            &[
                (BpfProgram::Start, c"sched_process_exec", "sched_process_exec"),
                (BpfProgram::Birth, c"sched_process_fork", "sched_process_fork"),
            ],
        )?;
        Ok(Self { control, news: News::take(&mut maps)?, lost, lost_before: 0 })
    }

    /// Returns a descriptor that becomes readable at a start.
    pub(crate) fn readable(&self) -> Result<OwnedFd, BpfError> {
        let fd = self.news.as_fd().try_clone_to_owned();
        fd.map_err(|source| BpfError::Create { what: "a file descriptor".into(), source })
    }

    /// Also reports children of this process.
    pub(crate) fn tell_children_of(&self, pid: Pid) -> Result<(), BpfError> {
        self.control.trace(pid.0, TRACED)
    }

    /// Stops reporting children of a process.
    pub(crate) fn forget(&self, pid: Pid) {
        self.control.forget(pid.0);
    }

    /// Takes the new starts. Returns `false` if some found no room.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(Pid)) -> bool {
        self.news.drain(|pid| each(Pid(pid)));
        let lost = self.lost.read().map_or(self.lost_before, |lost| lost.events);
        std::mem::replace(&mut self.lost_before, lost) == lost
    }
}
