//! Finds the width and colour of an output, once, outside of rendering.

use super::style::Style;
use std::ffi::OsStr;
use std::os::fd::AsFd;

/// The assumed width of a terminal that does not report it.
const DEFAULT_WIDTH: usize = 100;
/// The least width; narrower terminals are treated like this, since less is unreadable.
const LEAST_WIDTH: usize = 40;

/// Returns the style for reports written to `output`.
///
/// A file or pipe gets everything in full and no colour. A terminal gets its width and, unless
/// `NO_COLOR` is set or `TERM` is `dumb`, colour.
pub(crate) fn detect(output: impl AsFd) -> Style {
    if !rustix::termios::isatty(&output) {
        return Style::default();
    }
    let told = rustix::termios::tcgetwinsize(&output).map_or(0, |size| usize::from(size.ws_col));
    style(
        told,
        std::env::var_os("COLUMNS").as_deref(),
        std::env::var_os("NO_COLOR").as_deref(),
        std::env::var_os("TERM").as_deref(),
    )
}

/// Returns the style for a terminal, from its size and the environment.
fn style(
    told: usize,
    columns: Option<&OsStr>,
    no_color: Option<&OsStr>,
    term: Option<&OsStr>,
) -> Style {
    let width = match told {
        0 => columns
            .and_then(|text| text.to_str()?.trim().parse().ok())
            .filter(|&width| width > 0)
            .unwrap_or(DEFAULT_WIDTH),
        told => told,
    };
    let no_color = no_color.is_some_and(|value| !value.is_empty());
    let dumb = term.is_none_or(|term| term == "dumb");
    Style { width: Some(width.max(LEAST_WIDTH)), colour: !no_color && !dumb }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(told: usize, columns: &str, no_color: &str, term: &str) -> Style {
        style(told, Some(columns.as_ref()), Some(no_color.as_ref()), Some(term.as_ref()))
    }

    #[test]
    fn the_terminal_is_asked_first() {
        assert_eq!(of(132, "80", "", "xterm").width, Some(132));
        assert_eq!(of(0, "80", "", "xterm").width, Some(80));
        assert_eq!(of(0, "wide", "", "xterm").width, Some(100));
        assert_eq!(of(3, "", "", "xterm").width, Some(40));
    }

    #[test]
    fn colour_can_be_declined() {
        assert!(of(80, "", "", "xterm").colour);
        assert!(!of(80, "", "1", "xterm").colour);
        assert!(!of(80, "", "", "dumb").colour);
        assert!(!style(80, None, None, None).colour);
    }

    #[test]
    fn a_file_gets_everything() {
        let file = std::fs::File::open("/dev/null").expect("/dev/null opens");
        assert_eq!(detect(file), Style { width: None, colour: false });
    }
}
