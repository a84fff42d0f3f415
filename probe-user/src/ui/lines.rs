//! Single calls as lines of text, in the shape that strace and ltrace have: time, thread, and the
//! call indented by its depth, with arguments, result and duration.
//!
//! There may be millions of them. So a line is built in one buffer, without marks where the output
//! has no colours, and columns are counted on terminals only.

use super::line_head::LineHead;
use super::point_lines::PointLine;
use crate::ui::output::style::{Style, Tone};
use crate::ui::text::names;
use crate::ui::text::units::{Digits, time};
use ctrace_core::{
    formats::{
        Ended,
        stream::{CallLine, CallPart, Scene, StreamLine},
    },
    function::{FunctionInfo, FunctionKind},
    names::as_written,
    report::{CallValues, UNREADABLE, render::clean::clean},
    units::Nanos,
    values::Value,
};
use std::fmt::Write as _;
use std::sync::Arc;

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
    head: LineHead,
    functions: Vec<Function>,
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
            head: LineHead::of_calls(style),
            functions: Vec::new(),
            call: String::new(),
            rest: String::new(),
        }
    }

    /// Takes names that were added. Threads are shown once there are several.
    pub(crate) fn define(&mut self, scene: &Scene<'_>) {
        self.head.define(scene);
        let new = scene.recording.functions().iter().skip(self.functions.len());
        let new: Vec<_> = new.map(|info| self.function(info)).collect();
        self.functions.extend(new);
    }

    fn function(&self, info: &FunctionInfo) -> Function {
        let label = names::label_of(info.kind, info.group.as_deref(), &info.name);
        let tone = Tone::of(&label, info.colour);
        Function {
            name: self.head.toned(tone, &names::cut_middle(&label, MOST_NAME)),
            is_point: info.is_point(),
            point: PointLine::of(info, |tone, text| self.head.toned(tone, text)),
            brackets: brackets(info),
            has_arguments: info.values.iter().any(|value| !value.is_result),
            has_result: info.values.iter().any(|value| value.is_result),
        }
    }

    /// Appends the line.
    pub(crate) fn line(&mut self, scene: &Scene<'_>, line: &StreamLine<'_>, to: &mut Vec<u8>) {
        self.call.clear();
        self.rest.clear();
        match line {
            StreamLine::Call(call, values) => self.call(scene, call, *values),
            StreamLine::Lost(lost) => self.head.lost(lost, &mut self.call),
        }
        if let Some(width) = self.style.width {
            self.cut(width);
        }
        self.call += &self.rest;
        self.head.finish(&self.call, to);
    }

    fn call(&mut self, scene: &Scene<'_>, call: &CallLine, values: Option<&CallValues>) {
        let is_end = matches!(call.part, CallPart::Resumed | CallPart::Gone);
        let at = if is_end { call.end() } else { call.start };
        self.head.begin(scene, (at, call.thread), &mut self.call);
        (0..call.depth.min(MOST_INDENT)).for_each(|_| self.call += "  ");
        if call.depth > MOST_INDENT {
            let _ = write!(self.call, "{}> ", call.depth);
        }
        let Some(function) = self.functions.get(call.function.index()) else { return };
        if is_end {
            self.call += "… ";
        }
        if let (Some(point), CallPart::Whole) = (&function.point, call.part) {
            let toned = |tone, text: &str| self.head.toned(tone, text);
            point.append(&function.name, values, toned, &mut self.call);
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
        self.rest += &self.head.toned(Tone::Dim, &text);
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
    let name = &*info.name;
    // The shown name is one of both as it is written in the source.
    let other = |other: &Option<Arc<str>>| {
        let other = other.as_deref()?;
        let written = as_written(other).unwrap_or_else(|| other.to_owned());
        Some(written).filter(|written| *written != name)
    };
    match (other(&info.full_name), other(&info.short_name)) {
        (Some(full), _) if continues(&full, name, "()") => "()",
        (Some(_), _) => "(…)",
        (None, Some(short)) if continues(name, &short, "(") => "",
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
        assert_eq!(short("shop::label", "shop::label[abi:cxx11]()"), "()");
        let written = FunctionInfo {
            full_name: Some("shop::label[abi:cxx11](int)".into()),
            ..FunctionInfo {
                short_name: Some("shop::label[abi:cxx11]".into()),
                ..info("shop::label(int)")
            }
        };
        assert_eq!(brackets(&written), "");
        assert_eq!(brackets(&FunctionInfo { kind: FunctionKind::Marker, ..info("check out") }), "");
    }
}
