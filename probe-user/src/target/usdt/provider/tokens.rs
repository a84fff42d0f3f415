//! Makes tokens of a provider file. Comments go, and so do lines of the preprocessor; a `#define` of a
//! type is kept apart.

use super::declaration::Types;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    Sign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) kind: TokenKind,
    /// Counted from 1.
    pub(super) line: usize,
}

pub(super) fn tokens<'a>(text: &'a str, types: &mut Types<'a>) -> Vec<Token<'a>> {
    let (mut tokens, mut rest, mut line) = (Vec::new(), text, 1);
    let mut begins_line = true;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '#' if begins_line => {
                let length = directive(rest);
                define(&rest[1..length], types);
                length
            }
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |at| at + 4),
            first if is_of_word(first) => rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()),
            first => first.len_utf8(),
        };
        let (piece, behind) = rest.split_at(length);
        let is_comment = piece.starts_with("//") || piece.starts_with("/*");
        if !is_comment && piece.starts_with(is_of_word) {
            tokens.push(Token { text: piece, kind: TokenKind::Word, line });
        } else if !is_comment && !piece.starts_with('#') && !first.is_whitespace() {
            tokens.push(Token { text: piece, kind: TokenKind::Sign, line });
        }
        if !is_comment {
            begins_line = first == '\n' || begins_line && first.is_whitespace();
        }
        line += piece.matches('\n').count();
        rest = behind;
    }
    tokens
}

/// Names of probes may have a `-` in them.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Returns the length of a line of the preprocessor, which goes on behind a backslash.
fn directive(text: &str) -> usize {
    let ends = text.match_indices('\n').map(|(at, _)| at);
    let mut ends = ends.filter(|at| !text[..*at].trim_end_matches('\r').ends_with('\\'));
    ends.next().unwrap_or(text.len())
}

/// Reads `define NAME TYPE`.
fn define<'a>(line: &'a str, types: &mut Types<'a>) {
    let mut words = line.split_ascii_whitespace();
    if words.next() == Some("define")
        && let Some(name) = words.next()
    {
        let type_and_name: Vec<&str> = words.chain([name]).collect();
        types.define(&type_and_name);
    }
}
