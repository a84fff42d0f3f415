//! Tests that root writes safely in folders of others. Without root, the kernel's own rights
//! decide, and nothing is checked here.

use super::*;
use rustix::fs::{OFlags, chown};
use rustix::process::{Gid, Uid, geteuid};
use std::{
    fs::{self, Permissions},
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

/// A folder with a file that must not change, and one that a stranger can write, too.
struct Scene {
    folder: tempfile::TempDir,
}

const STRANGER: u32 = 3_999_999;

fn scene(mode: u32) -> Option<Scene> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("victim"), "precious").unwrap();
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(shared, Permissions::from_mode(mode)).unwrap();
    geteuid().is_root().then_some(Scene { folder })
}

impl Scene {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn give_away(&self, name: &str) {
        chown(self.path(name), Some(Uid::from_raw(STRANGER)), None).unwrap();
    }

    /// Puts the stranger's link into the shared folder.
    fn plant(&self, name: &str, to: &Path) {
        let link = self.path("shared").join(name);
        symlink(to, &link).unwrap();
        rustix::fs::chownat(
            rustix::fs::CWD,
            &link,
            Some(Uid::from_raw(STRANGER)),
            None::<Gid>,
            rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
        )
        .unwrap();
    }

    fn write(&self, name: &str) -> Result<(), FileError> {
        write(&self.path(name))
    }

    fn victim(&self) -> String {
        fs::read_to_string(self.path("victim")).unwrap()
    }
}

fn write(path: &Path) -> Result<(), FileError> {
    let mut file = Place::find(path, Owner::Ours)?.open(OFlags::WRONLY)?;
    file.write_all(b"overwritten").unwrap();
    Ok(())
}

#[test]
fn links_of_strangers_are_refused_and_what_they_lead_to_is_untouched() {
    for mode in [0o1777, 0o777, 0o775] {
        let Some(scene) = scene(mode) else { return };
        scene.plant("out", &scene.path("victim"));
        scene.plant("new", &scene.path("not-there"));
        scene.plant("folder", scene.folder.path());
        fs::hard_link(scene.path("victim"), scene.path("shared/hard")).unwrap();
        for (name, why) in [
            ("shared/out", "shared/out is a symbolic link that others could have put there"),
            ("shared/new", "symbolic link"),
            ("shared/folder/victim", "shared/folder is a symbolic link"),
            ("shared/hard", "other names"),
        ] {
            let error = scene.write(name).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains('\n'), "{mode:o} {name}: {error}");
        }
        assert_eq!(scene.victim(), "precious");
        assert!(!scene.path("not-there").exists());
        assert!(make_folder(&scene.path("shared/folder/made"), 0o755).is_err());
        assert!(!scene.path("made").exists());
    }
}

#[test]
fn links_that_only_root_can_have_put_there_are_followed() {
    let Some(scene) = scene(0o1777) else { return };
    symlink(scene.path("victim"), scene.path("link")).unwrap();
    symlink("../victim", scene.path("shared/ours")).unwrap();
    for name in ["link", "shared/ours"] {
        fs::write(scene.path("victim"), "precious").unwrap();
        scene.write(name).unwrap();
        assert_eq!(scene.victim(), "overwritten", "{name}");
    }
    let [(link, to)] = &Place::judge(&scene.path("link")).unwrap()[..] else { panic!("one link") };
    assert_eq!((link, to), (&scene.path("link"), &scene.path("victim")));
}

#[test]
fn files_of_strangers_are_refused_where_they_can_put_them() {
    let Some(scene) = scene(0o1777) else { return };
    fs::write(scene.path("shared/theirs"), "").unwrap();
    scene.give_away("shared/theirs");
    let error = scene.write("shared/theirs").unwrap_err().to_string();
    assert!(error.contains("somebody else's file"), "{error}");
    // A file is fine in root's folder and in the stranger's.
    fs::write(scene.path("theirs"), "").unwrap();
    scene.give_away("theirs");
    scene.write("theirs").unwrap();
    scene.give_away("shared");
    scene.write("shared/theirs").unwrap();
}

/// Opening the pipe would wait for a reader.
#[test]
fn pipes_are_refused_where_others_can_put_them_unless_somebody_named_them() {
    let Some(scene) = scene(0o1777) else { return };
    let pipe = |name: &str| {
        let path = scene.path(name);
        let (fifo, mode) = (rustix::fs::FileType::Fifo, 0o600.into());
        rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, mode, 0).unwrap();
        path
    };
    let open = |path: &Path, owner| {
        Place::find(path, owner).and_then(|place| place.open(OFlags::WRONLY | OFlags::NONBLOCK))
    };
    let (planted, named) = (pipe("shared/pipe"), pipe("pipe"));
    for owner in [0, STRANGER] {
        chown(scene.path("shared"), Some(Uid::from_raw(owner)), None).unwrap();
        let error = open(&planted, Owner::Ours).unwrap_err().to_string();
        assert!(error.contains("no regular file") && !error.contains('\n'), "{error}");
        let error = Place::judge(&planted).unwrap_err().to_string();
        assert!(error.contains("no regular file"), "{error}");
    }
    assert!(Place::judge(&named).is_ok());
    // The kernel's error: nobody reads them.
    for (path, owner) in [(&named, Owner::Ours), (&planted, Owner::Caller)] {
        let error = open(path, owner).unwrap_err();
        assert!(matches!(error, FileError::Io { .. }), "{error}");
    }
}

#[test]
fn new_files_are_private_and_parents_are_made() {
    let Some(scene) = scene(0o1777) else { return };
    make_folder(&scene.path("shared/a/b"), 0o750).unwrap();
    scene.write("shared/a/b/new").unwrap();
    let mode = |name: &str| fs::metadata(scene.path(name)).unwrap().mode() & 0o7777;
    assert_eq!([mode("shared/a/b/new"), mode("shared/a/b")].map(|mode| mode & !0o640), [0, 0o110]);
    assert!(scene.write("shared/a/").is_err(), "a folder");
    assert!(scene.write("shared/c/new").is_err(), "no such folder");
}

#[test]
fn what_the_kernel_links_is_followed() {
    write(Path::new("/dev/null")).unwrap();
    let (mut read, written) = std::io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&written));
    write(Path::new(&path)).unwrap();
    let mut seen = [0; 11];
    std::io::Read::read_exact(&mut read, &mut seen).unwrap();
    assert_eq!(&seen, b"overwritten");
}

#[test]
fn one_file_is_written_by_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let place = || Place::find(&folder.path().join("one"), Owner::Ours).unwrap();
    let first = place().open_locked(OFlags::RDWR).unwrap();
    let error = place().open_locked(OFlags::RDWR).unwrap_err().to_string();
    assert!(error.contains("another ctrace is writing it"), "{error}");
    drop(first);
    place().open_locked(OFlags::RDWR).unwrap();
}

#[test]
fn a_temporary_file_takes_the_place_of_no_other_than_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::find(&folder.path().join("one"), Owner::Ours).unwrap();
    let old = FileId::of(&place.open_locked(OFlags::RDWR).unwrap()).unwrap();
    let new = place.temporary(OFlags::RDWR).unwrap();
    let file = new.file().unwrap();
    new.persist(&place, old).unwrap();
    assert!(place.is_still(&file));
    assert!(place.open_locked(OFlags::RDWR).is_err(), "the lock goes with it");
    let error = place.temporary(OFlags::RDWR).unwrap().persist(&place, old).unwrap_err();
    assert!(matches!(error, FileError::Replaced { .. }), "{error}");
    assert_eq!(
        place.names().unwrap().iter().filter(|name| *name != "." && *name != "..").count(),
        1
    );
}

#[test]
fn a_socket_is_not_put_where_others_can_take_its_place() {
    let Some(scene) = scene(0o777) else { return };
    let path = scene.path("shared/socket");
    let error = SocketFile::listen(&path, None).err().unwrap().to_string();
    assert!(error.contains("others can write the folder"), "{error}");
    fs::set_permissions(scene.path("shared"), Permissions::from_mode(0o1777)).unwrap();
    let _listening = SocketFile::listen(&path, Some(12)).unwrap();
    let meta = fs::metadata(&path).unwrap();
    assert_eq!((meta.mode() & 0o777, meta.gid()), (0o660, 12));
}
