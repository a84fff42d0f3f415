//! Prints single calls, a line each, as text or JSON.

use super::sink::Out;
use crate::ui::TextLines;
use ctrace_core::{
    formats::{
        ExportError, JsonLines,
        stream::{Lines, Scene, StreamLine},
    },
    recording::ReadAt,
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

enum Form {
    Text(Box<TextLines>),
    Json(Box<JsonLines>),
}

impl Printer {
    pub(crate) fn new(out: Out, json: bool) -> Self {
        let form = match json {
            true => Form::Json(Box::default()),
            false => Form::Text(Box::new(TextLines::new(out.style_of_lines()))),
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

    fn pass_on(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.out.pass(&[&self.buffer])?;
        self.buffer.clear();
        Ok(())
    }
}

impl<R: ReadAt> Lines<R> for Printer {
    fn define(&mut self, scene: &Scene<'_, R>) {
        match &mut self.form {
            Form::Text(lines) => lines.define(scene),
            Form::Json(lines) => lines.define(scene),
        }
    }

    fn line(&mut self, scene: &Scene<'_, R>, line: &StreamLine<'_>) -> io::Result<()> {
        match &mut self.form {
            Form::Text(lines) => lines.line(scene, line, &mut self.buffer),
            Form::Json(lines) => lines.line(scene, line, &mut self.buffer),
        }
        if self.buffer.len() < FULL { Ok(()) } else { self.pass_on() }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on()
    }
}
