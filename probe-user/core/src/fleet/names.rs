//! The names by which functions are the same in all files.

use crate::formats::labels;
use crate::function::FunctionKind;
use crate::report::FunctionReport;
use std::sync::Arc;

/// The names of a function, without control characters and of bounded length.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionNames {
    /// The shown name: with parameters where these tell functions apart.
    pub function: Arc<str>,
    pub object: Arc<str>,
    pub kind: FunctionKind,
    pub group: Option<Arc<str>>,
    pub short_name: Option<Arc<str>>,
    pub full_name: Option<Arc<str>>,
}

impl FunctionNames {
    pub(super) fn of(row: &FunctionReport) -> Self {
        let text = |text: &Arc<str>| -> Arc<str> { labels::text(text).into() };
        Self {
            function: text(&row.name),
            object: text(&row.object),
            kind: row.kind,
            group: row.group.as_ref().map(text),
            short_name: row.short_name.as_ref().map(text),
            full_name: row.full_name.as_ref().map(text),
        }
    }
}
