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
    let paths: Vec<Vec<String>> = paths.iter().map(|path| folded(path.as_ref())).collect();
    let parts: Vec<Result<String, (String, usize)>> =
        paths.iter().map(|path| fitting(path, room).ok_or_else(|| start(path, room))).collect();
    // Next to overloads with parameters, one without them could be any.
    let leaves: Vec<&str> = paths.iter().map(|path| leaf(path)).collect();
    let leaves = distinct::shorten_each(&leaves, |at| match &parts[at] {
        Ok(_) => usize::MAX,
        Err((_, left)) => *left,
    });
    let mut short: Vec<String> = parts
        .into_iter()
        .zip(leaves)
        .map(|(part, leaf)| part.unwrap_or_else(|(start, _)| start + &leaf))
        .collect();
    let long: Vec<String> = paths.iter().map(|path| path.join(STEP)).collect();
    distinct::tell_apart(&long, &mut short, |_| room);
    short
}

/// Joins the path in at most `room` columns. It first folds recursion into counts, then drops
/// frames in the middle, then shortens names.
pub(crate) fn joined<N: AsRef<str> + PartialEq>(path: &[N], room: usize) -> String {
    let path = folded(path);
    fitting(&path, room).unwrap_or_else(|| {
        let (start, left) = start(&path, room);
        start + &names::shorten(leaf(&path), left)
    })
}

fn leaf(path: &[String]) -> &str {
    path.last().map_or("", String::as_str)
}

/// Returns as many frames of the path as fit, if at least two or all do.
fn fitting(path: &[String], room: usize) -> Option<String> {
    let most = path.len().min(2 * ENDS);
    let least = most.min(2);
    (least..=most).rev().map(|kept| with_ends(path, kept)).find(|text| names::width(text) <= room)
}

/// Returns the shortened root of a path that does not fit, and the room that it leaves to the leaf.
fn start(path: &[String], room: usize) -> (String, usize) {
    let [first, .., last] = path else { return (String::new(), room) };
    let dots = if path.len() > 2 { " → … → " } else { STEP };
    let left = room.saturating_sub(names::width(dots));
    // The leaf is the subject of the row. The root gets the remaining room, but at least a third.
    let root = left.saturating_sub(names::width(last)).max(left / 3);
    let root = names::shorten(first, root);
    let left = left.saturating_sub(names::width(&root));
    (format!("{root}{dots}"), left)
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
    fn overloads_keep_their_parameters() {
        let path = |frames: &[&str]| frames.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let root = "shop::render_every_page_of_the_catalogue";
        let paths = [path(&["main", "shop::format(int)"]), path(&[root, "shop::format(long)"])];
        assert_eq!(
            joined_all(&paths, 31),
            ["main → shop::format(int)", "shop…logue → shop::format(long)"]
        );
    }

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
