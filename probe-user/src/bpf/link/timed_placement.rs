//! Places probes of a file in growing parts, and gives up when each place takes too long.
//!
//! For each place, the kernel visits every mapping of the file, and nobody can fork meanwhile. A
//! file is seldom mapped more than some hundred times. But any reader can map it a million times:
//! then a thousand places would take minutes to place and to remove. So the first few are timed.

use super::Site;
use crate::bpf::BpfError;
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Up to this number, all places go at once.
const FEW: usize = 8;
/// The first part of a larger number. Each part may be larger than the one before by this factor.
/// Each part is a link, and the kernel needs a moment to remove a link.
const FIRST: usize = 2;
const GROWTH: usize = 128;
/// The target duration of a part. After this time the cost of a place is known.
const PART: Duration = Duration::from_secs(1);
/// The limit for all places of a link, extrapolated from the first.
const LIMIT: Duration = Duration::from_secs(10);

/// Calls `place` for each part in turn.
pub(crate) fn place<T>(
    path: &Path,
    sites: &[Site],
    mut place: impl FnMut(&[Site]) -> Result<T, BpfError>,
) -> Result<Vec<T>, BpfError> {
    let begun = Instant::now();
    place_timed(path, sites, || begun.elapsed(), &mut place)
}

fn place_timed<T>(
    path: &Path,
    sites: &[Site],
    taken: impl Fn() -> Duration,
    place: &mut impl FnMut(&[Site]) -> Result<T, BpfError>,
) -> Result<Vec<T>, BpfError> {
    let (mut placed, mut left) = (Vec::new(), sites);
    while !left.is_empty() {
        let done = sites.len() - left.len();
        let each = taken().as_secs_f64() / done.max(1) as f64;
        if taken() > PART && each * sites.len() as f64 > LIMIT.as_secs_f64() {
            let (path, sites, taken) = (path.to_owned(), sites.len(), taken());
            return Err(BpfError::TooSlow { path, sites, done, taken });
        }
        let part = match done {
            0 if sites.len() <= FEW => FEW,
            0 => FIRST,
            _ => (done * GROWTH).min((PART.as_secs_f64() / each) as usize).max(1),
        };
        let (now, later) = left.split_at(part.min(left.len()));
        placed.push(place(now)?);
        left = later;
    }
    Ok(placed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_common::Cookie;
    use std::cell::Cell;

    /// Returns the parts for this many places, each of which takes this long.
    fn parts(count: usize, each: Duration) -> Result<Vec<usize>, BpfError> {
        let site = Site { offset: 16, ref_ctr_offset: 0, cookie: Cookie::plain(1) };
        let taken = Cell::new(Duration::ZERO);
        let mut place = |part: &[Site]| {
            taken.set(taken.get() + each * part.len() as u32);
            Ok(part.len())
        };
        place_timed(Path::new("/bin/sh"), &vec![site; count], || taken.get(), &mut place)
    }

    #[test]
    fn few_places_are_one_link_and_many_are_three() {
        let quick = Duration::from_micros(5);
        assert_eq!(parts(0, quick).unwrap(), [0; 0]);
        assert_eq!(parts(8, Duration::from_secs(60)).unwrap(), [8]);
        assert_eq!(parts(9, quick).unwrap(), [2, 7]);
        assert_eq!(parts(20_000, quick).unwrap(), [2, 256, 19_742]);
    }

    #[test]
    fn places_that_take_too_long_are_given_up() {
        let refused = |count, each| match parts(count, each) {
            Err(BpfError::TooSlow { done, sites, .. }) => (done, sites),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(100, Duration::from_millis(880)), (2, 100));
        assert_eq!(refused(20_000, Duration::from_millis(40)), (27, 20_000));
        assert_eq!(parts(200, Duration::from_millis(40)).unwrap().iter().sum::<usize>(), 200);
    }

    #[test]
    fn an_error_of_a_later_part_is_told() {
        let site = Site { offset: 16, ref_ctr_offset: 0, cookie: Cookie::plain(1) };
        let mut calls = 0;
        let placed = place(Path::new("/bin/sh"), &[site; 20], |_| {
            calls += 1;
            if calls == 2 { Err(BpfError::Leaving) } else { Ok(()) }
        });
        assert!(matches!(placed, Err(BpfError::Leaving)), "{placed:?}");
    }
}
