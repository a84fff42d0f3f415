//! Processes that are meant together: all whose program fits a glob, and all of a control group, a
//! container or a user.

use super::facts::{self, ProgramFacts};
use super::glob::PathGlob;
use super::lookup::LookupError;
use crate::ui::text::first_few;
use ctrace_core::report::render::clean::clean;
use ctrace_core::units::Pid;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, absolute};

/// The directory where the groups are mounted: people copy paths from there.
const MOUNTED: &str = "/sys/fs/cgroup";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProcessSet {
    /// The files of their programs.
    Exe(PathGlob),
    /// Their control group, or one that it is in.
    Cgroup(PathGlob),
    /// The container's id or name, or the beginning of it.
    Container(String),
    /// The user with whose rights they run.
    User(User),
    /// Those that are in both.
    Both(Box<[Self; 2]>),
}

/// A user as a number, and as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) id: u32,
    pub(crate) text: String,
}

impl ProcessSet {
    /// Parses a glob of program files. Returns `None` for the path of a single one.
    pub(super) fn of_programs(text: &str) -> Option<Result<Self, String>> {
        let is_glob = text.contains(['*', '?', '[', '{']) && !Path::new(text).exists();
        let parse = || {
            let whole = match text.strip_prefix("./") {
                _ if text.split('/').any(|part| part == "..") => {
                    return Err("give the whole path, without ..".into());
                }
                Some(rest) => format!("{}/{rest}", globset::escape(&here()?)),
                None if text.starts_with(['/', '*', '[', '{']) => text.to_owned(),
                None => format!("{}/{text}", globset::escape(&here()?)),
            };
            PathGlob::parse(&whole).map(Self::Exe)
        };
        is_glob.then(parse)
    }

    /// Returns the set of the processes that run this one program file.
    pub(super) fn of_program(path: &Path) -> Result<Self, String> {
        let path = path.to_str().ok_or("the path of the program is no text")?;
        PathGlob::parse(&globset::escape(path)).map(Self::Exe)
    }

    /// Keeps those of a user.
    pub(crate) fn of_user(self, user: User) -> Self {
        Self::Both(Box::new([self, Self::User(user)]))
    }

    /// Parses the path of a control group.
    pub(crate) fn of_cgroup(text: &str) -> Result<Self, String> {
        let path = text.strip_prefix(MOUNTED).unwrap_or(text).trim_end_matches('/');
        if path.is_empty() || !path.starts_with(['/', '*']) {
            return Err("give a path such as /system.slice/nginx.service, or a glob".into());
        }
        PathGlob::parse(path).map(Self::Cgroup)
    }

    /// Parses the beginning of a container's id or name.
    pub(crate) fn of_container(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("give the id of a container, or the beginning of it".into()),
            id => Ok(Self::Container(id.to_owned())),
        }
    }

    /// Refuses the beginning of several ids.
    pub(crate) fn check(&self, all: impl Iterator<Item = u32>) -> Result<(), LookupError> {
        const NAMED: usize = 4;
        let begin = match self {
            Self::Container(begin) => begin,
            Self::Both(both) => return both[0].check(all),
            _ => return Ok(()),
        };
        let groups = all.map(|pid| facts::control_group_of(Pid(pid)));
        let ids: BTreeSet<String> = groups
            .filter_map(|group| facts::container_in(&group).map(str::to_owned))
            .filter(|id| id.starts_with(begin.as_str()))
            .collect();
        if ids.len() < 2 || ids.contains(begin) {
            return Ok(());
        }
        let (count, ids) = (ids.len(), ids.into_iter().map(|id| clean(&id).into_owned()));
        let first = first_few(NAMED, &ids.collect::<Vec<_>>());
        Err(LookupError::Containers { begin: begin.clone(), count, first })
    }

    pub(crate) fn has(&self, pid: u32) -> bool {
        match self {
            Self::Exe(glob) => ProgramFacts::of(Pid(pid)).is_some_and(|it| glob.matches(&it.exe)),
            Self::Cgroup(glob) => {
                let group = facts::control_group_of(Pid(pid));
                let above = Path::new(&group).ancestors().filter_map(Path::to_str);
                above.into_iter().any(|group| group != "/" && glob.matches(group))
            }
            Self::Container(id) => {
                let group = facts::control_group_of(Pid(pid));
                facts::container_in(&group).is_some_and(|it| it.starts_with(id.as_str()))
            }
            Self::User(user) => facts::user_of(Pid(pid)) == Some(user.id),
            Self::Both(both) => both.iter().all(|set| set.has(pid)),
        }
    }

    pub(super) fn as_predicate(&self, verb: &str) -> String {
        match self {
            Self::Exe(glob) => format!("{verb} running {glob}"),
            Self::Cgroup(glob) => format!("{verb} in the control group {glob}"),
            Self::Container(id) => format!("{verb} in a container {id}"),
            Self::User(user) => format!("{verb} of the user {}", user.text),
            Self::Both(both) => {
                let [first, second] = both.as_ref();
                format!("{} and {}", first.as_predicate(verb), second.as_predicate("").trim_start())
            }
        }
    }

    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::Exe(_) => "`ps -e` lists all; a * stops at a slash, ** does not",
            Self::Cgroup(_) | Self::Container(_) => "/proc/PID/cgroup tells the group of a process",
            Self::User(_) => "`ps -eo user,pid,args` lists all by their users",
            Self::Both(both) => both[0].remedy(),
        }
    }
}

impl fmt::Display for ProcessSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exe(glob) | Self::Cgroup(glob) => glob.fmt(f),
            Self::Container(id) => f.write_str(id),
            Self::User(user) => write!(f, "user {}", user.text),
            Self::Both(both) => write!(f, "{}, {}", both[0], both[1]),
        }
    }
}

/// Returns the current folder.
fn here() -> Result<String, String> {
    let folder = absolute(".").map_err(|error| error.to_string())?;
    folder.into_os_string().into_string().map_err(|_| "give the whole path".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_this(set: Result<ProcessSet, String>) -> bool {
        set.expect("parses").has(std::process::id())
    }

    #[test]
    fn programs_fit_globs() {
        let exe = std::env::current_exe().expect("known").canonicalize().expect("there");
        let folder = exe.parent().and_then(Path::to_str).expect("text");
        assert_eq!(ProcessSet::of_programs(exe.to_str().expect("text")), None);
        let set = |text: &str| ProcessSet::of_programs(text).expect("a glob");
        assert!(has_this(set(&format!("{folder}/*"))));
        assert!(has_this(set("**/ctrace_user-*")));
        assert!(!has_this(set(&format!("{folder}/*/*"))));
        assert!(!has_this(set("./*")));
        assert!(set("/bin/[x").is_err());
    }

    #[test]
    fn users_are_those_whose_rights_count() {
        let own = facts::user_of(Pid(std::process::id())).expect("alive");
        let user = |id: u32| User { id, text: id.to_string() };
        assert!(ProcessSet::User(user(own)).has(std::process::id()));
        assert!(!ProcessSet::User(user(own + 1)).has(std::process::id()));
        // Both must hold.
        let glob = |text: &str| ProcessSet::of_programs(text).expect("a glob").expect("parses");
        let both = |text: &str, id: u32| glob(text).of_user(user(id)).has(std::process::id());
        assert!(both("**/ctrace_user-*", own));
        assert!(!both("**/ctrace_user-*", own + 1));
        assert!(!both("**/no-such-*", own));
        let is = glob("/opt/*").of_user(user(33)).as_predicate("are");
        assert_eq!(is, "are running /opt/* and of the user 33");
    }

    #[test]
    fn groups_are_those_of_all_below() {
        let group = facts::control_group_of(Pid(std::process::id()));
        if group != "/" {
            assert!(has_this(ProcessSet::of_cgroup(&group)));
            assert!(has_this(ProcessSet::of_cgroup(&format!("/sys/fs/cgroup{group}/"))));
        }
        assert!(!has_this(ProcessSet::of_cgroup("/no-such.slice")));
        assert!(!has_this(ProcessSet::of_container("4f1c")));
        for text in ["", "/", "/sys/fs/cgroup", "nginx.service"] {
            assert!(ProcessSet::of_cgroup(text).is_err(), "{text}");
        }
    }
}
