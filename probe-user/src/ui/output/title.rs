//! The title of the terminal's window, which shows a trace while a command has the screen.
//!
//! A title takes no place on the screen and moves no cursor, so the command and its questions stay as they
//! are. The last title comes back at the end. Terminals that are not known to have a title get nothing.

use crate::ui::output::{live, style::Style, terminal};
use std::sync::atomic::{AtomicBool, Ordering};

/// True while the title is ours.
static IS_SET: AtomicBool = AtomicBool::new(false);

/// Keeps the window's title on the terminal's stack.
const KEEP: &str = "\x1b[22;2t";
/// Puts the kept title back.
const PUT_BACK: &str = "\x1b[23;2t";

/// How names of terminals begin that keep titles on a stack.
const HAVE_TITLES: [&str; 8] =
    ["xterm", "tmux", "alacritty", "foot", "wezterm", "rxvt", "contour", "ghostty"];

/// Shows the text in the title. `text` must be harmless.
pub(crate) fn show(text: &str) {
    if !has_title(|name| std::env::var(name).ok()) {
        return;
    }
    let stderr = std::io::stderr();
    let Style { width: Some(_), terminal: true, .. } = terminal::of_messages(&stderr) else {
        return;
    };
    let is_ours = IS_SET.load(Ordering::Relaxed);
    if live::write_if_taken(&stderr, &title(text, is_ours)) {
        IS_SET.store(true, Ordering::Relaxed);
    }
}

/// Puts the last title back.
pub(crate) fn put_back() {
    if IS_SET.load(Ordering::Relaxed) && live::write_if_taken(&std::io::stderr(), PUT_BACK) {
        IS_SET.store(false, Ordering::Relaxed);
    }
}

/// Returns what sets the title. It is one write, so that nothing of the command comes in between.
fn title(text: &str, is_ours: bool) -> String {
    let keep = if is_ours { "" } else { KEEP };
    format!("{keep}\x1b]2;{text}\x07")
}

fn has_title(variable: impl Fn(&str) -> Option<String>) -> bool {
    let Some(term) = variable("TERM") else { return false };
    // tmux may call itself screen.
    let is_tmux = term.starts_with("screen") && variable("TMUX").is_some();
    is_tmux || HAVE_TITLES.iter().any(|known| term.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_title_is_kept_once() {
        assert_eq!(title("3 s", false), "\x1b[22;2t\x1b]2;3 s\x07");
        assert_eq!(title("4 s", true), "\x1b]2;4 s\x07");
    }

    #[test]
    fn only_terminals_that_have_titles_get_one() {
        let has = |set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(known, _)| *known == name);
            has_title(|name| value(name).map(|(_, value)| (*value).to_owned()))
        };
        for term in ["xterm-256color", "xterm-kitty", "tmux-256color", "foot"] {
            assert!(has(&[("TERM", term)]), "{term}");
        }
        assert!(has(&[("TERM", "screen"), ("TMUX", "/tmp/tmux,1,0")]));
        for term in ["linux", "dumb", "vt220", "screen"] {
            assert!(!has(&[("TERM", term)]), "{term}");
        }
        assert!(!has(&[]));
    }
}
