//! Finds tests that skipped themselves, and their reasons: libtest counts them as passed.
//!
//! There are three ways to skip. Live tests write `skipped NAME: why` past libtest's capture. Unit
//! tests print `skipped: why`, which `--show-output` shows under the heading of the test, one line
//! for each skipped part. Other tests are marked as ignored.

/// Returns the reasons of self-skipped tests, one for each test.
pub(crate) fn of_themselves(output: &str) -> Vec<&str> {
    let mut reasons = Vec::new();
    let (mut passed, mut told) = (false, true);
    for line in output.lines() {
        if let Some(rest) = line.strip_prefix("skipped ")
            && let Some((_, why)) = rest.split_once(": ")
        {
            reasons.push(why);
        } else if line.starts_with("successes:") {
            passed = true;
        } else if line.starts_with("failures:") || line.starts_with("test result:") {
            passed = false;
        } else if line.starts_with("---- ") {
            told = false;
        } else if let Some(why) = line.strip_prefix("skipped: ")
            && passed
            && !told
        {
            told = true;
            reasons.push(why);
        }
    }
    reasons
}

/// Returns each reason once, with its number of tests.
pub(crate) fn reasons(output: &str) -> Vec<(&str, usize)> {
    let ignored = output.lines().filter(|line| line.starts_with("test ")).filter_map(|line| {
        let (_, why) = line.split_once(" ... ignored")?;
        Some(why.strip_prefix(", ").unwrap_or("ignored"))
    });
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for why in of_themselves(output).into_iter().chain(ignored) {
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => reasons.push((why, 1)),
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 6 tests
test a ... ok
test measures ... ignored, it measures
skipped kernel::session::counts: needs root (CAP_SYS_ADMIN)
skipped kernel::session::threads: needs root (CAP_SYS_ADMIN)
successes:

---- partly stdout ----
gcc: fine
skipped: no clang
skipped: no clang++

---- wholly stdout ----
skipped: no musl

successes:
    partly
    wholly

failures:

---- fails stdout ----
skipped: no tool
thread panicked

failures:
    fails

test result: FAILED. 5 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out
";

    #[test]
    fn each_test_is_skipped_once_and_a_failed_one_is_not() {
        let root = "needs root (CAP_SYS_ADMIN)";
        assert_eq!(of_themselves(OUTPUT), [root, root, "no clang", "no musl"]);
        let expected = [(root, 2), ("no clang", 1), ("no musl", 1), ("it measures", 1)];
        assert_eq!(reasons(OUTPUT), expected);
    }
}
