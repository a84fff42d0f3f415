//! Explains a bad regular expression in one line. The regex crate's message has several lines.

/// Width of the margin before the expression, and before the carets below it.
const MARGIN: usize = 4;

/// Takes the regex crate's `error` for `expression`.
pub(crate) fn reason(expression: &str, error: &str) -> String {
    let mut lines = error.lines().rev().skip_while(|line| !line.starts_with("error: "));
    let Some(what) = lines.next().and_then(|line| line.strip_prefix("error: ")) else {
        return one_line(error);
    };
    let carets = lines.next().filter(|line| line.chars().all(|c| matches!(c, ' ' | '^')));
    let carets = carets.and_then(|line| Some((line.find('^')?.checked_sub(MARGIN)?, line)));
    let Some((at, line)) = carets else { return what.to_owned() };
    let length = line[MARGIN + at..].chars().take_while(|c| *c == '^').count();
    let part: String = expression.chars().skip(at).take(length).collect();
    match part.is_empty() {
        true => format!("{what}, at its end"),
        false => format!("{what}, at character {}: `{part}`", at + 1),
    }
}

pub(super) fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expression: &str, told: &str) {
        let error = regex::Regex::new(expression).expect_err("it is none").to_string();
        assert_eq!(reason(expression, &error), told);
    }

    #[test]
    fn what_is_wrong_and_where() {
        check("[", "unclosed character class, at character 1: `[`");
        check("ä(b", "unclosed group, at character 2: `(`");
        check("a{2", "unclosed counted repetition, at character 2: `{2`");
        check(r"\p{Nope}", "Unicode property not found, at character 1: `\\p{Nope}`");
        check("(?<n>a)(?<n>b)", "duplicate capture group name, at character 4: `n`");
        check("a\n(", "unclosed group");
        check("(a{1000}){1000}", "Compiled regex exceeds size limit of 10485760 bytes.");
    }
}
