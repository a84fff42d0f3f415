//! Marks of rows whose numbers need a word, and the legend that says it.
//!
//! A mark is a letter behind the function's name. The legend below the table explains those that
//! the table has.

use crate::ui::notes::waiting;
use crate::ui::output::style::{Style, Tone};
use crate::ui::table::grid::{Cell, GridColumn};
use crate::ui::text;
use ctrace_core::report::{FunctionReport, Report, render::rows::ChosenRows};

/// The share of a function's self time from which on the time of others in it is notable.
const NOTABLE: f64 = 0.1;

/// A reason to read a row with care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Frame,
    Waits,
    Recursive,
    UntilTailCall,
    ByOrder,
    Conditional,
    Unseen,
    MostlyProbes,
    OthersSelf,
    Unended,
}

impl Mark {
    const ALL: [Self; 10] = [
        Self::Frame,
        Self::Waits,
        Self::Recursive,
        Self::UntilTailCall,
        Self::ByOrder,
        Self::Conditional,
        Self::Unseen,
        Self::MostlyProbes,
        Self::OthersSelf,
        Self::Unended,
    ];

    /// Returns each letter and what it says.
    pub(crate) fn all() -> impl Iterator<Item = (char, &'static str)> {
        Self::ALL.into_iter().map(|mark| (mark.letter(), mark.legend()))
    }

    /// Those that differ between parts of the time.
    const OF_PARTS: [Self; 2] = [Self::Unseen, Self::MostlyProbes];

    /// Returns whether a row has one of these.
    fn is_of_row(self, row: &FunctionReport) -> bool {
        match self {
            Self::Unseen => row.untimed > 0 && !row.is_point(),
            // Without times there is nothing to read with care.
            Self::MostlyProbes => row.is_mostly_probes() && row.total_ns.0 > 0 && !row.is_point(),
            _ => false,
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Frame => 'f',
            Self::Waits => 'w',
            Self::Recursive => 'r',
            Self::UntilTailCall => 't',
            Self::ByOrder => 'o',
            Self::Conditional => 'c',
            Self::Unseen => 'u',
            Self::MostlyProbes => 'p',
            Self::OthersSelf => 's',
            Self::Unended => 'n',
        }
    }

    fn legend(self) -> &'static str {
        match self {
            Self::Frame => {
                "frames the program: called once in its thread; its own time may be waiting"
            }
            Self::Waits => "waits: most of its self time is no work",
            Self::Recursive => "recursive: total counts calls within calls again",
            Self::UntilTailCall => {
                "ends where it jumps to another function (tail call): time after the jump is its caller's"
            }
            Self::ByOrder => {
                "begins and ends are matched by their order alone: where one is missing, durations are wrong"
            }
            Self::Conditional => {
                "only its calls that meet a condition (--where) are in the numbers"
            }
            Self::Unseen => {
                "some calls ended unseen: mean, percentiles and max leave them out; total and self count them \
                 until the last event seen before their end"
            }
            Self::MostlyProbes => {
                "mostly the cost of probes, in all or in its usual calls: those are faster untraced"
            }
            Self::OthersSelf => {
                "its self time has time of functions that it calls, from when the budget or --depth left them out"
            }
            Self::Unended => {
                "not all of its calls have ended: their time is missing, that of what they call is not"
            }
        }
    }
}

/// The marks of all rows of a report, by function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    of_rows: Vec<Vec<Mark>>,
    /// Rows whose own time is hardly work.
    last: Vec<bool>,
}

impl Marks {
    pub(crate) fn of(report: &Report) -> Self {
        let recursive = recursive(report);
        let frames = frames(report);
        let others = has_time_of_others(report);
        let unended = is_less_than_inside(report);
        // In a part about a function, its calls are outermost.
        let is_about_calls = report.part.as_ref().is_some_and(|part| part.calls.is_some());
        let marks = report.functions.iter().enumerate().map(|(index, row)| {
            let has = |mark| match mark {
                Mark::Frame => frames[index] && !is_about_calls,
                Mark::Waits => row.calls > 0 && waits(row) || row.is_mostly_idle(),
                Mark::Recursive => recursive[index] || row.folded,
                Mark::ByOrder => row.joined_by_order && row.timed > 0,
                Mark::Conditional => row.condition.is_some(),
                Mark::UntilTailCall => row.until_tail_call && row.calls > 0,
                Mark::Unseen | Mark::MostlyProbes => mark.is_of_row(row),
                Mark::OthersSelf => others[index] || row.callees_left_out > 0,
                Mark::Unended => unended[index],
            };
            Mark::ALL.into_iter().filter(|mark| has(*mark)).collect()
        });
        let of_rows: Vec<Vec<Mark>> = marks.collect();
        // What half sleeps may still work more than all others.
        let is_last = |(row, marks): (&FunctionReport, &Vec<Mark>)| {
            let waits = marks.contains(&Mark::Waits) && (waits(row) || row.hardly_works());
            waits || marks.contains(&Mark::Frame)
        };
        let last = report.functions.iter().zip(&of_rows).map(is_last).collect();
        Self { of_rows, last }
    }

    /// Adds the marks that a function has in some part of the time. Returns the letters of each part.
    pub(crate) fn add_parts(&mut self, function: usize, parts: &[&FunctionReport]) -> Vec<String> {
        let of_part = |row| Mark::OF_PARTS.into_iter().filter(move |mark| mark.is_of_row(row));
        if let Some(marks) = self.of_rows.get_mut(function) {
            let new = |mark: &Mark| parts.iter().any(|row| mark.is_of_row(row));
            marks.extend(Mark::OF_PARTS.into_iter().filter(new));
            marks.sort_by_key(|mark| Mark::ALL.iter().position(|it| it == mark));
            marks.dedup();
        }
        parts.iter().map(|row| of_part(row).map(Mark::letter).collect()).collect()
    }

    pub(crate) fn has(&self, function: usize, mark: Mark) -> bool {
        self.of_rows.get(function).is_some_and(|marks| marks.contains(&mark))
    }

    /// Returns whether a function's own time is hardly work.
    pub(crate) fn hardly_works(&self, function: usize) -> bool {
        self.last.get(function).is_some_and(|is_last| *is_last)
    }

    /// Cuts the rows of functions off after `top`, and counts the others as left out. Unless the rows
    /// are sorted as asked, functions whose own time is hardly work come last.
    pub(crate) fn cut(&self, rows: ChosenRows, is_asked: bool, top: usize) -> (Vec<usize>, usize) {
        let is_last = |function: &usize| !is_asked && self.hardly_works(*function);
        let (last, mut shown): (Vec<_>, Vec<_>) = rows.indices.into_iter().partition(is_last);
        shown.extend(last);
        let all = shown.len();
        shown.truncate(top);
        let left_out = rows.left_out + all - shown.len();
        (shown, left_out)
    }

    /// Returns the letters of a row.
    pub(crate) fn letters(&self, function: usize) -> String {
        self.of_rows.get(function).into_iter().flatten().map(|mark| mark.letter()).collect()
    }

    /// Returns the letters as they stand right behind a name, or nothing.
    pub(crate) fn behind(&self, function: usize) -> String {
        let letters = self.letters(function);
        if letters.is_empty() { letters } else { format!(" [{letters}]") }
    }

    /// Returns the column of letters for these rows, if one of them has any.
    pub(crate) fn column(&self, functions: &[usize]) -> Option<GridColumn> {
        let letters = functions.iter().map(|&at| Cell::toned(self.letters(at), Tone::Warm));
        let column = GridColumn::left("", letters);
        (column.width() > 0).then_some(column)
    }

    /// Returns a sentence for each mark of these rows.
    pub(crate) fn sentences(&self, functions: &[usize]) -> Vec<String> {
        let is_used = |mark: &Mark| functions.iter().any(|&at| self.has(at, *mark));
        let used = Mark::ALL.into_iter().filter(is_used);
        used.map(|mark| format!("{}: {}", mark.letter(), mark.legend())).collect()
    }

    /// Returns the same as lines.
    pub(crate) fn legend(&self, functions: &[usize], style: &Style) -> String {
        let sentences = self.sentences(functions).into_iter();
        sentences.map(|line| text::paragraph(&line, Tone::Dim, style)).collect()
    }
}

/// Returns whether it is known by its name to wait.
fn waits(row: &FunctionReport) -> bool {
    // Where waits are told apart, self time has none of them.
    row.wait.is_some() || !row.split.is_known() && waiting::waits(&row.name, &row.object)
}

/// Returns for each function whether it frames its threads: it was entered once in each, and is
/// called by no other traced function but a runtime's, calls some and takes most of the time, or is `main` or a
/// runtime's function below such ones only.
fn frames(report: &Report) -> Vec<bool> {
    let count = report.functions.len();
    let (mut is_called, mut is_called_by_others) = (vec![false; count], vec![false; count]);
    let mut calls = vec![false; count];
    let names: Vec<bool> = report.functions.iter().map(|it| waiting::frames(&it.name)).collect();
    let runs_threads = |function: usize| {
        report.functions.get(function).is_some_and(|row| waiting::runs_threads(&row.name))
    };
    let set = |list: &mut Vec<bool>, function: usize| {
        if let Some(is_so) = list.get_mut(function) {
            *is_so = true;
        }
    };
    for path in &report.paths {
        let Some(outer) = path.parent.and_then(|parent| report.paths.get(parent)) else { continue };
        // A wait is no call to somebody.
        if report.functions.get(path.function).is_none_or(|row| row.wait.is_none()) {
            set(&mut calls, outer.function);
        }
        if !runs_threads(outer.function) {
            set(&mut is_called, path.function);
        }
        if !names.get(outer.function).is_some_and(|is_frame| *is_frame) {
            set(&mut is_called_by_others, path.function);
        }
    }
    let rows = report.functions.iter().enumerate();
    rows.map(|(at, row)| {
        // One call in each of many short processes is a unit of their work.
        let takes_most = row.total_ns.0 / row.calls.max(1) > report.duration_ns.0 / 2;
        let is_outermost = calls[at] && !is_called[at] && takes_most && !report.counted;
        let is_frame = names[at] && !is_called_by_others[at];
        // In how many threads, is not known of calls that are only counted: their names must say it.
        let most = if report.counted { 1 } else { row.threads };
        // A lane is no thread of the program: later calls take it.
        !row.is_async && row.calls > 0 && row.calls <= most && (is_outermost || is_frame)
    })
    .collect()
}

/// Returns for each function whether a notable part of its self time is that of functions which it calls
/// and which a budget probed for a smaller share of the time.
fn has_time_of_others(report: &Report) -> Vec<bool> {
    let armed = |row: &FunctionReport| row.sampled.map_or(100.0, |it| it.armed_percent);
    let mut unseen = vec![0.0; report.functions.len()];
    for path in &report.paths {
        let outer = path.parent.and_then(|parent| report.paths.get(parent));
        let Some(outer) = outer.map(|outer| outer.function) else { continue };
        let (Some(row), Some(around)) =
            (report.functions.get(path.function), report.functions.get(outer))
        else {
            continue;
        };
        let share = armed(row).max(f64::EPSILON) / armed(around).max(f64::EPSILON);
        if share < 1.0 && row.wait.is_none() {
            unseen[outer] += path.total_ns.0 as f64 * (1.0 / share - 1.0);
        }
    }
    let rows = report.functions.iter().zip(unseen);
    rows.map(|(row, unseen)| unseen > NOTABLE * row.self_ns.0 as f64).collect()
}

/// Returns for each function whether what it calls has more time on one of its paths than it has itself,
/// because a call of it goes on.
fn is_less_than_inside(report: &Report) -> Vec<bool> {
    let mut inside = vec![0_u64; report.paths.len()];
    for path in &report.paths {
        if let Some(inside) = path.parent.and_then(|parent| inside.get_mut(parent)) {
            *inside = inside.saturating_add(path.total_ns.0);
        }
    }
    let mut found = vec![false; report.functions.len()];
    for (path, inside) in report.paths.iter().zip(inside) {
        if path.open > 0
            && inside > path.total_ns.0
            && let Some(found) = found.get_mut(path.function)
        {
            *found = true;
        }
    }
    found
}

/// Returns for each function whether it called itself, directly or through others.
fn recursive(report: &Report) -> Vec<bool> {
    let mut found = vec![false; report.functions.len()];
    for path in &report.paths {
        let mut outer = path.parent;
        while let Some(parent) = outer.and_then(|at| report.paths.get(at)) {
            if parent.function == path.function {
                if let Some(found) = found.get_mut(path.function) {
                    *found = true;
                }
                break;
            }
            outer = parent.parent;
        }
    }
    found
}
