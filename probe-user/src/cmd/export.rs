//! `ctrace export`: writes a recording in one of the formats in [`ctrace_core::formats`].

use super::{
    Failure,
    open::open,
    query::{QuerySource, queries},
};
use crate::{
    cli::ExportArgs,
    session::keep::{
        one_function::{frame_function, marked_frame},
        sink,
    },
    ui::{self, text::units::bytes},
};
use anyhow::{Context, bail};
use ctrace_core::formats::{
    Choice, ChosenFrame, Export, ExportError, ExportTable, Format, Options,
};
use ctrace_core::function::FunctionInfo;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::{self, ErrorKind, IsTerminal, Write},
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

pub(super) fn main(args: &ExportArgs) -> Result<u8, Failure> {
    export(args)?;
    Ok(0)
}

fn export(args: &ExportArgs) -> anyhow::Result<()> {
    let format = Format::find(&args.format).context("the command line knows the formats")?;
    check(args, format)?;
    let lens = &args.query.lens;
    let recording = open(&args.files, lens)?;
    let older = args.diff.as_ref().map(|old| open(&[old], lens)).transpose()?;
    let recordings = [Some(&recording), older.as_ref()];
    let calls = recordings.iter().flatten().flat_map(|r| r.chunks()).map(|chunk| chunk.calls).sum();
    let asked: Vec<QuerySource<'_>> =
        recordings.into_iter().flatten().map(QuerySource::from).collect();
    let queries = queries(&args.query, &asked)?;
    let (query, of_older) = queries.split_first().context("there is a recording")?;
    let (mut out, name) = output(args, format)?;
    let bar = progress(calls);
    let export = Export {
        recording: &recording,
        query,
        options: Options {
            reversed: args.reversed,
            older: older.as_ref().zip(of_older.first()),
            table: args.table.map_or(ExportTable::default(), ExportTable::from),
            frame: chosen_frame(args, recording.functions())?,
        },
        progress: &|calls| bar.inc(calls),
    };
    let most = args.max_output.map_or_else(|| most_of(args), Ok)?;
    let mut out = Bounded { out: &mut *out, left: most };
    let written = format.write(&export, &mut out);
    bar.finish_and_clear();
    match written {
        Ok(told) => ui::remarks(&told).iter().for_each(|line| ui::say(line)),
        // A reader that went away (`| head`) has enough.
        Err(ExportError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(ExportError::Write(error)) if error.kind() == ErrorKind::QuotaExceeded => bail!(
            "{name} became larger than {}, which is much for such a recording, and ends there: \
             --time or -f export a part of it, --max-output SIZE all",
            bytes(most)
        ),
        Err(ExportError::Write(error)) => {
            return Err(error).context(format!("cannot write {name}"));
        }
        Err(ExportError::Read(error)) => bail!("{} {error}", shown(&args.files)),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Returns the frame to write. Without a name, frames are those that the program marks.
fn chosen_frame(
    args: &ExportArgs,
    functions: &[FunctionInfo],
) -> anyhow::Result<Option<ChosenFrame>> {
    let (name, number) = named_frame(args)?;
    let function = match (name, number) {
        (Some(pattern), _) => frame_function(pattern, functions)?,
        (None, Some(_)) => marked_frame(functions)?,
        (None, None) => return Ok(None),
    };
    Ok(Some(ChosenFrame { function, number }))
}

/// Returns the name of frames and the number of one, as far as given. `--frame` takes either.
fn named_frame(args: &ExportArgs) -> anyhow::Result<(Option<&str>, Option<NonZeroUsize>)> {
    let of_function = args.frame_function.as_deref();
    let Some(frame) = args.frame.as_deref() else {
        return Ok((of_function, args.frame_number));
    };
    match (frame.parse().ok(), args.frame_number) {
        (Some(number), None) => Ok((of_function, Some(number))),
        _ if of_function.is_some() => {
            bail!("--frame and --frame-function both name frames: leave one of them out")
        }
        (_, number) => Ok((Some(frame), number)),
    }
}

/// Returns the size limit of the output: many times what ctrace's own recordings need.
fn most_of(args: &ExportArgs) -> anyhow::Result<u64> {
    const FREE: u64 = 1 << 30;
    const RATIO: u64 = 4096;
    let mut all = 0_u64;
    for file in args.files.iter().chain(&args.diff) {
        let shown = file.display();
        let file = file.metadata().with_context(|| format!("cannot look at {shown}"))?;
        all = all.saturating_add(file.len());
    }
    Ok(all.saturating_mul(RATIO).saturating_add(FREE))
}

/// A writer that takes a limited number of bytes.
struct Bounded<'a> {
    out: &'a mut (dyn Write + Send),
    left: u64,
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            return Err(ErrorKind::QuotaExceeded.into());
        };
        let written = self.out.write(bytes)?;
        self.left = left + (bytes.len() - written) as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Refuses options that the format does not have.
fn check(args: &ExportArgs, format: &Format) -> anyhow::Result<()> {
    let asked = [
        (args.reversed, Choice::Reversed, "--reversed"),
        (args.diff.is_some(), Choice::Older, "--diff"),
        (args.table.is_some(), Choice::Table, "--table"),
        (args.frame.is_some(), Choice::Frame, "--frame"),
        (args.frame_function.is_some(), Choice::Frame, "--frame-function"),
        (args.frame_number.is_some(), Choice::Frame, "--frame-number"),
    ];
    for (is_asked, choice, option) in asked {
        if is_asked && !format.takes.contains(&choice) {
            let takers = Format::ALL.iter().filter(|format| format.takes.contains(&choice));
            let takers: Vec<_> = takers.map(|format| format.name).collect();
            bail!("{option} is for --format {}, not for {}", takers.join(" or "), format.name);
        }
    }
    Ok(())
}

/// Opens the output, and returns its name.
fn output(args: &ExportArgs, format: &Format) -> anyhow::Result<(Box<dyn Write + Send>, String)> {
    match args.output.as_deref() {
        Some(path) if path != Path::new("-") => {
            let is_input = |input: &Path| same_file(input, path);
            if args.files.iter().any(|file| is_input(file))
                || args.diff.as_deref().is_some_and(is_input)
            {
                bail!("{} is the recording itself: give -o another file", path.display());
            }
            Ok((Box::new(sink::open(path)?), path.display().to_string()))
        }
        None if format.is_binary && io::stdout().is_terminal() => {
            let first = args.files.first().context("the command line asks for a file")?;
            let example = first.with_extension(format.extension);
            bail!("{} is not for a terminal: add -o {}", format.name, example.display())
        }
        _ => Ok((Box::new(io::stdout()), "stdout".to_owned())),
    }
}

fn shown(files: &[PathBuf]) -> String {
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    names.join(", ")
}

fn same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    id(one).is_some() && id(one) == id(other)
}

/// Returns a bar on stderr, hidden where that is no terminal.
fn progress(calls: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(calls), ProgressDrawTarget::stderr_with_hz(5));
    if let Ok(style) = ProgressStyle::with_template(
        "exporting {bar:30} {percent}% · {human_pos} calls · {eta} left",
    ) {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn named(options: &str) -> Result<(Option<String>, Option<usize>), String> {
        let words = format!("ctrace export --format frame {options}");
        let cli =
            Cli::try_parse_from(words.split_whitespace()).map_err(|error| error.to_string())?;
        let Command::Export(args) = cli.command else { panic!("another command") };
        let (name, number) = named_frame(&args).map_err(|error| error.to_string())?;
        Ok((name.map(str::to_owned), number.map(NonZeroUsize::get)))
    }

    #[test]
    fn a_frame_is_named_by_its_function_or_its_number() {
        let name = || Some("render".to_owned());
        let expected = [
            ("", (None, None)),
            ("--frame render", (name(), None)),
            ("--frame render --frame-number 3", (name(), Some(3))),
            ("--frame-function render --frame 17", (name(), Some(17))),
            ("--frame-function render --frame-number 4", (name(), Some(4))),
            ("--frame 17", (None, Some(17))),
            // Then the name of the frames is a number.
            ("--frame 17 --frame-number 2", (Some("17".to_owned()), Some(2))),
        ];
        for (options, expected) in expected {
            assert_eq!(named(options), Ok(expected), "{options}");
        }
        let error = named("--frame-function render --frame draw").expect_err("two names");
        assert!(error.contains("leave one of them out"), "{error}");
    }
}
