//! Columns that tell where functions are in the source.

use crate::ui::output::style::Tone;
use crate::ui::table::grid::{Cell, GridColumn};
use crate::ui::text::names;
use ctrace_core::report::FunctionReport;
use ctrace_core::report::render::clean::clean;

/// The most columns that a file takes in a table of limited width.
const FILE_ROOM: usize = 18;

/// Returns the file under this heading, or the object if no file is known. `narrow`: without its
/// folder.
pub(crate) fn file_column(heading: &str, list: &[&FunctionReport], narrow: bool) -> GridColumn {
    let heading = if list.iter().any(|f| f.file.is_some()) { heading } else { "object" };
    let cells = list.iter().map(|f| {
        let place = clean(f.file.as_deref().unwrap_or(&f.object)).into_owned();
        let place = match place.rsplit_once('/') {
            Some((_, name)) if narrow => names::cut_start(name, FILE_ROOM),
            None if narrow => names::cut_start(&place, FILE_ROOM),
            _ => place,
        };
        Cell::toned(place, Tone::Dim)
    });
    GridColumn::left(heading, cells)
}

/// Returns the lines, if any is known.
pub(crate) fn line_column(list: &[&FunctionReport]) -> Option<GridColumn> {
    list.iter().any(|f| f.line.is_some()).then(|| {
        let lines = list.iter().map(|f| f.line.map_or_else(String::new, |n| n.to_string()));
        GridColumn::right("line", lines)
    })
}
