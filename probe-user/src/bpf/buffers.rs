//! The marker buffers that the program on the end of threads looks for. A buffer that is made while
//! tracing is entered by the programs; those that were there before are entered here.

use super::{BpfError, sys};
use ctrace_common::BUFFERS_PER_THREAD;
use ctrace_core::units::Tid;
use std::{
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
};

pub(super) struct Buffers {
    map: Arc<OwnedFd>,
}

impl Buffers {
    pub(super) fn new(map: Arc<OwnedFd>) -> Self {
        Self { map }
    }

    /// Enters the buffers of a thread, as many as there is room for.
    pub(super) fn set(&self, tid: Tid, addresses: &[u64]) -> Result<(), BpfError> {
        for (number, address) in (0..BUFFERS_PER_THREAD).zip(addresses) {
            let key = u64::from(tid.0) << 32 | u64::from(number);
            sys::map_update(self.map.as_fd(), key, &address.to_ne_bytes())
                .map_err(|source| BpfError::Map { what: "marker buffers", source })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::sys::{Syscall, fake},
        *,
    };
    use std::{cell::RefCell, fs::File, rc::Rc};

    fn buffers() -> Buffers {
        Buffers::new(Arc::new(File::open("/dev/null").unwrap().into()))
    }

    #[test]
    fn a_threads_buffers_are_numbered() {
        let keys = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&keys);
        let _fake = fake::Fake::new(move |call| {
            let Syscall::Bpf { attr, .. } = call else { panic!("no map") };
            // SAFETY: the caller's key.
            seen.borrow_mut().push(unsafe { *(attr.get_u64(8) as *const u64) });
            Ok(0)
        });
        buffers().set(Tid(7), &[0x1000, 0x2000]).unwrap();
        assert_eq!(*keys.borrow(), [7 << 32, 7 << 32 | 1]);
        buffers().set(Tid(8), &[0; 20]).unwrap();
        assert_eq!(keys.borrow().len(), 2 + BUFFERS_PER_THREAD as usize);
    }

    #[test]
    fn a_refusal_is_told() {
        let _fake = fake::Fake::failing(libc::E2BIG);
        assert!(matches!(buffers().set(Tid(1), &[1]), Err(BpfError::Map { .. })));
    }
}
