//! The timelines of large recordings, kept in the user's cache folder, so that the next page need not read all calls.
//!
//! A file there is a copy of what reading would give: whenever it cannot be used, or cannot be written, all calls are
//! read, and nobody need know. It is private, like the recording may be.

use crate::files::{self, FileError, Owner, Place};
use ctrace_core::{recording::Recording, timeline::Timeline};
use rustix::{fs::OFlags, process::geteuid};
use std::{
    fs::File,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

const END: &str = ".timeline";
/// The largest file that is read. Tiles have a quarter of it at most.
const MOST_OF_FILE: u64 = 512 << 20;
/// Bytes of all files. The ones that were used last are kept.
const MOST_OF_ALL: u64 = 1 << 30;

/// The place of a recording's timeline.
#[derive(Debug)]
pub(super) struct Saved {
    place: Place,
    /// The files of the recording as they are now.
    known_by: Vec<u8>,
}

/// Returns the folder for a user with this home; `None`: the one that the environment tells.
pub(crate) fn folder(home: Option<&Path>) -> Option<PathBuf> {
    let told = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // No home is made.
    let of_home = |home: PathBuf| home.is_dir().then(|| home.join(".cache"));
    let caches = match home {
        Some(home) => of_home(home.to_owned()),
        None => told("XDG_CACHE_HOME").or_else(|| of_home(told("HOME")?)),
    };
    Some(caches?.join("ctrace/timelines"))
}

impl Saved {
    /// Finds the place for a recording in these files. `None` if there can be none.
    pub(super) fn find(folder: &Path, files: &[String]) -> Option<Self> {
        let states = files.iter().map(|file| state(Path::new(file)));
        let known_by = states.collect::<io::Result<Vec<_>>>().ok()?.concat();
        let mut name = DefaultHasher::new();
        known_by.hash(&mut name);
        let name = format!("{:016x}{END}", name.finish());
        // Other users learn nothing of what was recorded.
        files::make_folder(folder, 0o700).ok()?;
        let place = Place::find(&folder.join(name), Owner::Ours).ok()?;
        Some(Self { place, known_by })
    }

    /// Reads the timeline.
    pub(super) fn read(&self, recording: &Recording) -> Option<Timeline> {
        let file = self.place.open_to_read().ok()?;
        let length = size_of_ours(&file).filter(|length| *length <= MOST_OF_FILE)?;
        let mut bytes = Vec::with_capacity(length as usize);
        (&file).take(MOST_OF_FILE).read_to_end(&mut bytes).ok()?;
        let timeline = Timeline::load(recording, &self.known_by, bytes)?;
        // The order of files is by their last use. Without it, the order is that of their making.
        let _ = file.set_modified(SystemTime::now());
        Some(timeline)
    }

    /// Writes the timeline, and removes files that were not used for long.
    pub(super) fn write(
        &self,
        timeline: &Timeline,
        recording: &Recording,
    ) -> Result<(), FileError> {
        let temporary = self.place.temporary(OFlags::WRONLY)?;
        let failed = |error| FileError::Io { path: self.place.path().to_owned(), error };
        let file = temporary.file().map_err(failed)?;
        timeline.save(recording, &self.known_by, file).map_err(failed)?;
        // One that is there could not be used.
        self.place.remove().map_err(failed)?;
        temporary.persist_new(&self.place)?;
        self.prune(MOST_OF_ALL).map_err(failed)
    }

    /// Removes the files that were used longest ago, until the others have so many bytes at most.
    fn prune(&self, most: u64) -> io::Result<()> {
        let mut all = Vec::new();
        for name in self.place.names()? {
            let place = self.place.sibling(&name);
            let is_left = files::replaced_by(&name).is_some_and(|name| name.ends_with(END));
            let is_one = name.as_encoded_bytes().ends_with(END.as_bytes());
            let Some(file) = place.open_to_read().ok().filter(|_| is_left || is_one) else {
                continue;
            };
            match size_of_ours(&file) {
                Some(_) if is_left => place.remove_unless_written(&file)?,
                Some(size) => all.push((file.metadata()?.modified()?, size, place)),
                None => {}
            }
        }
        all.sort_by_key(|(used, ..)| std::cmp::Reverse(*used));
        let mut bytes = 0_u64;
        for (_, size, place) in all {
            bytes = bytes.saturating_add(size);
            if bytes > most {
                place.remove()?;
            }
        }
        Ok(())
    }
}

/// Returns the size of a file, if it is one of this user's that nobody else can write.
fn size_of_ours(file: &File) -> Option<u64> {
    let state = file.metadata().ok()?;
    let is_ours = state.uid() == geteuid().as_raw() && state.mode() & 0o022 == 0;
    (state.is_file() && is_ours).then_some(state.len())
}

/// Returns what changes with a file.
fn state(path: &Path) -> io::Result<Vec<u8>> {
    let state = path.metadata()?;
    if !state.is_file() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let times = [state.mtime(), state.mtime_nsec(), state.ctime(), state.ctime_nsec()];
    let numbers = [state.dev(), state.ino(), state.size()].into_iter();
    let numbers = numbers.chain(times.map(i64::cast_unsigned));
    Ok(numbers.flat_map(u64::to_le_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::of_chunks;
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::atomic::AtomicU64;

    /// Writes a recording of so many chunks, and returns it with its file.
    fn recorded(folder: &Path, name: &str, chunks: u64) -> (Recording, [String; 1]) {
        let file = folder.join(name);
        fs::write(&file, of_chunks(chunks)).expect("written");
        let recording = Recording::open(fs::File::open(&file).expect("there")).expect("sound");
        (recording, [file.display().to_string()])
    }

    fn timeline(recording: &Recording) -> Timeline {
        Timeline::build(recording, &AtomicU64::new(0)).expect("there is room")
    }

    #[test]
    fn a_timeline_is_kept_until_its_recording_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = folder.path().join("new/cache");
        let (recording, file) = recorded(folder.path(), "one.ctrace", 20);
        let saved = Saved::find(&cache, &file).expect("a place");
        assert!(saved.read(&recording).is_none());
        let built = timeline(&recording);
        saved.write(&built, &recording).expect("written");
        let again = Saved::find(&cache, &file).expect("a place");
        let kept = again.read(&recording).expect("it is there");
        assert_eq!(kept.threads(), built.threads());
        saved.write(&built, &recording).expect("written in place of the other");
        // A longer recording under the same name.
        let (longer, file) = recorded(folder.path(), "one.ctrace", 21);
        let other = Saved::find(&cache, &file).expect("a place");
        assert!(other.read(&longer).is_none() && again.read(&longer).is_none());
    }

    #[test]
    fn a_file_that_others_can_write_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let (recording, file) = recorded(folder.path(), "one.ctrace", 5);
        let saved = Saved::find(folder.path(), &file).expect("a place");
        saved.write(&timeline(&recording), &recording).expect("written");
        let mode = |mode| {
            let to = Permissions::from_mode(mode);
            fs::set_permissions(saved.place.path(), to).expect("ours");
        };
        assert_eq!(fs::metadata(saved.place.path()).expect("there").mode() & 0o137, 0);
        mode(0o620);
        assert!(saved.read(&recording).is_none());
        mode(0o600);
        assert!(saved.read(&recording).is_some());
    }

    #[test]
    fn those_that_were_used_last_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = folder.path().join("cache");
        let all: Vec<_> = [4, 5, 6]
            .into_iter()
            .map(|chunks| {
                let (recording, file) =
                    recorded(folder.path(), &format!("{chunks}.ctrace"), chunks);
                let saved = Saved::find(&cache, &file).expect("a place");
                saved.write(&timeline(&recording), &recording).expect("written");
                (recording, saved)
            })
            .collect();
        fs::write(cache.join("other"), "of somebody").expect("written");
        assert!(all[0].1.read(&all[0].0).is_some(), "this one is used");
        let size = |saved: &Saved| fs::metadata(saved.place.path()).map_or(0, |file| file.len());
        all[0].1.prune(size(&all[0].1) + size(&all[2].1)).expect("removed");
        let left: Vec<bool> = all.iter().map(|(of, saved)| saved.read(of).is_some()).collect();
        assert_eq!(left, [true, false, true]);
        assert!(cache.join("other").exists());
    }
}
