//! Sends one file ([`put`]), and looks for it in the store ([`check`]).
//!
//! An object is there as a whole or not at all: stores make it so for a request, and for an upload of
//! several parts once it is complete. An upload that fails is cancelled, so that no parts of it stay.

use crate::{
    phase::{Phase, reached},
    reason::{is_of_all, reason},
};
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload, PutResult, path::Path};
use std::{fmt, fs::File, io, os::unix::fs::FileExt as _, time::Duration};
use tokio::{sync::watch, time::timeout};

/// Files up to this size are sent by one request, in bytes.
const WHOLE: u64 = 16 << 20;
/// The size of a part. Stores want 5 MiB at least, and 10,000 parts at most.
const PART: u64 = 8 << 20;
/// Time limit for cancelling.
const CANCEL: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(crate) enum UploadError {
    Store(object_store::Error),
    /// The file cannot be read.
    File(io::Error),
    /// The object is not the file.
    Other(&'static str),
    /// The program ends.
    GivenUp,
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => f.write_str(&reason(error)),
            Self::File(error) => write!(f, "the file cannot be read: {error}"),
            Self::Other(how) => write!(f, "the store has another object: {how}"),
            Self::GivenUp => f.write_str("there is no more time"),
        }
    }
}

impl From<object_store::Error> for UploadError {
    fn from(error: object_store::Error) -> Self {
        Self::Store(error)
    }
}

impl UploadError {
    /// Returns true if no other file would fare better: the store cannot be reached or refuses us, or
    /// the program ends.
    pub(crate) fn is_of_all(&self) -> bool {
        match self {
            Self::Store(error) => is_of_all(error),
            Self::GivenUp => true,
            Self::File(_) | Self::Other(_) => false,
        }
    }
}

/// Sends a file of this size. Returns its tag, if the store tells one.
pub(crate) async fn put(
    store: &dyn ObjectStore,
    object: &Path,
    (file, size): (&File, u64),
    phase: &mut watch::Receiver<Phase>,
) -> Result<Option<String>, UploadError> {
    let put = match size {
        0..=WHOLE => tokio::select! {
            put = store.put(object, part(file, 0, size)?) => put?,
            () = reached(phase, Phase::GiveUp) => return Err(UploadError::GivenUp),
        },
        _ => in_parts(store, object, (file, size), phase).await?,
    };
    Ok(put.e_tag)
}

/// Makes sure that the store has an object of this size and tag.
pub(crate) async fn check(
    store: &dyn ObjectStore,
    object: &Path,
    (size, put): (u64, Option<&str>),
    phase: &mut watch::Receiver<Phase>,
) -> Result<(), UploadError> {
    let found = tokio::select! {
        found = store.head(object) => found?,
        () = reached(phase, Phase::GiveUp) => return Err(UploadError::GivenUp),
    };
    if found.size != size {
        return Err(UploadError::Other("its size differs"));
    }
    match (put.map(tag), found.e_tag.as_deref().map(tag)) {
        (Some(put), Some(found)) if put != found => Err(UploadError::Other("its tag differs")),
        _ => Ok(()),
    }
}

/// Returns a tag as all answers of a store have it.
fn tag(text: &str) -> &str {
    text.trim_start_matches("W/").trim_matches('"')
}

fn part(file: &File, from: u64, size: u64) -> Result<PutPayload, UploadError> {
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| UploadError::Other("its size"))?];
    file.read_exact_at(&mut bytes, from).map_err(UploadError::File)?;
    Ok(bytes.into())
}

async fn in_parts(
    store: &dyn ObjectStore,
    object: &Path,
    (file, size): (&File, u64),
    phase: &mut watch::Receiver<Phase>,
) -> Result<PutResult, UploadError> {
    let mut underway = tokio::select! {
        underway = store.put_multipart(object) => underway?,
        () = reached(phase, Phase::GiveUp) => return Err(UploadError::GivenUp),
    };
    let all = async {
        let mut from = 0;
        while from < size {
            let length = PART.min(size - from);
            underway.put_part(part(file, from, length)?).await?;
            from += length;
        }
        Ok(underway.complete().await?)
    };
    let sent = tokio::select! {
        sent = all => sent,
        () = reached(phase, Phase::GiveUp) => Err(UploadError::GivenUp),
    };
    if sent.is_err() {
        // The store may be away. Then the parts stay there.
        let _ = timeout(CANCEL, underway.abort()).await;
    }
    sent
}
