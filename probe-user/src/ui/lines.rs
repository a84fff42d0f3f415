//! Single calls as lines of text, in the shape that strace and ltrace have: time, thread, and the
//! call indented by its depth, with arguments, result and duration.
//!
//! There may be millions of them. So a line is built in one buffer, without marks where the output
//! has no colours, and columns are counted on terminals only.

use super::point_lines::PointLine;
use crate::ui::notes::loss::loss_line;
use crate::ui::output::style::{Style, Tone};
use crate::ui::text::names;
use crate::ui::text::units::{Digits, time};
use ctrace_core::{
    formats::{
        Ended,
        stream::{CallLine, CallPart, Lost, Scene, StreamLine},
    },
    function::{FunctionInfo, FunctionKind},
    recording::{ReadAt, ThreadRecord},
    report::{CallValues, LossReport, UNREADABLE, render::clean::clean},
    units::{Nanos, ThreadId, Tid},
    values::Value,
};
use std::{collections::HashMap, fmt::Write as _};

/// The longest name in columns. A hostile recording may have names of any length.
const MOST_NAME: usize = 1_024;
/// Calls deeper than this are not indented further; a number tells their depth.
const MOST_INDENT: u32 = 30;
/// Stands behind a call of which only the function is known.
const PATH_UNKNOWN: &str = " [path not recorded]";
/// The least room for a call on a terminal before its result and duration are cut, too.
const LEAST_ROOM: usize = 30;

/// Makes lines of text.
pub(crate) struct TextLines {
    style: Style,
    /// Times count from here.
    start: Nanos,
    functions: Vec<Function>,
    /// The column of each thread, once there are several.
    threads: HashMap<ThreadId, String>,
    /// The first thread. A program that is executed has a new one with the same id.
    first: Option<Tid>,
    has_threads: bool,
    thread_width: usize,
    /// The line: what may be cut on a terminal, and the rest.
    call: String,
    rest: String,
}

/// A function in lines.
struct Function {
    /// The name, with its tone where there are colours.
    name: String,
    /// True for a point, which has no duration.
    is_point: bool,
    /// How a message or a plot reads.
    point: Option<PointLine>,
    /// The brackets behind the name where no argument was asked for.
    brackets: &'static str,
    has_arguments: bool,
    has_result: bool,
}

impl TextLines {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            style,
            start: Nanos::ZERO,
            functions: Vec::new(),
            threads: HashMap::new(),
            first: None,
            has_threads: false,
            thread_width: 0,
            call: String::new(),
            rest: String::new(),
        }
    }

    /// Takes names that were added. Threads are shown once there are several.
    pub(crate) fn define<R: ReadAt>(&mut self, scene: &Scene<'_, R>) {
        let recording = scene.recording;
        self.start = recording.start().start_ns;
        let new = recording.functions().iter().skip(self.functions.len());
        let new: Vec<_> = new.map(|info| self.function(info)).collect();
        self.functions.extend(new);
        self.threads.clear();
        let mut tids = recording.threads().map(|record| record.tid);
        self.first = self.first.or_else(|| recording.threads().next().map(|record| record.tid));
        self.has_threads |= tids.any(|tid| Some(tid) != self.first);
        let widths = recording.threads().map(|record| names::width(&thread(record)));
        self.thread_width = widths.fold(self.thread_width, usize::max);
    }

    fn function(&self, info: &FunctionInfo) -> Function {
        let label = names::label_of(info.kind, info.group.as_deref(), &info.name);
        Function {
            name: self.toned(Tone::of_function(&label), &names::cut_middle(&label, MOST_NAME)),
            is_point: info.is_point(),
            point: PointLine::of(info, |tone, text| self.toned(tone, text)),
            brackets: brackets(info),
            has_arguments: info.values.iter().any(|value| !value.is_result),
            has_result: info.values.iter().any(|value| value.is_result),
        }
    }

    /// Appends the line.
    pub(crate) fn line<R: ReadAt>(
        &mut self,
        scene: &Scene<'_, R>,
        line: &StreamLine<'_>,
        to: &mut Vec<u8>,
    ) {
        self.call.clear();
        self.rest.clear();
        match line {
            StreamLine::Call(call, values) => self.call(scene, call, *values),
            StreamLine::Lost(lost) => self.lost(lost),
        }
        if let Some(width) = self.style.width {
            self.cut(width);
        }
        self.call += &self.rest;
        if self.style.colour || self.style.ascii {
            to.extend_from_slice(self.style.resolve(&self.call).as_bytes());
        } else {
            to.extend_from_slice(self.call.as_bytes());
        }
        to.push(b'\n');
    }

    fn call<R: ReadAt>(
        &mut self,
        scene: &Scene<'_, R>,
        call: &CallLine,
        values: Option<&CallValues>,
    ) {
        let is_end = matches!(call.part, CallPart::Resumed | CallPart::Gone);
        self.time(if is_end { call.end() } else { call.start });
        if self.has_threads {
            let record = scene.recording.thread(call.thread);
            let width = self.thread_width;
            let column = self.threads.entry(call.thread).or_insert_with(|| {
                let name = record.map(thread).unwrap_or_default();
                let pad = width.saturating_sub(names::width(&name));
                format!("  {name}{}", " ".repeat(pad))
            });
            self.call += column.as_str();
        }
        self.call += "  ";
        (0..call.depth.min(MOST_INDENT)).for_each(|_| self.call += "  ");
        if call.depth > MOST_INDENT {
            let _ = write!(self.call, "{}> ", call.depth);
        }
        let Some(function) = self.functions.get(call.function.index()) else { return };
        if is_end {
            self.call += "… ";
        }
        if let (Some(point), CallPart::Whole) = (&function.point, call.part) {
            point.append(&function.name, values, &mut self.call);
            self.rest += if call.knows_path { "" } else { PATH_UNKNOWN };
            return;
        }
        self.call += &function.name;
        match call.part {
            CallPart::Whole | CallPart::Begun => arguments(function, values, &mut self.call),
            CallPart::Resumed => self.rest += " resumed",
            CallPart::Gone => {
                self.rest += " ended: --min-duration leaves it out, or its end was lost";
                return;
            }
        }
        if !call.knows_path {
            self.rest += PATH_UNKNOWN;
        }
        let (is_point, has_result) = (function.is_point, function.has_result);
        if call.part == CallPart::Begun {
            self.rest += " … still running";
        } else if !is_point {
            if has_result && call.ended != Ended::Open {
                result(values, &mut self.rest);
            }
            self.duration(call);
        }
    }

    fn duration(&mut self, call: &CallLine) {
        let time = time(call.duration, Digits::Full);
        let text = match call.ended {
            Ended::Timed => format!("<{time}>"),
            Ended::Untimed if call.duration == Nanos::ZERO => "<end not seen>".to_owned(),
            Ended::Untimed => format!("<end not seen, {time} or more>"),
            Ended::Open => format!("<still running after {time}>"),
        };
        self.rest.push(' ');
        self.rest += &self.toned(Tone::Dim, &text);
    }

    fn lost(&mut self, lost: &Lost) {
        self.time(lost.to);
        let Lost { from, events, late, decode_errors, payloads, .. } = *lost;
        let loss = LossReport { events, late, decode_errors, payloads, ..LossReport::default() };
        let since = seconds(from.since(self.start));
        let text = format!("-- {} since {} --", loss_line(&loss), since.trim_start());
        self.call += "  ";
        self.call += &self.toned(Tone::Warning, &text);
    }

    fn time(&mut self, at: Nanos) {
        self.call += &seconds(at.since(self.start));
    }

    /// Marks text where the output has colours.
    fn toned(&self, tone: Tone, text: &str) -> String {
        if self.style.colour { tone.mark(text) } else { text.to_owned() }
    }

    /// Cuts the line to a terminal's width. Result and duration stay, as far as there is room.
    fn cut(&mut self, width: usize) {
        let (call, rest) = (names::width(&self.call), names::width(&self.rest));
        if call + rest <= width {
            return;
        }
        let room = width.saturating_sub(rest).max(LEAST_ROOM.min(width));
        if call > room {
            self.call = Tone::end(names::cut_end(&self.call, room));
        }
        let left = width.saturating_sub(names::width(&self.call));
        if rest > left {
            self.rest = Tone::end(names::cut_end(&self.rest, left));
        }
    }
}

/// Formats seconds since the start.
fn seconds(since: Nanos) -> String {
    let micros = since.0 / 1_000;
    format!("{:>4}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn thread(record: &ThreadRecord) -> String {
    match &*record.name {
        "" => record.tid.0.to_string(),
        name => format!("{}/{}", names::cut_end(&clean(name), 32), record.tid.0),
    }
}

/// Returns what stands behind a name if no argument was asked for: `()` only for a function that is
/// known to take none, as its full name continues the short one with `()`. The full name of one that
/// returns a pointer to a function has its parameters elsewhere: `void (*get<int>(int))()`.
fn brackets(info: &FunctionInfo) -> &'static str {
    let FunctionKind::Function = info.kind else { return "" };
    // That of a lambda ends in ` const` already.
    let continues = |full: &str, short: &str, with| {
        let rest = full.strip_prefix(short.strip_suffix(" const").unwrap_or(short));
        rest.is_some_and(|rest| rest.starts_with(with))
    };
    let name = &info.name;
    match (&info.full_name, &info.short_name) {
        (Some(full), _) if continues(full, name, "()") => "()",
        (Some(_), _) => "(…)",
        (None, Some(short)) if continues(name, short, "(") => "",
        (None, _) if name.ends_with(')') && !name.ends_with("operator()") => "",
        (None, _) => "(…)",
    }
}

/// Appends the arguments. A question mark stands for those that were asked for and are missing.
fn arguments(function: &Function, values: Option<&CallValues>, to: &mut String) {
    let values = values.map(CallValues::arguments).unwrap_or_default();
    if values.is_empty() {
        *to += if function.has_arguments { "(?)" } else { function.brackets };
        return;
    }
    for (place, (name, value)) in values.iter().enumerate() {
        *to += if place == 0 { "(" } else { ", " };
        *to += &clean(name);
        to.push('=');
        append(value.as_ref(), to);
    }
    to.push(')');
}

/// Appends the result. A question mark stands for one that is missing.
fn result(values: Option<&CallValues>, to: &mut String) {
    *to += " = ";
    match values.and_then(CallValues::result) {
        Some(value) => append(value, to),
        None => to.push('?'),
    }
}

fn append(value: Option<&Value>, to: &mut String) {
    match value {
        // Writing to a String cannot fail.
        Some(value) => _ = write!(to, "{value}"),
        None => *to += UNREADABLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_brackets_are_for_functions_without_parameters() {
        let info = |name: &str| FunctionInfo::new(name, "program");
        let short = |name: &str, full: &str| {
            brackets(&FunctionInfo { full_name: Some(full.into()), ..info(name) })
        };
        assert_eq!(brackets(&info("main")), "(…)");
        assert_eq!(short("shop::open", "shop::open()"), "()");
        assert_eq!(short("shop::open", "shop::open() const"), "()");
        assert_eq!(short("shop::open", "shop::open(int)"), "(…)");
        assert_eq!(short("Compare::operator()", "Compare::operator()() const"), "()");
        assert_eq!(short("Compare::operator()", "Compare::operator()(int, int) const"), "(…)");
        assert_eq!(short("get<int>", "void (*get<int>(int))()"), "(…)");
        assert_eq!(short("main::work", "main::work::h0123456789abcdef"), "(…)");
        // Recordings of before have no short name beside a full one.
        assert_eq!(
            ["shop::open(int)", "Compare::operator()"].map(|n| brackets(&info(n))),
            ["", "(…)"]
        );
        let full = |name: &str, short: &str| {
            brackets(&FunctionInfo { short_name: Some(short.into()), ..info(name) })
        };
        assert_eq!(full("shop::open(int) const", "shop::open"), "");
        let of_lambda = ["(int) const", " const"]
            .map(|end| format!("run()::{{lambda(int)#1}}::operator(){end}"));
        assert_eq!(full(&of_lambda[0], &of_lambda[1]), "");
        assert_eq!(short(&of_lambda[1], &of_lambda[0]), "(…)");
        assert_eq!(full("main::work::h0123456789abcdef", "main::work"), "(…)");
        assert_eq!(brackets(&FunctionInfo { kind: FunctionKind::Marker, ..info("check out") }), "");
    }
}
