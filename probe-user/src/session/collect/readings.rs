//! Readings of many buffers while their threads write to them, by the protocol of
//! `docs/marker-format.md`.

use super::{buffers::OwnedBuffer, memory::Memory};
use crate::bpf::{self, Piece};
use ctrace_common::HEADER_LEN;
use ctrace_core::marker::{BUFFER_LEN, Header, Reading};

/// A buffer, or the memory of its program, does not exist any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// Returns the headers at these addresses; none for one that is unreadable.
pub(crate) fn headers(memory: &Memory, addresses: &[u64]) -> Vec<Option<[u8; HEADER_LEN]>> {
    let mut headers = vec![[0; HEADER_LEN]; addresses.len()];
    let addresses = addresses.iter().copied();
    let is_read = read(memory, addresses.zip(headers.iter_mut().map(|header| &mut header[..])));
    let headers = is_read.into_iter().zip(headers);
    headers.map(|(is_read, header)| is_read.then_some(header)).collect()
}

/// Reads each buffer twice. Returns both readings if they are of one batch and of one thread, and
/// else nothing: if the buffer was emptied meanwhile, its events come through a ring.
pub(crate) fn read_twice(
    memory: &Memory,
    buffers: &[OwnedBuffer],
) -> Vec<Result<Option<Reading>, Unreadable>> {
    let before = contents(memory, buffers);
    let time = bpf::now();
    let bytes = contents(memory, buffers);
    let readings = before.zip(bytes).zip(buffers);
    let readings = readings.map(|((before, bytes), owned)| {
        let (before, bytes) = (before.ok_or(Unreadable)?, bytes.ok_or(Unreadable)?);
        // The second copy itself may have been interrupted, after its header was read. If this
        // memory still exists now, both copies were made from it.
        let after = memory.read::<HEADER_LEN>(owned.id.address).ok_or(Unreadable)?;
        let headers = [&before[..], &bytes[..], &after[..]].map(Header::parse);
        let is_same = |header: &Option<Header>| {
            let (Some(header), Some(first)) = (header, &headers[0]) else { return false };
            header.batch == first.batch && header.tid == owned.inside && !header.is_flushing
        };
        Ok(headers.iter().all(is_same).then_some(Reading {
            buffer: owned.id,
            tid: owned.tid,
            time,
            bytes,
            passed: None,
            before: Some(before),
        }))
    });
    readings.collect()
}

/// Returns the bytes of the buffers, as far as they are readable.
fn contents(
    memory: &Memory,
    buffers: &[OwnedBuffer],
) -> impl Iterator<Item = Option<Box<[u8; BUFFER_LEN]>>> {
    let mut bytes: Vec<_> = buffers.iter().map(|_| Box::new([0; BUFFER_LEN])).collect();
    let addresses = buffers.iter().map(|owned| owned.id.address);
    let is_read = read(memory, addresses.zip(bytes.iter_mut().map(|bytes| &mut bytes[..])));
    is_read.into_iter().zip(bytes).map(|(is_read, bytes)| is_read.then_some(bytes))
}

/// Reads the bytes at each address; returns true for each piece that could be read.
fn read<'a>(memory: &Memory, pieces: impl Iterator<Item = (u64, &'a mut [u8])>) -> Vec<bool> {
    let mut pieces: Vec<_> = pieces.map(|(address, bytes)| Piece::new(address, bytes)).collect();
    memory.read_pieces(&mut pieces);
    pieces.iter().map(|piece| piece.is_read).collect()
}

#[cfg(test)]
#[path = "readings_tests.rs"]
mod tests;
