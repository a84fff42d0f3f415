//! Finds the width, the colours and the characters of an output, once, outside of rendering.

use crate::ui::output::style::Style;
use clap::ColorChoice;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// The width where neither a terminal nor COLUMNS tells one.
const DEFAULT_WIDTH: usize = 120;
/// The least width; narrower terminals are treated like this, since less is unreadable.
const LEAST_WIDTH: usize = 40;

/// The user's choice of colours.
static CHOSEN: OnceLock<ColorChoice> = OnceLock::new();

/// Takes the user's choice, once, before the first output.
pub(crate) fn choose(colours: ColorChoice) {
    // A second choice cannot come.
    let _ = CHOSEN.set(colours);
}

fn chosen() -> ColorChoice {
    CHOSEN.get().copied().unwrap_or_default()
}

/// Returns the style for text written to `output`.
pub(crate) fn detect(output: impl AsFd) -> Style {
    let is_terminal = rustix::termios::isatty(&output);
    let told = rustix::termios::tcgetwinsize(&output).map_or(0, |size| usize::from(size.ws_col));
    style(is_terminal.then_some(told), chosen(), |name| std::env::var_os(name))
}

/// Returns the style for a file.
pub(crate) fn of_file() -> Style {
    style(None, chosen(), |name| std::env::var_os(name))
}

/// Returns the style for messages: lines of a log stay whole, unless the user tells a width.
pub(crate) fn of_messages(output: impl AsFd) -> Style {
    let has_width =
        rustix::termios::isatty(&output) || columns(|name| std::env::var_os(name)).is_some();
    let style = detect(output);
    Style { width: style.width.filter(|_| has_width), ..style }
}

/// Returns the width that the user tells.
fn columns(variable: impl Fn(&str) -> Option<OsString>) -> Option<usize> {
    variable("COLUMNS")?.to_str()?.trim().parse().ok().filter(|width| *width > 0)
}

/// Returns the style for a terminal of this width, or for another output.
fn style(
    terminal: Option<usize>,
    chosen: ColorChoice,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Style {
    let width = terminal.filter(|width| *width > 0).or_else(|| columns(&variable));
    let may_colour = || {
        let declined = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = variable("TERM").is_none_or(|term| term == "dumb");
        terminal.is_some() && !declined && !is_dumb
    };
    let colour = match chosen {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => may_colour(),
    };
    let has_all = |value: OsString| value == "truecolor" || value == "24bit";
    let truecolour = colour && variable("COLORTERM").is_some_and(has_all);
    let width = Some(width.unwrap_or(DEFAULT_WIDTH).max(LEAST_WIDTH));
    let ascii = is_ascii(&variable);
    Style { width, colour, truecolour, ascii, terminal: terminal.is_some() }
}

/// Returns whether the user's locale has ASCII only. Without a locale the terminal is likely to show
/// more.
fn is_ascii(variable: &impl Fn(&str) -> Option<OsString>) -> bool {
    let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set);
    locale.is_some_and(|locale| {
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        !locale.contains("utf-8") && !locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(terminal: Option<usize>, chosen: ColorChoice, set: &[(&str, &str)]) -> Style {
        style(terminal, chosen, |name| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    fn width(terminal: Option<usize>, columns: &str) -> Option<usize> {
        of(terminal, ColorChoice::Auto, &[("COLUMNS", columns)]).width
    }

    #[test]
    fn the_terminal_is_asked_first() {
        assert_eq!(width(Some(132), "80"), Some(132));
        assert_eq!(width(Some(0), "80"), Some(80));
        assert_eq!(width(Some(0), "wide"), Some(120));
        assert_eq!(width(Some(3), ""), Some(40));
        assert_eq!(width(None, "97"), Some(97));
        assert_eq!(width(None, "0"), Some(120));
        let is_terminal = |size| of(size, ColorChoice::Always, &[("COLUMNS", "80")]).terminal;
        assert_eq!([Some(132), Some(0), None].map(is_terminal), [true, true, false]);
    }

    #[test]
    fn colour_can_be_declined_and_asked_for() {
        let colour = |terminal, chosen, set| of(terminal, chosen, set).colour;
        const XTERM: (&str, &str) = ("TERM", "xterm");
        assert!(colour(Some(80), ColorChoice::Auto, &[XTERM]));
        assert!(!colour(None, ColorChoice::Auto, &[XTERM]));
        assert!(!colour(Some(80), ColorChoice::Auto, &[XTERM, ("NO_COLOR", "1")]));
        assert!(colour(Some(80), ColorChoice::Auto, &[XTERM, ("NO_COLOR", "")]));
        assert!(!colour(Some(80), ColorChoice::Auto, &[("TERM", "dumb")]));
        assert!(!colour(Some(80), ColorChoice::Auto, &[]));
        assert!(colour(None, ColorChoice::Always, &[("NO_COLOR", "1")]));
        assert!(!colour(Some(80), ColorChoice::Never, &[XTERM]));
    }

    #[test]
    fn a_terminal_says_if_it_has_all_colours() {
        const XTERM: (&str, &str) = ("TERM", "xterm");
        let all = |chosen, set| of(Some(80), chosen, set).truecolour;
        assert!(all(ColorChoice::Auto, &[XTERM, ("COLORTERM", "truecolor")]));
        assert!(all(ColorChoice::Always, &[("COLORTERM", "24bit"), ("NO_COLOR", "1")]));
        assert!(!all(ColorChoice::Auto, &[XTERM, ("COLORTERM", "yes")]));
        assert!(!all(ColorChoice::Auto, &[XTERM]));
        assert!(!all(ColorChoice::Auto, &[XTERM, ("COLORTERM", "24bit"), ("NO_COLOR", "1")]));
        assert!(!all(ColorChoice::Never, &[XTERM, ("COLORTERM", "truecolor")]));
    }

    #[test]
    fn a_locale_without_unicode_gets_ascii() {
        let ascii = |set| of(None, ColorChoice::Auto, set).ascii;
        assert!(!ascii(&[]));
        assert!(ascii(&[("LANG", "C")]));
        assert!(!ascii(&[("LANG", "C.UTF-8")]));
        assert!(ascii(&[("LANG", "C.UTF-8"), ("LC_ALL", "POSIX")]));
        assert!(!ascii(&[("LANG", "C"), ("LC_CTYPE", "en_GB.utf8"), ("LC_ALL", "")]));
    }
}
