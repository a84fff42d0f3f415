//! Formats a call path on one line, from root to leaf.

use crate::ui::text::distinct;
use crate::ui::text::names;
use crate::ui::text::units::count;
use ctrace_core::report::render::clean::clean;

/// Stands between the frames of a path.
pub(super) const STEP: &str = " → ";
/// The number of frames to show at each end of a long path.
const ENDS: usize = 16;

/// Joins each path in at most `room` columns. Different paths stay different.
pub(crate) fn joined_all<P, N>(paths: &[P], room: usize) -> Vec<String>
where
    P: AsRef<[N]>,
    N: AsRef<str> + PartialEq,
{
    let all = |room: usize| paths.iter().map(move |path| joined(path.as_ref(), room));
    let mut short: Vec<String> = all(room).collect();
    if room < usize::MAX {
        let long: Vec<String> = all(usize::MAX).collect();
        distinct::tell_apart(&long, &mut short, |_| room);
    }
    short
}

/// Joins the path in at most `room` columns. It first folds recursion into counts, then drops
/// frames in the middle, then shortens names.
pub(crate) fn joined<N: AsRef<str> + PartialEq>(path: &[N], room: usize) -> String {
    let frames = folded(path);
    let most = frames.len().min(2 * ENDS);
    for kept in (2..=most).rev() {
        let text = with_ends(&frames, kept);
        if names::width(&text) <= room {
            return text;
        }
    }
    match frames.as_slice() {
        [] => String::new(),
        [only] => names::shorten(only, room),
        [first, .., last] => {
            let dots = if frames.len() > 2 { " → … → " } else { STEP };
            let left = room.saturating_sub(names::width(dots));
            // The leaf is the subject of the row. The root gets the remaining room, but at least a
            // third.
            let root = left.saturating_sub(names::width(last)).max(left / 3);
            let root = names::shorten(first, root);
            let leaf = names::shorten(last, left.saturating_sub(names::width(&root)));
            format!("{root}{dots}{leaf}")
        }
    }
}

/// Returns the frames, with direct recursion as one frame and its depth.
fn folded<N: AsRef<str> + PartialEq>(path: &[N]) -> Vec<String> {
    let runs = path.chunk_by(|a, b| a == b);
    runs.map(|run| match run.len() {
        1 => clean(run[0].as_ref()).into_owned(),
        n => format!("{} ×{}", clean(run[0].as_ref()), count(n as u64)),
    })
    .collect()
}

/// Keeps `kept` frames, half of them from each end; of two, both from the end.
fn with_ends(frames: &[String], kept: usize) -> String {
    if kept >= frames.len() {
        return frames.join(STEP);
    }
    // The direct caller tells more than the root.
    if let ([.., caller, leaf], 2) = (frames, kept) {
        return format!("… → {caller} → {leaf}");
    }
    let head = kept / 2;
    let tail = frames.len() - (kept - head);
    format!("{} → … → {}", frames[..head].join(STEP), frames[tail..].join(STEP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_another_one_of_several_alike_stays_another_one() {
        let long =
            |kind: &str| format!("shop::Matrices_of_every_size<{kind}, 3>::solve_with_patience");
        let path = |kind: &str, leaf: Option<&str>| -> Vec<String> {
            let frames = ["shop::worker".to_owned(), long(kind)].into_iter();
            frames.chain(leaf.map(str::to_owned)).collect()
        };
        let kinds = ["int", "long", "char"];
        let paths: Vec<_> =
            kinds.iter().flat_map(|kind| [path(kind, None), path(kind, Some("burn"))]).collect();
        for room in [50, 60, 70] {
            let told = joined_all(&paths, room);
            let all: std::collections::BTreeSet<_> = told.iter().collect();
            assert_eq!(all.len(), paths.len(), "{told:#?}");
        }
    }
}
