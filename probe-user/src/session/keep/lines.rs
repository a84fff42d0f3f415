//! Prints single calls, or messages, a line each, as text or JSON.

use super::{
    messages::{MessageChoice, MessageLines},
    sink::Out,
};
use crate::ui::{self, TextLines, text::units::counted};
use ctrace_core::{
    formats::{
        Coverage, ExportError, JsonLines,
        stream::{Lines, Scene, StreamLine},
    },
    report::LossReport,
    units::{FuncId, Nanos},
};
use std::io;

/// Bytes that are written at a time.
const FULL: usize = 64 << 10;

/// The printer of a stream.
pub(crate) struct Printer {
    out: Out,
    form: Form,
    buffer: Vec<u8>,
}

/// The contents of lines.
#[derive(Clone, Debug)]
pub(crate) enum LineKind {
    Calls,
    Messages(MessageChoice),
}

enum Form {
    Text(Box<TextLines>),
    Json(Box<JsonLines>),
    Messages(Box<MessageLines>),
}

impl Printer {
    pub(crate) fn new(out: Out, kind: LineKind, json: bool) -> Self {
        let style = out.style_of_lines();
        let form = match kind {
            LineKind::Messages(choice) => {
                Form::Messages(Box::new(MessageLines::new(choice, json, style)))
            }
            LineKind::Calls if json => Form::Json(Box::default()),
            LineKind::Calls => Form::Text(Box::new(TextLines::new(style))),
        };
        Self { out, form, buffer: Vec::new() }
    }

    /// Returns whether there still is a reader. Fails with any other error.
    pub(crate) fn is_read_after<T>(
        &self,
        printed: Result<T, ExportError>,
    ) -> anyhow::Result<Option<T>> {
        match printed {
            Ok(done) => Ok(Some(done)),
            Err(ExportError::Write(error)) => self.out.is_read_after(Err(error)).map(|_| None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns lines for stderr on a stream that took so long.
    pub(crate) fn summary(&self, told: &Coverage, took: Nanos) -> Vec<String> {
        match &self.form {
            Form::Text(_) | Form::Json(_) => {
                ui::summary_of_lines(told, &counted(told.calls, "call", "calls"), took)
            }
            Form::Messages(lines) => {
                let mut summary = lines.remarks();
                // A point has no end that could be missing.
                let mut told = told.clone();
                told.lost =
                    LossReport { calls_untimed: 0, calls_open: 0, calls_headless: 0, ..told.lost };
                summary.extend(ui::summary_of_lines(&told, &lines.count(), took));
                summary
            }
        }
    }

    fn pass_on(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.out.pass(&[&self.buffer])?;
        self.buffer.clear();
        Ok(())
    }
}

impl Lines for Printer {
    fn define(&mut self, scene: &Scene<'_>) {
        match &mut self.form {
            Form::Text(lines) => lines.define(scene),
            Form::Json(lines) => lines.define(scene),
            Form::Messages(lines) => lines.define(scene),
        }
    }

    fn wants(&self, function: FuncId) -> bool {
        match &self.form {
            Form::Text(_) | Form::Json(_) => true,
            Form::Messages(lines) => lines.wants(function),
        }
    }

    fn line(&mut self, scene: &Scene<'_>, line: &StreamLine<'_>) -> io::Result<()> {
        match &mut self.form {
            Form::Text(lines) => lines.line(scene, line, &mut self.buffer),
            Form::Json(lines) => lines.line(scene, line, &mut self.buffer),
            Form::Messages(lines) => lines.line(scene, line, &mut self.buffer),
        }
        if self.buffer.len() < FULL { Ok(()) } else { self.pass_on() }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on()
    }
}
