//! The options of the reader.

use super::{DEFAULT, LOCKS, Needs, VIEWS, View};
use ctrace_core::report::numbers::NumberId;
use ctrace_core::report::render::RowKind;
use ctrace_core::report::render::columns::{self, UnknownColumn};
use ctrace_core::report::render::rows::RowChoice;
use ctrace_core::report::{Extras, Report};
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

/// The columns beside a time axis, in any view.
const LABELS: usize = 10;

/// An existing view.
#[derive(Clone, Copy)]
pub struct ViewName(&'static View);

impl ViewName {
    pub(crate) fn view(self) -> &'static View {
        self.0
    }

    /// Returns all views.
    pub fn all() -> impl Iterator<Item = Self> {
        VIEWS.iter().map(|view| Self(view))
    }
}

impl From<&'static View> for ViewName {
    fn from(view: &'static View) -> Self {
        Self(view)
    }
}

impl FromStr for ViewName {
    type Err = ViewError;

    fn from_str(name: &str) -> Result<Self, ViewError> {
        Self::all().find(|view| view.0.name == name).ok_or_else(|| ViewError::UnknownView {
            given: ctrace_core::report::render::clean::clean(name).into_owned(),
            valid: Self::all().map(|view| view.0.name).collect::<Vec<_>>().join(", "),
        })
    }
}

impl PartialEq for ViewName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ViewName {}

impl fmt::Display for ViewName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.name)
    }
}

impl fmt::Debug for ViewName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ViewName({})", self.0.name)
    }
}

/// How much is said below the tables of a report whose reader cannot ask for more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SaidBelow {
    /// All of it.
    #[default]
    Whole,
    /// Long notes are cut on a terminal.
    ShortNotes,
    /// Each legend, remark and note ends after its first line.
    FirstLines,
}

/// The chosen views and rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewOptions {
    /// The views in this order; if empty, the default ones.
    pub views: Vec<ViewName>,
    pub sort: Option<String>,
    pub top: Option<usize>,
    pub min_percent: Option<f64>,
    /// The offset from a time of the report to wall-clock time in the reader's zone. Without it, no
    /// clock times are shown.
    pub epoch_offset_ns: Option<i64>,
    /// Also list functions that were never called.
    pub show_zero: bool,
    /// Show times with the cost of probes, even where it is known.
    pub raw: bool,
    /// The functions that the user named without a wildcard. Of those that were not called, they are
    /// told first.
    pub named: Vec<String>,
    /// True if the reader cannot choose the rows, as after `top`: nothing is said of options.
    pub fixed: bool,
    /// How much is said below the tables even so.
    pub said_below: SaidBelow,
    /// The sentences of the report on the whole: reports on its parts do not repeat them.
    pub said: HashSet<String>,
}

impl ViewOptions {
    /// Checks the options before there is a report.
    pub(crate) fn check(&self, as_csv: bool) -> Result<(), ViewError> {
        if as_csv && self.views.len() > 1 {
            return Err(ViewError::OneViewForCsv { given: self.views.len() });
        }
        let Some(sort) = &self.sort else { return Ok(()) };
        let views = self.views_or_default();
        let tables: Vec<_> = views.iter().map(|view| view.view().table).collect();
        Ok(columns::check(sort, &tables)?)
    }

    /// Checks the options for intervals of a session, before anything is attached.
    pub fn check_intervals(&self) -> Result<(), ViewError> {
        match self.views.iter().find(|name| name.view().needs.every_call()) {
            Some(name) => Err(ViewError::NeedsEveryCall { view: name.view().name }),
            None => Ok(()),
        }
    }

    /// Checks the options for a session that counts calls in the kernel, before anything is attached.
    pub(crate) fn check_counted(&self) -> Result<(), ViewError> {
        let is_of_calls = |view: &View| {
            let needs = view.needs;
            needs.every_call() || needs == Needs::Ctrack || view.table == RowKind::Threads
        };
        if let Some(name) = self.views.iter().find(|name| is_of_calls(name.view())) {
            return Err(ViewError::NotCounted { view: name.view().name });
        }
        let number = self.sort.as_deref().and_then(NumberId::named).map(NumberId::number);
        match number.filter(|number| number.takes_single_calls()) {
            Some(number) => Err(ViewError::ColumnNotCounted { column: number.name }),
            None => Ok(()),
        }
    }

    /// Returns the optional data that the views need on a screen of this width.
    pub fn extras(&self, width: Option<usize>) -> Extras {
        let mut extras = Extras::default();
        if let Some(width) = width {
            extras.slices = width.saturating_sub(LABELS).max(1);
        }
        for name in &self.views {
            name.view().needs.add_to(&mut extras, self.top);
        }
        extras
    }

    pub(in crate::ui) fn selection(&self) -> RowChoice {
        RowChoice {
            sort: self.sort.clone(),
            top: self.top,
            min_percent: self.min_percent,
            show_zero: self.show_zero,
        }
    }

    /// Returns the views of a table. Locks are shown unasked where some are found.
    pub(in crate::ui) fn views_of(&self, report: &Report) -> Vec<ViewName> {
        let mut views = self.views_or_default();
        let has_locks = report.locks.as_ref().is_some_and(|found| !found.locks.is_empty());
        if self.views.is_empty() && has_locks {
            views.push(ViewName(&LOCKS));
        }
        views
    }

    pub(in crate::ui) fn views_or_default(&self) -> Vec<ViewName> {
        if self.views.is_empty() {
            DEFAULT.iter().map(|view| ViewName(view)).collect()
        } else {
            self.views.clone()
        }
    }
}

/// The reason why a report cannot be shown as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    #[error(transparent)]
    UnknownColumn(#[from] UnknownColumn),
    #[error("no view is called '{given}': choose one of {valid}")]
    UnknownView { given: String, valid: String },
    #[error(
        "the view '{view}' needs every call, and --interval does not keep them: leave it out, or use \
         `ctrace record`, then `ctrace report trace.ctrace --view {view} --interval SECONDS`"
    )]
    NeedsEveryCall { view: &'static str },
    #[error(
        "the view '{view}' needs every call, and --aggregate keeps none: leave out --aggregate, or show \
         another view"
    )]
    NotCounted { view: &'static str },
    #[error(
        "the column '{column}' takes the times of single calls, and --aggregate keeps none: leave out \
         --aggregate, or sort by another column"
    )]
    ColumnNotCounted { column: &'static str },
    #[error("CSV holds one view, and {given} were asked for: choose one with --view")]
    OneViewForCsv { given: usize },
}
