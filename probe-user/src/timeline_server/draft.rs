//! The answers about a large recording before all of its calls were read: what it is, and pictures.

use super::{
    answer::{BINARY, answer},
    asked::{Result, STOPPED},
    params::Params,
    picture::{Next, encode, view},
    shown::Source,
};
use crate::connections::http::Answer;
use ctrace_core::{stop::Stop, timeline::Draft};

/// Answers with the picture of a draft. The page asks again until all was read.
pub(super) fn picture(
    source: &Source,
    draft: &Draft,
    params: &Params<'_>,
    stop: &Stop,
) -> Result<Answer> {
    let start = source.recording.period().0;
    let asked = view(params, start)?;
    let (view, picture) = draft.picture(&source.recording, &asked, stop).ok_or(STOPPED)?;
    Ok(answer(BINARY, encode(&picture, &view, Next::Exact, start, &source.recording)))
}
