//! Reads names of users and groups from the files in /etc.

/// Returns the number of a user.
pub(crate) fn user(text: &str) -> Result<u32, String> {
    number(text, "/etc/passwd").ok_or_else(|| format!("there is no user `{text}` on this machine"))
}

/// Returns the number of a group.
pub(crate) fn group(text: &str) -> Result<u32, String> {
    number(text, "/etc/group").ok_or_else(|| format!("there is no group `{text}` on this machine"))
}

/// Returns whether a user is a listed member of a group, besides the login group.
pub(crate) fn is_member(user: u32, group: u32) -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let passwd = read("/etc/passwd");
    let of_user = passwd.lines().find(|line| field(line, 2) == Some(user));
    let Some(name) = of_user.and_then(|line| line.split(':').next()) else { return false };
    if of_user.is_some_and(|line| field(line, 3) == Some(group)) {
        return true;
    }
    let groups = read("/etc/group");
    let members = groups.lines().find(|line| field(line, 2) == Some(group));
    let members = members.and_then(|line| line.split(':').nth(3)).unwrap_or_default();
    members.split(',').any(|member| member == name)
}

fn number(text: &str, path: &str) -> Option<u32> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let all = std::fs::read_to_string(path).ok()?;
    all.lines().find(|line| line.split(':').next() == Some(text)).and_then(|line| field(line, 2))
}

fn field(line: &str, nth: usize) -> Option<u32> {
    line.split(':').nth(nth)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_by_name_and_number() {
        assert_eq!((user("root"), group("root")), (Ok(0), Ok(0)));
        assert_eq!(user("4242"), Ok(4242));
        assert!(user("nobody-of-that-name").is_err_and(|why| why.contains("nobody-of-that-name")));
        assert!(is_member(0, 0) && !is_member(0, 54321));
    }
}
