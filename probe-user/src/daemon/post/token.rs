//! Reads a token from a file, each time that it is needed: it may be replaced at any time.

use hyper::header::HeaderValue;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use std::{fs::File, io, io::Read as _, path::Path};

/// The limit of a token, in bytes.
const LONGEST: u64 = 8 << 10;

/// Returns the value of `Authorization`.
pub(crate) fn authorization(path: &Path) -> io::Result<HeaderValue> {
    let wrong = |what: &str| io::Error::other(format!("the token in {}: {what}", path.display()));
    // A pipe, or the owner of a lease, would make us wait.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open(path, flags, Mode::empty()).map_err(|error| wrong(&error.to_string()))?;
    let state = fstat(&file).map_err(|error| wrong(&error.to_string()))?;
    if FileType::from_raw_mode(state.st_mode) != FileType::RegularFile {
        return Err(wrong("it is no file"));
    }
    let file = File::from(file);
    let mut token = String::new();
    let read = file.take(LONGEST + 1).read_to_string(&mut token);
    read.map_err(|error| wrong(&error.to_string()))?;
    let token = token.trim();
    if token.is_empty() || token.len() as u64 > LONGEST {
        return Err(wrong("there is none, or it is too long"));
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| wrong("it has signs that no header may have"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_and_never_told() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("token");
        assert!(authorization(&path).is_err_and(|error| error.to_string().contains("token in")));
        assert!(authorization(dir.path()).is_err());
        // Nobody writes into it, and yet nobody waits.
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR).expect("made");
        assert!(authorization(&pipe).is_err_and(|error| error.to_string().contains("no file")));
        for (content, value) in [
            ("s3cret\n", Some("Bearer s3cret")),
            ("", None),
            ("s3cret\nX: y", None),
            ("\u{0}s3cret", None),
        ] {
            std::fs::write(&path, content).expect("written");
            let read = authorization(&path);
            let told = format!("{read:?}");
            assert!(!told.contains("s3cret"), "{told}");
            assert_eq!(read.ok().as_ref().and_then(|read| read.to_str().ok()), value, "{content}");
        }
        std::fs::write(&path, vec![b'x'; LONGEST as usize + 1]).expect("written");
        assert!(authorization(&path).is_err());
    }
}
