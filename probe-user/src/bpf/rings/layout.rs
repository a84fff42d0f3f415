//! The division of one map into rings: see `docs/wire-format.md`.

use crate::bpf::BpfError;
use ctrace_common::{MAX_CPUS, PAGE_LEN};

/// The number, size and places of the rings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingLayout {
    pub(crate) rings: usize,
    pub(crate) ring_bytes: usize,
}

impl RingLayout {
    pub(crate) fn new(rings: usize, ring_bytes: u32) -> Result<Self, BpfError> {
        let least = PAGE_LEN as u32;
        if !ring_bytes.is_power_of_two() || !(least..=1 << 30).contains(&ring_bytes) {
            return Err(BpfError::RingSize { bytes: ring_bytes, least });
        }
        Ok(Self { rings, ring_bytes: ring_bytes as usize })
    }

    /// Returns the pages of slots in a ring.
    pub(crate) fn slot_pages(self) -> u32 {
        (self.ring_bytes / PAGE_LEN) as u32
    }

    pub(super) fn first_page(self, ring: usize) -> u32 {
        ring as u32 * (1 + self.slot_pages())
    }

    /// Returns the pages of all rings.
    pub(crate) fn pages(self) -> u32 {
        self.first_page(self.rings)
    }

    /// Returns the first page of the ring of every possible CPU. Offline CPUs share the others'
    /// rings, so nothing is lost if one comes online.
    pub(crate) fn first_pages(self, online: &[u32]) -> Vec<u32> {
        let ring = |cpu| {
            let own = online.iter().position(|&other| other as usize == cpu);
            own.unwrap_or(cpu % self.rings)
        };
        (0..MAX_CPUS).map(|cpu| self.first_page(ring(cpu))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        for bytes in [0, 1, 100, 2048, 4095, 5000, 1 << 31] {
            assert!(matches!(RingLayout::new(1, bytes), Err(BpfError::RingSize { .. })), "{bytes}");
        }
    }

    #[test]
    fn rings_lie_one_behind_the_other() {
        let layout = RingLayout::new(3, 16384).unwrap();
        assert_eq!((layout.slot_pages(), layout.pages()), (4, 15));
        assert_eq!(layout.first_pages(&[0, 1, 2])[..3], [0, 5, 10]);
    }

    #[test]
    fn cpus_that_are_not_there_yet_share_rings() {
        let pages = RingLayout::new(2, 4096).unwrap().first_pages(&[0, 2]);
        assert_eq!(pages.len(), MAX_CPUS);
        assert_eq!(pages[..5], [0, 2, 2, 2, 0]);
    }
}
