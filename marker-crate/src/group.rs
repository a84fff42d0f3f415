//! Decides which scopes are compiled out: the groups in `CTRACE_MARKER_OFF`.
//!
//! The macros read the variable with `option_env!` where they are used. So the build of the program
//! decides, and cargo builds again when it changes.

/// Returns whether `group` is named in `list`, or `list` has a `*`. Runs in the compiler.
#[must_use]
pub const fn is_off(list: Option<&str>, group: &str) -> bool {
    let Some(list) = list else { return false };
    let list = list.as_bytes();
    let mut start = 0;
    while start <= list.len() {
        let mut end = start;
        while end < list.len() && list[end] != b',' {
            end += 1;
        }
        if names(list, start, end, group.as_bytes()) {
            return true;
        }
        start = end + 1;
    }
    false
}

/// Returns whether `list[start..end]`, without blanks around it, is `*` or this (not empty) group.
const fn names(list: &[u8], mut start: usize, mut end: usize, group: &[u8]) -> bool {
    while start < end && list[start] == b' ' {
        start += 1;
    }
    while end > start && list[end - 1] == b' ' {
        end -= 1;
    }
    if end - start == 1 && list[start] == b'*' {
        return true;
    }
    if group.is_empty() || end - start != group.len() {
        return false;
    }
    let mut at = 0;
    while at < group.len() {
        if list[start + at] != group[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::is_off;

    #[test]
    fn a_list_names_groups() {
        assert!(!is_off(None, "dev"));
        assert!(!is_off(Some(""), "dev"));
        assert!(!is_off(Some(""), ""));
        assert!(is_off(Some("dev"), "dev"));
        assert!(is_off(Some("test, dev ,prod"), "dev"));
        assert!(is_off(Some("test,dev"), "dev"));
        assert!(!is_off(Some("devel,de"), "dev"));
        assert!(!is_off(Some("dev,"), ""));
        assert!(is_off(Some("*"), "") && is_off(Some("a,*"), "prod"));
    }
}
