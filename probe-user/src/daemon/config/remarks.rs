//! What is allowed, and hardly meant.

use super::{Config, Output, ReportKind, Reports, Target};
use std::path::Path;

impl Config {
    /// A line for each thing that the operator may want to know before it goes wrong.
    pub fn remarks(&self) -> Vec<String> {
        let folders = self.targets.iter().filter_map(without_folder);
        let pairs = self.targets.iter().enumerate();
        let shared = pairs.filter_map(|(at, target)| shared_file(&self.targets[..at], target));
        folders.chain(shared).collect()
    }
}

fn file(target: &Target) -> Option<&Path> {
    match &target.reports.output {
        Output::File(path) if target.reports.kind != ReportKind::None => Some(path),
        _ => None,
    }
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

/// Reports of several targets may go to one file if it is rotated as one, and read as one.
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
