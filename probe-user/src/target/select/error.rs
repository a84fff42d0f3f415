//! The reasons why nothing can be traced.

use super::not_found::NotFound;
use super::pattern::PatternError;

/// The reason why nothing can be traced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    #[error(transparent)]
    Pattern(#[from] PatternError),
    #[error(
        "nothing was chosen; say what with -f GLOB, -u GLOB or -m GLOB, `ctrace list` shows what there is"
    )]
    NothingAsked,
    #[error("{}", NotFound::line(.0))]
    NothingFound(Vec<NotFound>),
    #[error(
        "{found} functions and scopes match, more than the limit of {limit}; narrow the pattern, exclude some with -x GLOB, or raise the limit with --max-functions {found}"
    )]
    TooMany { found: usize, limit: usize },
}
