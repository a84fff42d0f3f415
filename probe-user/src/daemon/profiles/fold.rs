//! Bounds a profile, because servers refuse large ones: the smallest paths become a part of their
//! callers'. Their calls and their own time are kept.

use super::profile::{Profile, ProfiledFunction, ProfiledObject, ProfiledPath};
use std::{cmp::Reverse, collections::BinaryHeap};

/// The bounds of a profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) samples: usize,
    /// Bytes as a file of pprof, before it is compressed.
    pub(super) bytes: usize,
}

impl Bounds {
    /// Below Pyroscope's, which are 16,000 and 4 MiB unless it is configured.
    pub(super) const USUAL: Self = Self { samples: 15_000, bytes: 15 << 18 };
}

/// The limit of a sample's bytes besides its stack, and of those of a function besides its texts.
const SAMPLE: usize = 40;
const FUNCTION: usize = 64;

/// Folds paths until the profile is within its bounds. Returns how many were folded.
pub(super) fn fold(profile: &mut Profile, bounds: Bounds) -> u64 {
    let mut folding = Folding::of(profile);
    let mut folded = 0;
    while folding.exceeds(bounds)
        && let Some(Reverse((_, _, Reverse(at)))) = folding.leaves.pop()
    {
        folded += u64::from(folding.fold(profile, at));
    }
    let Folding { is_gone, rest: [calls, self_ns], .. } = folding;
    if is_gone.contains(&true) {
        remove(profile, &is_gone);
    }
    if calls > 0 || self_ns > 0 {
        profile.add_unrecorded(calls, self_ns);
    }
    folded
}

/// Own time, calls and place of a path, with the smallest first, and the last one of equals.
type Leaf = Reverse<(u64, u64, Reverse<usize>)>;

/// The state. Lists have an element for each path, or for each function.
struct Folding {
    samples: usize,
    bytes: usize,
    stacks: Vec<usize>,
    callees: Vec<u32>,
    is_gone: Vec<bool>,
    /// The number of paths that end at a function.
    uses: Vec<u32>,
    /// Paths without callees.
    leaves: BinaryHeap<Leaf>,
    /// Calls and own time of paths that had no caller.
    rest: [u64; 2],
}

impl Folding {
    fn of(profile: &Profile) -> Self {
        let count = profile.paths.len();
        let objects = profile.objects.iter().map(object_bytes).sum();
        let mut made = Self {
            samples: 0,
            bytes: objects,
            stacks: Vec::with_capacity(count),
            callees: vec![0; count],
            is_gone: vec![false; count],
            uses: vec![0; profile.functions.len()],
            leaves: BinaryHeap::new(),
            rest: [0; 2],
        };
        made.bytes += profile.functions.iter().map(function_bytes).sum::<usize>();
        for path in &profile.paths {
            let callers = path.parent.map_or(0, |parent| made.stacks[parent as usize]);
            made.stacks.push(callers + width(path.function));
            made.uses[path.function as usize] += 1;
            if let Some(parent) = path.parent {
                made.callees[parent as usize] += 1;
            }
            made.count(path, made.stacks.len() - 1);
        }
        let leaves = profile.paths.iter().enumerate().filter(|(at, _)| made.callees[*at] == 0);
        made.leaves = leaves.map(|(at, path)| leaf(path, at)).collect();
        made
    }

    fn exceeds(&self, bounds: Bounds) -> bool {
        let rest = usize::from(self.rest != [0; 2]);
        self.samples + rest > bounds.samples || self.bytes > bounds.bytes
    }

    /// Counts the sample of a path, if it has one.
    fn count(&mut self, path: &ProfiledPath, at: usize) {
        if path.has_values() {
            self.samples += 1;
            self.bytes += SAMPLE + self.stacks[at];
        }
    }

    /// Folds a path without callees. Returns true if it had a sample.
    fn fold(&mut self, profile: &mut Profile, at: usize) -> bool {
        let path = profile.paths[at];
        self.is_gone[at] = true;
        let uses = &mut self.uses[path.function as usize];
        *uses -= 1;
        if *uses == 0 {
            self.bytes -= function_bytes(&profile.functions[path.function as usize]);
        }
        let has_sample = path.has_values();
        if has_sample {
            self.samples -= 1;
            self.bytes -= SAMPLE + self.stacks[at];
        }
        let Some(parent) = path.parent.map(|parent| parent as usize) else {
            let [calls, self_ns] = &mut self.rest;
            *calls = calls.saturating_add(path.calls);
            *self_ns = self_ns.saturating_add(path.self_ns);
            return has_sample;
        };
        let caller = &mut profile.paths[parent];
        let is_new = has_sample && !caller.has_values();
        caller.calls = caller.calls.saturating_add(path.calls);
        caller.self_ns = caller.self_ns.saturating_add(path.self_ns);
        let caller = *caller;
        if is_new {
            self.count(&caller, parent);
        }
        self.callees[parent] -= 1;
        if self.callees[parent] == 0 {
            self.leaves.push(leaf(&caller, parent));
        }
        has_sample
    }
}

fn leaf(path: &ProfiledPath, at: usize) -> Leaf {
    Reverse((path.self_ns, path.calls, Reverse(at)))
}

/// Returns the bytes of a function's number in a stack.
fn width(function: u32) -> usize {
    match function {
        0..0x7f => 1,
        0x7f..0x3fff => 2,
        _ => 3,
    }
}

fn function_bytes(function: &ProfiledFunction) -> usize {
    FUNCTION + function.name.len() + function.file.as_ref().map_or(0, |file| file.len())
}

fn object_bytes(object: &ProfiledObject) -> usize {
    FUNCTION + object.name.len() + object.build_id.as_ref().map_or(0, |id| id.len())
}

/// Removes paths, and the functions that are then in none.
fn remove(profile: &mut Profile, is_gone: &[bool]) {
    let (mut paths, mut functions) = (vec![0; is_gone.len()], vec![None; profile.functions.len()]);
    let all = std::mem::take(&mut profile.paths);
    let old = std::mem::take(&mut profile.functions);
    for (at, path) in all.into_iter().enumerate().filter(|(at, _)| !is_gone[*at]) {
        paths[at] = profile.paths.len() as u32;
        let function = *functions[path.function as usize].get_or_insert_with(|| {
            profile.functions.push(old[path.function as usize].clone());
            profile.functions.len() as u32 - 1
        });
        // A caller comes before its callees, and is there as long as one of them is.
        let parent = path.parent.map(|parent| paths[parent as usize]);
        profile.paths.push(ProfiledPath { parent, function, ..path });
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::fixtures::{deep, profile},
        *,
    };

    fn sums(profile: &Profile) -> [u64; 2] {
        profile
            .paths
            .iter()
            .fold([0; 2], |[calls, own], path| [calls + path.calls, own + path.self_ns])
    }

    /// Returns the names of each stack, innermost first, with its values.
    fn stacks(profile: &Profile) -> Vec<(String, u64, u64)> {
        let names = |path| {
            let names = profile.stack(path).map(|at| &*profile.functions[at as usize].name);
            names.collect::<Vec<_>>().join(" ")
        };
        profile.samples().map(|path| (names(path), path.calls, path.self_ns)).collect()
    }

    fn told(name: &str, calls: u64, self_ns: u64) -> (String, u64, u64) {
        (name.to_owned(), calls, self_ns)
    }

    const SAMPLES: fn(usize) -> Bounds = |samples| Bounds { samples, bytes: usize::MAX };

    #[test]
    fn the_smallest_paths_become_a_part_of_their_callers() {
        // The second one has an open call, and so no sample.
        let paths =
            [(None, 1, 50), (Some(0), 0, 0), (Some(1), 7, 3), (Some(1), 2, 9), (Some(0), 1, 1)];
        let whole = profile(&paths);
        let mut same = whole.clone();
        assert_eq!((fold(&mut same, SAMPLES(4)), &same), (0, &whole));
        let mut less = whole.clone();
        assert_eq!(fold(&mut less, SAMPLES(3)), 1);
        assert_eq!(
            stacks(&less),
            [told("f0", 2, 51), told("f2 f1 f0", 7, 3), told("f3 f1 f0", 2, 9)]
        );
        assert_eq!(less.functions.len(), 4);
        let mut least = whole.clone();
        assert_eq!(fold(&mut least, SAMPLES(2)), 3);
        assert_eq!(stacks(&least), [told("f0", 2, 51), told("f1 f0", 9, 12)]);
        assert_eq!(sums(&least), sums(&whole));
    }

    #[test]
    fn paths_without_a_caller_become_one() {
        let mut many = profile(&[(None, 1, 9), (None, 2, 2), (None, 3, 3), (None, 4, 8)]);
        assert_eq!(fold(&mut many, SAMPLES(3)), 2);
        let wanted = [told("f0", 1, 9), told("f3", 4, 8), told("[path not recorded]", 5, 5)];
        assert_eq!(stacks(&many), wanted);
    }

    #[test]
    fn deep_stacks_and_long_names_are_bounded_in_bytes() {
        let mut deep = deep();
        let before = sums(&deep);
        assert!(fold(&mut deep, Bounds::USUAL) > 1_384);
        let samples = deep.samples().count();
        let locations: usize = deep.samples().map(|path| deep.stack(path).count()).sum();
        assert!(samples <= 15_000 && locations <= 4 << 20, "{samples} {locations}");
        assert!(locations > 1 << 19, "{locations}: much more was folded than had to be");
        assert_eq!(sums(&deep), before);
    }
}
