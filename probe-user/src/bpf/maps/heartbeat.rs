//! Tells the eBPF programs that this process runs. They hold a command at a program's start only
//! while somebody can continue it. A process in a long write cannot.

use crate::bpf::{BpfError, sys::Mapping};
use crate::writing;
use ctrace_common::{HEARTBEAT_NANOS, PAGE_LEN};
use std::{
    os::fd::{AsRawFd as _, OwnedFd},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    time::Duration,
};

/// Time between two beats. Several may be late before the programs stop holding.
const PAUSE: Duration = Duration::from_nanos(HEARTBEAT_NANOS / 8);

/// Beats from its start on, while it lives and the loop is in no long write.
pub(crate) struct Heartbeat {
    map: Arc<OwnedFd>,
    beating: OnceLock<Sender<()>>,
}

impl Heartbeat {
    pub(crate) fn new(map: Arc<OwnedFd>) -> Self {
        Self { map, beating: OnceLock::new() }
    }

    pub(crate) fn start(&self) -> Result<(), BpfError> {
        let what = "the heartbeat";
        let mapping = Mapping::new(self.map.as_raw_fd(), PAGE_LEN, 0)
            .map_err(|source| BpfError::Map { what, source })?;
        beat(&mapping);
        let (sender, end) = channel::<()>();
        std::thread::Builder::new()
            .name("heartbeat".into())
            .stack_size(64 << 10)
            .spawn(move || {
                while end.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                    if writing::time() <= writing::LONG {
                        beat(&mapping);
                    }
                }
            })
            .map_err(|source| BpfError::Map { what, source })?;
        // A second start has no effect.
        let _ = self.beating.set(sender);
        Ok(())
    }
}

fn beat(mapping: &Mapping) {
    // SAFETY: the mapping is a page that begins with this word, which others only read.
    let word = unsafe { AtomicU64::from_ptr(mapping.address().cast()) };
    word.store(crate::bpf::now().0, Ordering::Relaxed);
}
