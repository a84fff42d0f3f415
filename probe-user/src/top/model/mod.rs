//! The state of the screen, a value that changes with each snapshot and key.

pub(crate) mod columns;
pub(crate) mod narrow;
pub(crate) mod outlook;
pub(crate) mod outlooks;
pub(crate) mod rows;
pub(crate) mod tree;

use crate::session::keep::live::Snapshot;
use crate::top::{
    data::{Data, catalogue::RowId, compare::Baseline, figures::Figures},
    format::Format,
    keys::Action,
    model::{
        columns::{TopColumn, shown},
        outlook::Step,
        outlooks::Outlooks,
        rows::{Sort, rows},
        tree::Root,
    },
    source::daemon::Traced,
};
use crate::ui::output::style::Shades;
use ctrace_core::units::Nanos;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Functions,
    Histogram,
    Tree,
    Paths,
    Threads,
    Notes,
}

impl View {
    pub(super) const ALL: [Self; 6] =
        [Self::Functions, Self::Histogram, Self::Tree, Self::Paths, Self::Threads, Self::Notes];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Functions => "functions",
            Self::Histogram => "histogram",
            Self::Tree => "tree",
            Self::Paths => "paths",
            Self::Threads => "threads",
            Self::Notes => "notes",
        }
    }
}

/// The mode of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Look,
    Filter,
    Export,
    Help,
    /// Choosing a process of the daemon.
    Choose,
}

/// The shown stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    Interval,
    Start,
}

/// Work for the loop after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Quit,
    Export(Format),
    /// Look at this process of the daemon, or at the list of all.
    Choose(Option<u32>),
}

pub(super) struct Model {
    live: Data,
    /// The data shown while paused.
    paused: Option<Box<Data>>,
    pub(super) baseline: Option<Box<Baseline>>,
    /// The processes that the daemon traces, if it is the source.
    pub(super) processes: Option<Vec<Traced>>,
    /// The index of the chosen row.
    pub(super) process: usize,
    /// The id of the process on the screen.
    chosen: Option<u32>,
    pub(super) view: View,
    pub(super) mode: Mode,
    pub(super) basis: Basis,
    pub(super) sort: Sort,
    pub(super) filter: String,
    /// The chosen function. `None` means the first row.
    pub(super) selected: Option<RowId>,
    /// The chosen and the folded rows in the tree and the paths.
    pub(super) trees: Outlooks,
    /// The first shown line of a text.
    pub(super) scroll: usize,
    pub(super) detail: bool,
    /// A message for the user, until the next key.
    pub(super) message: Option<String>,
    /// True if no more data will come.
    pub(super) ended: bool,
    pub(super) interval: Duration,
    pub(super) shades: Shades,
    /// The size of the window in columns and rows.
    pub(super) size: (usize, usize),
}

impl Model {
    pub(super) fn new(data: Data, interval: Duration, shades: Shades) -> Self {
        Self {
            live: data,
            paused: None,
            baseline: None,
            processes: None,
            process: 0,
            chosen: None,
            view: View::Functions,
            mode: Mode::Look,
            basis: Basis::Interval,
            sort: Sort::UNASKED,
            filter: String::new(),
            selected: None,
            trees: Outlooks::default(),
            scroll: 0,
            detail: false,
            message: None,
            ended: false,
            interval,
            shades,
            size: (80, 24),
        }
    }

    /// Starts counting calls. `cpu` is the target's CPU time so far.
    pub(super) fn begun(&mut self, cpu: Option<Nanos>) {
        self.live = if self.processes.is_some() { Data::of_looks(cpu) } else { Data::new(cpu) };
    }

    /// Adds the parts of an interval.
    pub(super) fn add(&mut self, parts: Vec<Snapshot>, missed: u64) {
        // Parts of another process were under way when the user chose this one.
        let pid = |part: &Snapshot| part.report.target.pid.map(|pid| pid.0);
        let is_late = |part: &Snapshot| self.processes.is_some() && pid(part) != self.chosen;
        if !parts.iter().any(is_late) {
            self.live.add(parts, missed);
        }
    }

    /// No more data will come. `missed` intervals after the last one were lost.
    pub(super) fn end(&mut self, missed: u64) {
        self.ended = true;
        self.live.missed += missed;
    }

    /// Updates the daemon's processes. The same process stays chosen.
    pub(super) fn list(&mut self, processes: Vec<Traced>) {
        let before = self.processes.as_ref();
        if before.is_none() {
            self.mode = Mode::Choose;
        }
        let pid = before.and_then(|list| list.get(self.process)).map(|chosen| chosen.process.pid);
        let same = |traced: &Traced| Some(traced.process.pid) == pid;
        let last = processes.len().saturating_sub(1);
        self.process = processes.iter().position(same).unwrap_or(self.process.min(last));
        self.processes = Some(processes);
    }

    /// Returns all that is known, also while paused.
    pub(super) fn known(&self) -> &Data {
        &self.live
    }

    /// Returns the shown data.
    pub(super) fn data(&self) -> &Data {
        self.paused.as_deref().unwrap_or(&self.live)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Returns the numbers of the shown stretch.
    pub(super) fn figures(&self) -> Option<&Figures> {
        match self.basis {
            Basis::Interval => self.data().interval.as_ref(),
            Basis::Start => self.data().sums.as_ref().map(|sums| &sums.figures),
        }
    }

    /// Returns whether a budget armed some functions for a part of the shown time.
    pub(super) fn is_sampled(&self) -> bool {
        let functions = self.figures().map(|figures| &figures.report.functions);
        functions.is_some_and(|functions| functions.iter().any(|it| it.sampled.is_some()))
    }

    /// Returns the numbers to compare with.
    pub(super) fn before(&self) -> Option<&Figures> {
        let baseline = self.baseline.as_ref()?;
        Some(match self.basis {
            Basis::Interval => &baseline.interval,
            Basis::Start => &baseline.sums,
        })
    }

    /// Returns the places of the shown functions, in order.
    pub(super) fn rows(&self) -> Vec<usize> {
        let Some(figures) = self.figures() else { return Vec::new() };
        rows(self.data(), figures, self.before(), &self.filter, self.sort)
    }

    /// Returns the index of the chosen row.
    pub(super) fn selected_row(&self, rows: &[usize]) -> usize {
        let Some((figures, selected)) = self.figures().zip(self.selected) else { return 0 };
        rows.iter().position(|&place| figures.ids[place] == selected).unwrap_or(0)
    }

    /// Returns the place of the chosen function.
    pub(super) fn selected_place(&self) -> Option<usize> {
        let rows = self.rows();
        rows.get(self.selected_row(&rows)).copied()
    }

    /// Limits the scroll position to the drawn text.
    pub(super) fn limit_scroll(&mut self, last: usize) {
        self.scroll = self.scroll.min(last);
    }

    pub(super) fn act(&mut self, action: Action) -> Option<Effect> {
        self.message = None;
        match action {
            Action::Quit => return Some(Effect::Quit),
            Action::Help => self.enter(Mode::Help),
            Action::Move(by) => self.go(by),
            Action::Page(by) => self.go(by.saturating_mul(self.page())),
            Action::First => self.go(isize::MIN),
            Action::Last => self.go(isize::MAX),
            Action::Beside(by) if self.view == View::Tree => {
                self.step(if by > 0 { Step::In } else { Step::Out });
            }
            Action::Beside(by) | Action::SortBeside(by) => {
                let all = TopColumn::all();
                let at = all.iter().position(|c| *c == self.sort.column).unwrap_or(0);
                let at = at.saturating_add_signed(by).min(all.len() - 1);
                self.sort_by(all[at]);
            }
            Action::SortAt(number) => {
                let columns = shown(self.size.0, self.sort.column, self.is_sampled());
                columns
                    .get(number - 1)
                    .copied()
                    .into_iter()
                    .for_each(|column| self.sort_by(column));
            }
            Action::SortByName => self.sort_by(TopColumn::Name),
            Action::Reverse => self.sort.reversed = !self.sort.reversed,
            Action::View(view) => self.look_at(view),
            Action::ViewBeside(by) => {
                let (views, count) = (View::ALL, View::ALL.len() as isize);
                let at = views.iter().position(|view| *view == self.view).unwrap_or(0) as isize;
                self.look_at(views[(at + by).rem_euclid(count) as usize]);
            }
            Action::Open if self.view == View::Tree => self.step(Step::Toggle),
            Action::Open if self.view == View::Paths => self.show_in_tree(),
            Action::Open | Action::Detail => self.detail = !self.detail,
            Action::Into => self.set_root(Root::Function),
            Action::Callers => self.set_root(Root::Callers),
            Action::Back => self.go_back(),
            Action::Pause => self.pause(),
            Action::Basis => {
                self.basis = match self.basis {
                    Basis::Interval => Basis::Start,
                    Basis::Start => Basis::Interval,
                }
            }
            Action::Freeze => self.freeze(),
            Action::Filter => self.enter(Mode::Filter),
            Action::Export if self.figures().is_some() => self.enter(Mode::Export),
            Action::Export => self.message = Some("there is nothing to write yet".to_owned()),
            Action::Cancel => {
                if matches!(self.mode, Mode::Look | Mode::Filter) {
                    self.filter.clear();
                }
                self.enter(Mode::Look);
            }
            Action::Accept if self.mode == Mode::Choose => {
                let chosen = self.processes.as_ref().and_then(|list| list.get(self.process));
                let pid = chosen.map(|chosen| chosen.process.pid)?;
                self.begin(Some(pid));
                return Some(Effect::Choose(Some(pid)));
            }
            Action::Accept => self.enter(Mode::Look),
            Action::Others if self.processes.is_some() => {
                self.begin(None);
                return Some(Effect::Choose(None));
            }
            Action::Others => {
                self.message = Some("there are others with --daemon only".to_owned());
            }
            Action::Type(c) => return self.typed(c),
            Action::Erase => {
                self.filter.pop();
            }
        }
        None
    }

    /// Starts with another process of the daemon, without data, or with the list of them.
    fn begin(&mut self, pid: Option<u32>) {
        self.chosen = pid;
        self.live = Data::of_looks(None);
        (self.paused, self.baseline, self.selected) = (None, None, None);
        self.trees = Outlooks::default();
        self.filter.clear();
        self.enter(if pid.is_some() { Mode::Look } else { Mode::Choose });
    }

    fn enter(&mut self, mode: Mode) {
        if (mode == Mode::Help) != (self.mode == Mode::Help) {
            self.scroll = 0;
        }
        self.mode = mode;
    }

    fn typed(&mut self, c: char) -> Option<Effect> {
        /// The length limit of the filter, to which no meaningful text comes close.
        const MOST: usize = 200;
        if self.mode == Mode::Filter {
            if self.filter.len() < MOST && !ctrace_core::report::render::clean::is_harmful(c) {
                self.filter.push(c);
            }
            return None;
        }
        let format = Format::of_key(c)?;
        self.enter(Mode::Look);
        Some(Effect::Export(format))
    }

    fn look_at(&mut self, view: View) {
        (self.view, self.scroll) = (view, 0);
    }

    fn sort_by(&mut self, column: TopColumn) {
        // The same column again reverses the order.
        let reversed = self.sort.column == column && !self.sort.reversed;
        self.sort = Sort { column, reversed };
    }

    fn pause(&mut self) {
        self.paused = match self.paused.take() {
            Some(_) => None,
            None => Some(Box::new(self.live.clone())),
        };
    }

    fn freeze(&mut self) {
        if self.baseline.take().is_some() {
            return;
        }
        let data = self.data();
        let sums = data.sums.as_ref().map(|sums| &sums.figures);
        let (Some(interval), Some(sums)) = (&data.interval, sums) else {
            self.message = Some("there is nothing to compare with yet".to_owned());
            return;
        };
        let at = interval.report.end_ns;
        let (interval, sums) = (interval.clone(), sums.clone());
        self.baseline = Some(Box::new(Baseline { interval, sums, at }));
        // New data is compared with the frozen data, so the sums must not contain it.
        self.live.begin_anew();
        self.paused = None;
        self.message = Some("frozen: columns show the change since now; b ends it".to_owned());
    }

    /// Returns the number of lines of a screenful.
    fn page(&self) -> isize {
        self.size.1.saturating_sub(6).max(1) as isize
    }

    fn go(&mut self, by: isize) {
        if self.mode == Mode::Choose {
            let last = self.processes.as_ref().map_or(0, |list| list.len().saturating_sub(1));
            self.process = self.process.saturating_add_signed(by).min(last);
            return;
        }
        match self.view {
            _ if self.mode == Mode::Help => self.scroll = self.scroll.saturating_add_signed(by),
            View::Threads | View::Notes => self.scroll = self.scroll.saturating_add_signed(by),
            View::Tree => self.step(Step::Move(by)),
            View::Paths => self.move_in_paths(by),
            View::Functions | View::Histogram => self.move_in_table(by),
        }
    }

    fn move_in_table(&mut self, by: isize) {
        let rows = self.rows();
        let now = self.selected_row(&rows);
        let next = now.saturating_add_signed(by).min(rows.len().saturating_sub(1));
        let place = rows.get(next).copied();
        self.selected = place.and_then(|place| self.figures()?.ids.get(place).copied());
    }
}
