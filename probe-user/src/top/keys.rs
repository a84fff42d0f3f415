//! The table of keys and their actions. The help screen derives from it.

use crate::top::model::{Mode, View};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// An action on the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    Help,
    /// Moves by rows, up if negative.
    Move(isize),
    /// Moves by screenfuls.
    Page(isize),
    First,
    Last,
    /// Sorts by the column to the right, or to the left if negative.
    SortBeside(isize),
    /// Goes deeper into the tree, or out of it if negative. In a table it sorts.
    Beside(isize),
    /// Sorts by the column of numbers at this place on the screen, from 1.
    SortAt(usize),
    SortByName,
    Reverse,
    View(View),
    ViewBeside(isize),
    Detail,
    /// Folds a row of the tree. Of another view, shows more about the row.
    Open,
    /// Makes the chosen function the root of the tree.
    Into,
    /// Makes it the root of the tree of its callers.
    Callers,
    /// Goes back to the root before.
    Back,
    Pause,
    Basis,
    Freeze,
    Filter,
    Export,
    /// Shows the daemon's other processes.
    Others,
    /// Leaves help, a question or the filter.
    Cancel,
    Accept,
    Type(char),
    Erase,
}

/// Keys with the same action.
pub(super) struct Binding {
    keys: &'static [KeyCode],
    /// The keys in the form of the help.
    pub(super) shown: &'static str,
    action: Action,
    pub(super) help: &'static str,
}

const fn key(
    keys: &'static [KeyCode],
    shown: &'static str,
    action: Action,
    help: &'static str,
) -> Binding {
    Binding { keys, shown, action, help }
}

use KeyCode::Char;

/// The keys of the normal mode.
pub(super) static BINDINGS: &[Binding] = &[
    key(&[Char('q')], "q", Action::Quit, "quit (also Ctrl-C)"),
    key(&[Char('?'), KeyCode::F(1)], "?", Action::Help, "this help"),
    key(&[KeyCode::Down, Char('j')], "↓ j", Action::Move(1), "next row"),
    key(&[KeyCode::Up, Char('k')], "↑ k", Action::Move(-1), "row above"),
    key(&[KeyCode::PageDown], "PgDn", Action::Page(1), "a screen further"),
    key(&[KeyCode::PageUp], "PgUp", Action::Page(-1), "a screen back"),
    key(&[KeyCode::Home, Char('g')], "Home g", Action::First, "first row"),
    key(&[KeyCode::End, Char('G')], "End G", Action::Last, "last row"),
    key(
        &[KeyCode::Right],
        "→",
        Action::Beside(1),
        "sort by the column on the right; in the tree: unfold, or go to what is below",
    ),
    key(
        &[KeyCode::Left],
        "←",
        Action::Beside(-1),
        "sort by the column on the left; in the tree: fold, or go to the row above",
    ),
    key(&[Char('>')], ">", Action::SortBeside(1), "sort by the column on the right in any view"),
    key(&[Char('<')], "<", Action::SortBeside(-1), "sort by the column on the left in any view"),
    key(&[Char('1')], "1 … 9", Action::SortAt(1), "sort by this column of numbers"),
    key(&[Char('n')], "n", Action::SortByName, "sort by name"),
    key(&[Char('r')], "r", Action::Reverse, "the other way round"),
    key(&[Char('/')], "/", Action::Filter, "filter as you type; Esc takes it away"),
    key(&[KeyCode::Tab], "Tab", Action::ViewBeside(1), "next view"),
    key(&[KeyCode::BackTab], "Shift-Tab", Action::ViewBeside(-1), "view before"),
    key(&[Char('f')], "f", Action::View(View::Functions), "functions"),
    key(&[Char('h')], "h", Action::View(View::Histogram), "histogram of the chosen function"),
    key(&[Char('t')], "t", Action::View(View::Tree), "call tree"),
    key(&[Char('p')], "p", Action::View(View::Paths), "call paths"),
    key(&[Char('T')], "T", Action::View(View::Threads), "threads"),
    key(&[Char('N')], "N", Action::View(View::Notes), "notes: what is missing, and what to know"),
    key(
        &[KeyCode::Enter],
        "Enter",
        Action::Open,
        "more about the chosen function; in the tree: fold or unfold; in the paths: show it in the \
         tree",
    ),
    key(&[Char('d')], "d", Action::Detail, "more about the chosen function"),
    key(&[Char('i')], "i", Action::Into, "into: a tree with the chosen function as its root"),
    key(&[Char('w')], "w", Action::Callers, "who calls it: the tree of its callers, upside down"),
    key(&[Char('u')], "u", Action::Back, "up: back to the tree before i or w"),
    key(&[Char(' ')], "Space", Action::Pause, "pause: the screen stands still, counting goes on"),
    key(&[Char('c')], "c", Action::Basis, "the last interval, or all since the start"),
    key(
        &[Char('b')],
        "b",
        Action::Freeze,
        "freeze the numbers and compare with them; again: no more",
    ),
    key(&[Char('e')], "e", Action::Export, "write what is shown into a file"),
    key(&[Char('o')], "o", Action::Others, "another process, with --daemon"),
    key(&[KeyCode::Esc], "Esc", Action::Cancel, "leave help, question or filter"),
];

/// Returns the action of a key in a mode.
pub(super) fn action(mode: Mode, key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == Char('c')).then_some(Action::Quit);
    }
    match (mode, key.code) {
        (Mode::Look, Char(digit @ '1'..='9')) => {
            Some(Action::SortAt(digit as usize - '0' as usize))
        }
        (Mode::Look, code) => {
            BINDINGS.iter().find(|binding| binding.keys.contains(&code)).map(|found| found.action)
        }
        (Mode::Filter | Mode::Export, KeyCode::Esc) => Some(Action::Cancel),
        (Mode::Filter, KeyCode::Enter) => Some(Action::Accept),
        (Mode::Filter, KeyCode::Backspace) => Some(Action::Erase),
        (Mode::Filter | Mode::Export, Char(c)) => Some(Action::Type(c)),
        (Mode::Filter, KeyCode::Down) => Some(Action::Move(1)),
        (Mode::Filter, KeyCode::Up) => Some(Action::Move(-1)),
        (Mode::Choose, KeyCode::Enter) => Some(Action::Accept),
        (Mode::Choose, Char('q') | KeyCode::Esc) => Some(Action::Quit),
        (Mode::Help | Mode::Choose, KeyCode::Down | Char('j')) => Some(Action::Move(1)),
        (Mode::Help | Mode::Choose, KeyCode::Up | Char('k')) => Some(Action::Move(-1)),
        (Mode::Help | Mode::Choose, KeyCode::PageDown | Char(' ')) => Some(Action::Page(1)),
        (Mode::Help | Mode::Choose, KeyCode::PageUp) => Some(Action::Page(-1)),
        (Mode::Help, KeyCode::Home | Char('g')) => Some(Action::First),
        (Mode::Help, KeyCode::End | Char('G')) => Some(Action::Last),
        (Mode::Help, KeyCode::Esc | Char('?' | 'q') | KeyCode::Enter) => Some(Action::Cancel),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_does_two_things() {
        let keys: Vec<&KeyCode> = BINDINGS.iter().flat_map(|binding| binding.keys).collect();
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{key:?}");
        }
    }

    #[test]
    fn typed_letters_are_no_commands() {
        let q = KeyEvent::new(Char('q'), KeyModifiers::NONE);
        assert_eq!(action(Mode::Look, q), Some(Action::Quit));
        assert_eq!(action(Mode::Filter, q), Some(Action::Type('q')));
        let c = KeyEvent::new(Char('c'), KeyModifiers::CONTROL);
        assert_eq!(action(Mode::Filter, c), Some(Action::Quit));
    }
}
