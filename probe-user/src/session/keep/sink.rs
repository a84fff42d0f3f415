//! The destination of reports: stdout, stderr or a file, as table, JSON or CSV.

use crate::{
    files::{Owner, Place},
    session::spec::{ReportFormat, ReportSpec},
    target::launch::is_program,
    ui::{
        self, Style, ViewOptions,
        output::{live, pager::Pager, terminal},
    },
    writing,
};
use anyhow::{Context, ensure};
use ctrace_core::{
    recording::is_recording,
    report::{Extras, Report, render::json},
};
use rustix::fs::OFlags;
use std::{
    collections::HashSet,
    fs::File,
    io::{self, ErrorKind, Read as _, Write},
    os::fd::AsRawFd as _,
    path::Path,
};

/// The standard stream for reports when no `-o` is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Default {
    Stdout,
    Stderr,
}

/// A stream or file for text, and the style of text there.
pub(crate) struct Out {
    out: Box<dyn Write + Send>,
    name: String,
    is_stdout: bool,
    pub style: Style,
}

impl Out {
    pub(crate) fn open(path: Option<&Path>, default: Default) -> anyhow::Result<Self> {
        let (out, name, style): (Box<dyn Write + Send>, _, _) = match (path, default) {
            (Some(path), _) if !is_dash(path) => {
                (Box::new(open(path)?), path.display().to_string(), terminal::of_file())
            }
            (None, Default::Stderr) => {
                (Box::new(io::stderr()), "stderr".into(), terminal::detect(io::stderr()))
            }
            _ => (Box::new(io::stdout()), "stdout".into(), terminal::detect(io::stdout())),
        };
        let is_stdout = path.map_or(default == Default::Stdout, is_dash);
        Ok(Self { out, name, is_stdout, style })
    }

    /// Lets a reader at a terminal leaf through it, if it goes to stdout.
    pub(crate) fn paged(mut self) -> Self {
        if self.is_stdout
            && let Some(pager) = Pager::start(is_program)
        {
            self.out = Box::new(pager);
        }
        self
    }

    /// Returns where it leads, for text that is written in many parts.
    pub(crate) fn into_writer(self) -> Box<dyn Write + Send> {
        self.out
    }

    /// Writes whole lines. Returns `false` if the reader went away (`| head`): this is no error,
    /// but there is no point in going on.
    pub(crate) fn write(&mut self, text: &str) -> anyhow::Result<bool> {
        let end: &[u8] = if text.ends_with('\n') { b"" } else { b"\n" };
        let passed = self.pass(&[text.as_bytes(), end]);
        self.is_read_after(passed)
    }

    /// Writes these bytes, one after the other.
    pub(crate) fn pass(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let write = || {
            parts
                .iter()
                .try_for_each(|part| self.out.write_all(part))
                .and_then(|()| self.out.flush())
        };
        writing::during(|| live::without(write))
    }

    /// Returns whether the reader is there after a write, as [`Self::write`] does.
    pub(crate) fn is_read_after(&self, write: io::Result<()>) -> anyhow::Result<bool> {
        match write {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(error).with_context(|| format!("cannot write to {}", self.name)),
        }
    }

    /// Returns the style of lines that stay whole, except on a terminal.
    pub(crate) fn style_of_lines(&self) -> Style {
        Style { width: self.style.width.filter(|_| self.style.terminal), ..self.style }
    }
}

/// Returns whether the path stands for stdout.
fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

pub(crate) struct Sink {
    out: Out,
    format: ReportFormat,
    views: ViewOptions,
    /// True for one of several reports: JSON goes on one line each.
    several: bool,
    /// True if reports on parts follow the one on the whole.
    has_parts: bool,
}

impl Sink {
    /// Opens the output and checks the specification, before anything is attached.
    pub(crate) fn open(spec: &ReportSpec, default: Default) -> anyhow::Result<Self> {
        let views = view_options(spec)?;
        ensure!(
            spec.by.is_none() || spec.format != ReportFormat::Csv,
            "--by makes several reports: --format json has them on a line each"
        );
        let out = Out::open(spec.output.as_deref(), default)?;
        let has_parts = spec.by.is_some();
        let several = spec.interval.is_some() || has_parts;
        Ok(Self { out, format: spec.format, views, several, has_parts })
    }

    /// See [`Out::paged`].
    pub(crate) fn paged(self) -> Self {
        Self { out: self.out.paged(), ..self }
    }

    /// Makes times of day those of a recording's host.
    pub(crate) fn set_epoch_offset(&mut self, offset_ns: i64) {
        self.views.epoch_offset_ns = Some(offset_ns);
    }

    /// Returns the extras that a report must hold to be written here.
    pub(crate) fn extras(&self) -> Extras {
        // Data does not depend on the width of a terminal.
        let width = self.out.style.width.filter(|_| self.format == ReportFormat::Table);
        self.views.extras(width)
    }

    /// True if locks are shown unasked where some are found: no view was chosen, and there is room.
    pub(crate) fn shows_found_locks(&self) -> bool {
        self.views.views.is_empty() && self.format != ReportFormat::Csv
    }

    /// Writes one report; returns the same as [`Out::write`].
    pub(crate) fn write(&mut self, report: &Report) -> anyhow::Result<bool> {
        let text = match self.format {
            ReportFormat::Table => {
                let text = ui::render_table(report, &self.views, &self.out.style)?;
                if report.part.is_none() && self.has_parts {
                    self.views.said = ui::sentences(report, &self.views);
                }
                text
            }
            ReportFormat::Json if self.several => json::to_line(report),
            ReportFormat::Json => json::to_pretty(report),
            ReportFormat::Csv => {
                for remark in ui::warnings(report).iter().chain(&report.notes) {
                    ui::say(remark);
                }
                ui::say(&ui::loss_line(&report.loss));
                match self.several {
                    true => ui::render_interval_csv(report, &self.views)?,
                    false => ui::render_csv(report, &self.views)?,
                }
            }
        };
        self.out.write(&text)
    }
}

/// Opens a file for writing. Its contents stay until there is a report to replace them. A recording
/// is not replaced: it may have taken hours, and only `record --force` does that.
pub(crate) fn open(path: &Path) -> anyhow::Result<Replaced> {
    let place = Place::find(path, Owner::Caller)?;
    let is_new = place.id().is_none();
    let file = place.open(OFlags::WRONLY)?;
    ensure!(
        !holds_recording(&file),
        "{} is a recording: give -o another file, or remove it first",
        path.display()
    );
    Ok(Replaced { file, begun: false, made: is_new.then_some(place) })
}

/// Reads the beginning of a file that is open for writing only.
fn holds_recording(file: &File) -> bool {
    let is_file = file.metadata().is_ok_and(|file| file.is_file());
    let again = || File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok();
    let mut head = Vec::new();
    is_file
        && again().is_some_and(|file| file.take(16).read_to_end(&mut head).is_ok())
        && is_recording(&head)
}

/// A file from [`open`].
pub(crate) struct Replaced {
    file: File,
    begun: bool,
    /// Its place, if it is a new one.
    made: Option<Place>,
}

/// Removes a new file if nothing came to be written: an empty one looks like a report.
impl Drop for Replaced {
    fn drop(&mut self) {
        if let Some(place) = self.made.take().filter(|_| !self.begun) {
            place.remove_if_empty(&self.file);
        }
    }
}

impl Replaced {
    fn begin(&mut self) -> io::Result<()> {
        if !self.begun && self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.begun = true;
        Ok(())
    }
}

impl Write for Replaced {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begin()?;
        self.file.write(bytes)
    }

    /// Replaces the contents also if nothing was written.
    fn flush(&mut self) -> io::Result<()> {
        self.begin()?;
        self.file.flush()
    }
}

/// Checks that the views can be shown for intervals, whose calls are not all kept.
pub(crate) fn check_intervals(spec: &ReportSpec) -> anyhow::Result<()> {
    Ok(view_options(spec)?.check_intervals()?)
}

/// Checks that the views can be shown where calls are counted in the kernel.
pub(crate) fn check_counted(spec: &ReportSpec) -> anyhow::Result<()> {
    Ok(view_options(spec)?.check_counted()?)
}

fn view_options(spec: &ReportSpec) -> anyhow::Result<ViewOptions> {
    let views = spec.views.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
    let options = ViewOptions {
        views,
        sort: spec.sort.clone(),
        top: spec.top,
        min_percent: spec.min_percent,
        epoch_offset_ns: Some(ui::output::wall::epoch_offset_ns()),
        show_zero: false,
        raw: spec.raw,
        named: spec.named.clone(),
        fixed: false,
        said_below: ui::SaidBelow::Whole,
        said: HashSet::new(),
    };
    options.check(spec.format == ReportFormat::Csv)?;
    let needs_frame =
        options.views.iter().any(|name| name.view().needs == ui::views::Needs::Frames);
    ensure!(
        !needs_frame || spec.frame.is_some(),
        "the view 'frames' needs --frame FUNCTION, whose calls are the frames, or the name of a frame mark or a \
         USDT probe"
    );
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_core::recording::{End, Start, Writer};

    #[test]
    fn a_recording_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.ctrace");
        let writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
        let recording = writer.finish(&End::default()).expect("memory takes all");
        std::fs::write(&path, &recording).expect("written");
        let error = open(&path).err().expect("refused").to_string();
        assert!(
            error
                .ends_with("trace.ctrace is a recording: give -o another file, or remove it first")
        );
        assert_eq!(std::fs::read(&path).expect("it is there"), recording);
        std::fs::write(&path, "an older report").expect("written");
        open(&path).expect("opened").write_all(b"new").expect("written");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"new");
        drop(open(&path).expect("opened"));
        assert_eq!(std::fs::read(&path).expect("it is there"), b"new");
        let other = folder.path().join("report.txt");
        drop(open(&other).expect("opened"));
        assert!(!other.exists(), "nothing was written");
    }
}
