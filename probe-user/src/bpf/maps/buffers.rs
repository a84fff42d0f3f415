//! The marker buffers that the program for ended threads reads, and the batches that were dropped.
//! The programs enter buffers that are made while tracing. This module enters older ones.

use crate::bpf::{BpfError, sys};
use ctrace_common::{BUFFERS_PER_THREAD, BufferKey};
use ctrace_core::{
    marker::BufferId,
    units::{Pid, Tid},
};
use std::{
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
};

pub(crate) struct Buffers {
    of_threads: Arc<OwnedFd>,
    cut_off: Arc<OwnedFd>,
}

impl Buffers {
    pub(crate) fn new(of_threads: Arc<OwnedFd>, cut_off: Arc<OwnedFd>) -> Self {
        Self { of_threads, cut_off }
    }

    /// Enters the buffers of a thread, as far as there is room. `inside` is its id in its own pid
    /// namespace.
    pub(crate) fn set(&self, tid: Tid, inside: u32, addresses: &[u64]) -> Result<(), BpfError> {
        for (number, address) in (0..BUFFERS_PER_THREAD).zip(addresses) {
            let key = u64::from(tid.0) << 32 | u64::from(number);
            // The bytes of a `ThreadBuffer`.
            let mut value = [0; 16];
            value[..8].copy_from_slice(&address.to_ne_bytes());
            value[8..].copy_from_slice(&u64::from(inside).to_ne_bytes());
            sys::map_update(self.of_threads.as_fd(), key, &value)
                .map_err(|source| BpfError::Map { what: "marker buffers", source })?;
        }
        Ok(())
    }

    /// Takes up to `most` buffers with batches dropped since the last call, and the number of
    /// events up to the last of them. A target may drop batches faster than they are taken.
    pub(crate) fn take_cut_off(&self, most: usize) -> Result<Vec<(BufferId, u64)>, BpfError> {
        let map = self.cut_off.as_fd();
        let failed = |source| BpfError::Map { what: "dropped batches", source };
        let mut keys: Vec<BufferKey> = Vec::new();
        while keys.len() < most
            && let Some(key) = sys::map_next_key(map, keys.last().copied()).map_err(failed)?
        {
            keys.push(key);
        }
        let mut taken = Vec::new();
        for key in keys {
            let mut events = [0];
            // Atomic: the target may drop its last batch at this moment.
            match sys::map_take(map, key, &mut events) {
                // A key can come twice if the one before it was removed.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => continue,
                taken => taken.map_err(failed)?,
            }
            let id = BufferId { pid: Pid(key.pid as u32), address: key.address };
            taken.push((id, events[0]));
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::sys::{Syscall, fake};
    use std::{cell::RefCell, fs::File, rc::Rc};

    fn buffers() -> Buffers {
        let null = || Arc::new(File::open("/dev/null").unwrap().into());
        Buffers::new(null(), null())
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
        buffers().set(Tid(7), 7, &[0x1000, 0x2000]).unwrap();
        assert_eq!(*keys.borrow(), [7 << 32, 7 << 32 | 1]);
        buffers().set(Tid(8), 8, &[0; 20]).unwrap();
        assert_eq!(keys.borrow().len(), 2 + BUFFERS_PER_THREAD as usize);
    }

    #[test]
    fn dropped_batches_are_taken_once() {
        let mut left = vec![(3, 0x1000, 252), (4, 0x2000, 60), (5, 0x3000, 61)];
        let _fake = fake::Fake::new(move |call| {
            let Syscall::Bpf { command, attr } = call else { panic!("no map") };
            let key = attr.get_u64(8) as *const BufferKey;
            // SAFETY: the caller's key, if there is one.
            let pid = (!key.is_null()).then(|| unsafe { (*key).pid });
            let place = left.iter().position(|entry| Some(entry.0) == pid);
            if *command == 4 {
                let next = place.map_or(0, |place| place + 1);
                let Some(&(pid, address, _)) = left.get(next) else {
                    return fake::error(libc::ENOENT);
                };
                // SAFETY: the caller's key.
                unsafe { *(attr.get_u64(16) as *mut BufferKey) = BufferKey { pid, address } };
                return Ok(0);
            }
            let Some(place) = place else { return fake::error(libc::ENOENT) };
            // Separate steps would lose what is dropped between them.
            assert_eq!(*command, 21, "read and removed in one step");
            // SAFETY: the caller's value.
            unsafe { *(attr.get_u64(16) as *mut u64) = left.remove(place).2 };
            Ok(0)
        });
        let id = |pid, address| BufferId { pid: Pid(pid), address };
        let expected = [(id(3, 0x1000), 252), (id(4, 0x2000), 60)];
        assert_eq!(buffers().take_cut_off(2).unwrap(), expected);
        assert_eq!(buffers().take_cut_off(2).unwrap(), [(id(5, 0x3000), 61)]);
        assert_eq!(buffers().take_cut_off(2).unwrap(), []);
    }

    #[test]
    fn a_refusal_is_told() {
        let _fake = fake::Fake::failing(libc::E2BIG);
        assert!(matches!(buffers().set(Tid(1), 1, &[1]), Err(BpfError::Map { .. })));
    }
}
