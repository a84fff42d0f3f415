//! Makes harmless names of bounded length for functions, paths and threads of a recording.

use crate::calls::paths::{Node, ROOT};
use crate::function::qualified;
use crate::goroutines::id_beside_name;
use crate::names::cut;
use crate::recording::Recording;
use crate::report::TargetReport;
use crate::report::render::{clean::clean, json::compact};
use crate::units::{FuncId, ThreadId, Tid};

/// Limit of a name, in bytes. A hostile recording may have longer ones.
const MAX_NAME: usize = 16 << 10;
/// Limit of all names of a path, in bytes. In a longer path, each name gets an equal share.
const MAX_PATH: usize = 256 << 10;
/// Limit of frames in a path, the innermost ones: more than ctrace records.
const MAX_FRAMES: usize = 2_048;
/// The name that replaces frames that are unknown or too many.
pub const UNKNOWN_FRAMES: &str = "[path not recorded]";

/// The names of all functions.
#[derive(Default)]
pub(crate) struct Labels(Vec<String>);

impl Labels {
    pub(crate) fn of(recording: &Recording) -> Self {
        let label = |info: &crate::function::FunctionInfo| {
            short(&clean(&qualified(info.kind, info.group.as_deref(), &info.name))).to_owned()
        };
        Self(recording.functions().iter().map(label).collect())
    }

    pub(crate) fn all(&self) -> &[String] {
        &self.0
    }

    pub(crate) fn function(&self, id: FuncId) -> &str {
        self.0.get(id.index()).map_or("?", String::as_str)
    }

    /// Returns the frames of a path, outermost first.
    pub(crate) fn path(&self, nodes: &[Node], path: u32) -> Vec<&str> {
        let (functions, is_whole) = frames(nodes, path);
        let unknown = (!is_whole).then_some(UNKNOWN_FRAMES);
        let functions = functions.into_iter().map(|f| self.function(f));
        let mut names: Vec<&str> = unknown.into_iter().chain(functions).collect();
        if names.iter().map(|name| name.len()).sum::<usize>() > MAX_PATH {
            let share = MAX_PATH / names.len();
            names.iter_mut().for_each(|name| *name = cut(name, share));
        }
        names
    }
}

/// Returns the functions of a path, outermost first, and whether they are complete.
pub(crate) fn frames(nodes: &[Node], path: u32) -> (Vec<FuncId>, bool) {
    let (mut frames, mut at) = (Vec::new(), path);
    let mut is_whole = true;
    while at != ROOT {
        let node = &nodes[at as usize];
        frames.push(node.func);
        is_whole = !node.other && frames.len() < MAX_FRAMES;
        at = if is_whole { node.parent } else { ROOT };
    }
    frames.reverse();
    (frames, is_whole)
}

/// A thread's name for viewers.
pub(crate) struct ThreadLabel {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) name: String,
    /// The name in JSON, which escapes in its own way.
    pub(crate) name_in_json: String,
}

impl ThreadLabel {
    /// Returns the id to show beside the name, unless that tells it.
    pub(crate) fn id_beside_name(&self) -> Option<u32> {
        id_beside_name(Tid(self.tid), &self.name)
    }
}

pub(crate) fn thread(recording: &Recording, id: ThreadId) -> ThreadLabel {
    match recording.thread(id) {
        Some(thread) => ThreadLabel {
            pid: thread.pid.0,
            tid: thread.tid.0,
            name: short(&clean(&thread.name)).to_owned(),
            name_in_json: compact(short(&thread.name)),
        },
        None => ThreadLabel { pid: 0, tid: id.0, name: String::new(), name_in_json: compact("") },
    }
}

/// Returns the name of a process, or of the program for the recorded one.
pub(crate) fn process(recording: &Recording, pid: u32) -> String {
    let target = &recording.start().target;
    match target.pid {
        Some(target_pid) if target_pid.0 == pid => self::target(target),
        _ => format!("process {pid}"),
    }
}

/// Escapes any other text of the recording, such as a path or the kernel's name.
pub(crate) fn text(text: &str) -> String {
    short(&clean(text)).to_owned()
}

/// Returns the name of the recorded program, as reports have it.
pub(crate) fn target(target: &TargetReport) -> String {
    let first = target.command.first().map(String::as_str);
    let name =
        target.name().or(first).and_then(|exe| exe.rsplit('/').next()).unwrap_or("unknown program");
    short(&clean(name)).to_owned()
}

fn short(name: &str) -> &str {
    cut(name, MAX_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_long_names_are_bounded() {
        let mut nodes = vec![Node::root()];
        for depth in 1..=500_u32 {
            let parent = nodes[depth as usize - 1];
            nodes.push(Node::new(FuncId(depth % 2), depth - 1, &parent, false));
        }
        let labels = Labels(vec!["é".repeat(MAX_NAME / 2), "short".into()]);
        let path = labels.path(&nodes, 500);
        assert_eq!((path.len(), path[0], path[1].chars().next()), (500, "short", Some('é')));
        let bytes: usize = path.iter().map(|name| name.len()).sum();
        assert!((MAX_PATH / 4..=MAX_PATH).contains(&bytes), "{bytes}");
        assert_eq!(labels.path(&nodes, 2)[1].len(), MAX_NAME, "a short path has whole names");
    }
}
