//! Remarks on configurations that are valid but hardly intended.

use super::{Config, Output, ReportKind, Reports, Target};
use crate::{
    daemon::metrics::listen::Listen,
    files::{FileError, Place, judge_socket},
};
use rustix::fs::{Access, access};
use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

impl Config {
    /// Returns a line for each possible problem that the operator should know.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let folders = self.targets.iter().filter_map(without_folder);
        let pairs = self.targets.iter().enumerate();
        let shared = pairs.filter_map(|(at, target)| shared_file(&self.targets[..at], target));
        let programs = self.targets.iter().flat_map(missing_programs);
        let token = self.pprof.token_file.iter().filter_map(|path| token(path));
        folders.chain(shared).chain(programs).chain(token).chain(self.paths()).collect()
    }

    /// Returns the links that would be followed, with their targets, and refused paths.
    fn paths(&self) -> Vec<String> {
        let outputs = self.targets.iter().filter_map(|target| {
            let path = file(target)?;
            Some((format!("target {}: `output`", target.id), path, Place::judge(path)))
        });
        let folder = &self.daemon.recordings.folder;
        let recordings = ("`recordings`".to_owned(), &**folder, Place::judge(&folder.join("x")));
        let sockets = self.sockets().map(|(key, path)| (key.to_owned(), path, judge_socket(path)));
        let fleet = self.fleet.folder.as_ref().map(|folder| {
            ("`folder` in [fleet]".to_owned(), &**folder, Place::judge(&folder.join("x")))
        });
        let store = self.fleet.store.as_ref().and_then(|store| store.strip_prefix("file://"));
        let store = store.map(Path::new).map(|folder| {
            ("`store` in [fleet]".to_owned(), folder, Place::judge(&folder.join("x")))
        });
        let fleet_missing = self.fleet.folder.iter().filter_map(|folder| unmakeable(folder));
        let judged = outputs.chain([recordings]).chain(fleet).chain(store).chain(sockets);
        let told = judged.flat_map(|(key, path, judged)| told(&key, path, judged));
        told.chain(fleet_missing).collect()
    }

    /// Returns why a daemon with this configuration could not have its sockets.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.sockets().find_map(|(key, path)| match judge_socket(path) {
            // The folder may still be made.
            Ok(_) | Err(FileError::Io { .. }) => None,
            Err(error) => Some(format!("{key}: {error}")),
        })
    }

    fn sockets(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let metrics = match &self.metrics.listen {
            Some(Listen::Socket(path)) => Some(("`listen` in [metrics]", &**path)),
            _ => None,
        };
        [("`socket`", &*self.daemon.socket)].into_iter().chain(metrics)
    }
}

fn told(key: &str, path: &Path, judged: Result<Vec<(PathBuf, PathBuf)>, FileError>) -> Vec<String> {
    match judged {
        Ok(links) => links
            .iter()
            .map(|(link, to)| {
                let (path, link, to) = (path.display(), link.display(), to.display());
                format!("{key} {path}: the link {link} is followed, to {to}")
            })
            .collect(),
        // Folders are made, or reported elsewhere.
        Err(FileError::Io { .. }) => Vec::new(),
        Err(error) => vec![format!("{key} is refused: {error}")],
    }
}

fn file(target: &Target) -> Option<&Path> {
    match &target.reports.output {
        Output::File(path) if target.reports.kind != ReportKind::None => Some(path),
        _ => None,
    }
}

fn missing_programs(target: &Target) -> impl Iterator<Item = String> {
    let literal = target.matching.exe.iter().filter_map(|pattern| pattern.literal_path());
    literal
        .filter(|path| !path.exists())
        .map(|path| format!("target {}: there is no program {} (`exe`)", target.id, path.display()))
}

fn token(path: &Path) -> Option<String> {
    let shown = path.display();
    match path.metadata() {
        Ok(state) if state.is_file() => (state.mode() & 0o077 != 0)
            .then(|| format!("others than its owner can use {shown} (`token_file`): chmod 600")),
        _ => Some(format!("there is no file {shown} (`token_file`): profiles wait until there is")),
    }
}

/// Returns a line if the folder of the fleet is not there and cannot be made.
fn unmakeable(folder: &Path) -> Option<String> {
    let there = folder.ancestors().find(|path| path.symlink_metadata().is_ok())?;
    let why = match there.is_dir() {
        false => "is not a folder",
        true if access(there, Access::WRITE_OK | Access::EXEC_OK).is_err() => {
            "cannot be written to"
        }
        true => return None,
    };
    Some(format!(
        "`folder` in [fleet] {}: {} {why}, so there will be no tables",
        folder.display(),
        there.display()
    ))
}

fn without_folder(target: &Target) -> Option<String> {
    let folder = file(target)?.parent()?;
    let is_missing = !folder.as_os_str().is_empty() && !folder.is_dir();
    is_missing.then(|| {
        let (id, folder) = (&target.id, folder.display());
        format!(
            "target {id}: there is no folder {folder} (`output`): reports are lost until there is"
        )
    })
}

/// Finds targets that share a file. That is fine if it is rotated as one and read as one.
fn shared_file(earlier: &[Target], target: &Target) -> Option<String> {
    let path = file(target)?;
    let other = earlier.iter().find(|other| file(other) == Some(path))?;
    let form =
        |of: &Reports| (of.kind, of.rotate_bytes, of.rotate_age, of.keep_files, of.keep_bytes);
    (form(&other.reports) != form(&target.reports)).then(|| {
        format!(
            "targets {} and {} write to {}, each in its own form, or rotating it in its own way",
            other.id,
            target.id,
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: [&str; 2], wanted: &[&str]) {
        let target = |id, keys| format!("[[target]]\nid = \"{id}\"\nname = \"{id}\"\n{keys}\n");
        let text = target("a", keys[0]) + &target("b", keys[1]);
        let remarks = Config::parse(&text).unwrap().remarks();
        assert_eq!(remarks.len(), wanted.len(), "{remarks:?}");
        for (remark, wanted) in remarks.iter().zip(wanted) {
            assert!(remark.contains(wanted), "{remark}");
        }
    }

    #[test]
    fn sockets_that_would_be_refused_are_told() {
        let refusal = |text: &str| Config::parse(text).unwrap().refusal().unwrap_or_default();
        let shared = tempfile::tempdir().unwrap();
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(shared.path(), everybody).unwrap();
        let socket = shared.path().join("s");
        let target = "[[target]]\nid = \"a\"\nname = \"a\"\n";
        let metrics = format!("[metrics]\nlisten = \"unix:{}\"\n{target}", socket.display());
        assert!(refusal(&metrics).starts_with("`listen` in [metrics]: "), "{}", refusal(&metrics));
        let control = format!("[daemon]\nsocket = \"{}\"\n{target}", socket.display());
        assert!(refusal(&control).starts_with("`socket`: "), "{}", refusal(&control));
        assert_eq!(refusal(target), "");
    }

    #[test]
    fn a_token_that_is_not_there_or_that_others_can_read_is_told() {
        let remarks = |file: &str| {
            let text = format!("[pprof]\nparca = \"http://a\"\ntoken_file = \"{file}\"\n");
            Config::parse(&text).unwrap().remarks()
        };
        let dir = tempfile::tempdir().unwrap();
        let token = dir.path().join("token");
        let missing = remarks(&token.display().to_string());
        assert!(missing.len() == 1 && missing[0].contains("(`token_file`)"), "{missing:?}");
        std::fs::write(&token, "s3cret").unwrap();
        let allow = |mode| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&token, mode).unwrap();
        };
        allow(0o640);
        let open = remarks(&token.display().to_string());
        assert!(open.len() == 1 && open[0].contains("others than its owner"), "{open:?}");
        allow(0o600);
        assert_eq!(remarks(&token.display().to_string()), [""; 0]);
    }

    #[test]
    fn a_folder_of_the_fleet_that_cannot_be_made_is_told() {
        let remarks = |folder: &Path| {
            let text = format!("[fleet]\nfolder = \"{}\"\n", folder.display());
            Config::parse(&text).unwrap().remarks()
        };
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let told = remarks(&file.join("fleet"));
        assert!(told.len() == 1 && told[0].contains("file is not a folder"), "{told:?}");
        assert_eq!(remarks(&dir.path().join("new/fleet")), [""; 0]);
    }

    #[test]
    fn what_is_hardly_meant_is_told() {
        let same = "output = \"/tmp/r.jsonl\"";
        check(["", ""], &[]);
        check([same, same], &[]);
        check([same, "output = \"/no/such/folder/r\"\nreport = \"none\""], &[]);
        check([same, "output = \"/tmp/r.jsonl\"\nreport = \"table\""], &["targets a and b"]);
        check([same, "output = \"/tmp/r.jsonl\"\nrotate_size = \"1MiB\""], &["targets a and b"]);
        check(
            ["", "output = \"/no/such/folder/r\""],
            &["target b: there is no folder /no/such/folder"],
        );
    }
}
