//! Reads many pieces of another process's memory at once. Otherwise a look at ten thousand marker
//! buffers would take ten thousand system calls.

use crate::bpf::sys;
use ctrace_core::units::Pid;
use std::io::{self, IoSliceMut};

/// Bytes at an address of the process.
pub(crate) struct Piece<'a> {
    pub address: u64,
    pub bytes: &'a mut [u8],
    /// True if all of them were read.
    pub is_read: bool,
}

impl<'a> Piece<'a> {
    pub(crate) fn new(address: u64, bytes: &'a mut [u8]) -> Self {
        Self { address, bytes, is_read: false }
    }
}

/// Reads the pieces, in order, from the process's current memory. Unmapped pieces are left out. An
/// error means that nothing of the process can be read in this way.
pub(crate) fn read_pieces(pid: Pid, pieces: &mut [Piece<'_>]) -> io::Result<()> {
    let mut rest = pieces;
    while !rest.is_empty() {
        let most = rest.len().min(sys::MOST_PIECES);
        let (next, _) = rest.split_at_mut(most);
        let addresses: Vec<u64> = next.iter().map(|piece| piece.address).collect();
        let mut local: Vec<_> = next.iter_mut().map(|piece| IoSliceMut::new(piece.bytes)).collect();
        let mut read = match sys::read_process(pid.0, addresses.into_iter(), &mut local) {
            Ok(read) => read,
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => 0,
            Err(error) => return Err(error),
        };
        let is_whole = |piece: &&mut Piece<'_>| {
            let left = read.checked_sub(piece.bytes.len());
            read = left.unwrap_or(0);
            left.is_some()
        };
        let whole = next.iter_mut().take_while(is_whole).map(|piece| piece.is_read = true).count();
        // The piece after the last whole one stopped the call.
        rest = &mut rest[most.min(whole + 1)..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::sys::{Syscall, fake};
    use std::{cell::RefCell, rc::Rc};

    const LEN: usize = 4;

    /// Returns which of the pieces at these addresses were read, and the number of pieces in each
    /// call. Addresses from 1000 on are not mapped.
    fn read(addresses: &[u64]) -> (Vec<bool>, Vec<usize>) {
        let calls = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&calls);
        let _fake = fake::Fake::new(move |call| {
            let Syscall::ReadProcess { pid: 7, local, remote } = call else { panic!("no reading") };
            assert_eq!(local.len(), remote.len());
            seen.borrow_mut().push(remote.len());
            let mapped = remote.iter().take_while(|piece| (piece.iov_base as u64) < 1000).count();
            // A part of the failing piece may have been copied.
            let part = if mapped < remote.len() { LEN / 2 } else { 0 };
            if mapped == 0 { fake::error(libc::EFAULT) } else { Ok(mapped * LEN + part) }
        });
        let mut bytes = vec![[0; LEN]; addresses.len()];
        let pieces = addresses.iter().zip(&mut bytes);
        let mut pieces: Vec<_> = pieces.map(|(at, bytes)| Piece::new(*at, bytes)).collect();
        read_pieces(Pid(7), &mut pieces).unwrap();
        let calls = calls.take();
        (pieces.iter().map(|piece| piece.is_read).collect(), calls)
    }

    #[test]
    fn what_is_not_mapped_stops_nothing_but_itself() {
        let (t, f) = (true, false);
        assert_eq!(read(&[]), (vec![], vec![]));
        assert_eq!(read(&[1, 2]), (vec![t, t], vec![2]));
        assert_eq!(read(&[1000]), (vec![f], vec![1]));
        assert_eq!(read(&[1000, 1, 1001, 1002, 2]), (vec![f, t, f, f, t], vec![5, 4, 2, 1]));
        assert_eq!(read(&[1, 1000]), (vec![t, f], vec![2]));
    }

    #[test]
    fn more_than_one_call_can_take_come_in_several() {
        let mut addresses = vec![1; 2500];
        addresses[1023] = 1000;
        addresses[1024] = 1000;
        let (read, calls) = read(&addresses);
        assert_eq!(calls, [1024, 1024, 1024, 451]);
        let unread: Vec<_> = (0..2500).filter(|index| !read[*index]).collect();
        assert_eq!(unread, [1023, 1024]);
    }

    #[test]
    fn a_process_that_cannot_be_read_is_told() {
        let _fake = fake::Fake::failing(libc::EPERM);
        let mut bytes = [0; LEN];
        let error = read_pieces(Pid(7), &mut [Piece::new(1, &mut bytes)]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn the_kernel_does_it_so() {
        let source: Vec<[u8; LEN]> = (0..2000_u32).map(u32::to_ne_bytes).collect();
        let mut bytes = vec![[0xff; LEN]; source.len()];
        let mut pieces: Vec<_> = (source.iter().zip(&mut bytes))
            .map(|(from, to)| Piece::new(from.as_ptr() as u64, to))
            .collect();
        pieces[5].address = 8;
        pieces[1999].address = u64::MAX - 1;
        read_pieces(Pid(std::process::id()), &mut pieces).unwrap();
        let unread: Vec<_> = (0..2000).filter(|index| !pieces[*index].is_read).collect();
        assert_eq!(unread, [5, 1999]);
        drop(pieces);
        let differing: Vec<_> = (0..2000).filter(|index| bytes[*index] != source[*index]).collect();
        assert_eq!(differing, [5, 1999]);
    }
}
