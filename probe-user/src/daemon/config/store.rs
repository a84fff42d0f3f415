//! The address of an object store. `ctrace-store` reads it as well; it is checked here, so that a wrong
//! one is told before the daemon starts, and none holds credentials.

/// The limit of an address, in bytes.
const LONGEST: usize = 1024;
const SCHEMES: [&str; 6] = ["s3", "gs", "az", "abfs", "abfss", "file"];

/// Checks an address.
pub(super) fn store(text: &str) -> Result<String, String> {
    if text.len() > LONGEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("at most {LONGEST} letters, digits and signs; others as %20"));
    }
    let Some((scheme, place)) = text.split_once("://") else {
        return Err(format!("it begins with one of {}, and ://", SCHEMES.join(", ")));
    };
    if !SCHEMES.contains(&scheme) {
        return Err(format!("there is no {scheme}://, but {}", SCHEMES.join(", ")));
    }
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    if text.contains(['?', '#']) || authority.contains(':') {
        return Err("only a place: credentials go into the daemon's environment".to_owned());
    }
    match (scheme, authority.split_once('@')) {
        ("file", _) if !authority.is_empty() || path.is_empty() => {
            return Err("a folder from the root is needed".to_owned());
        }
        ("abfs" | "abfss", Some((container, host))) if ![container, host].contains(&"") => {}
        (_, Some(_)) => return Err("there is no place for a user's name".to_owned()),
        ("file", None) => {}
        _ if authority.is_empty() => return Err("the name of a bucket is missing".to_owned()),
        _ => {}
    }
    let mut parts = path.strip_suffix('/').unwrap_or(path).split('/');
    match parts.any(|part| [".", ".."].contains(&part)) || path.contains("//") {
        true => Err("names between two / are needed, and neither . nor ..".to_owned()),
        false => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_places_and_hold_no_credentials() {
        for good in [
            "s3://bucket",
            "s3://bucket/",
            "s3://bucket/a/prefix=1/",
            "gs://bucket/x",
            "az://container/x",
            "abfss://container@account.dfs.core.windows.net/x",
            "file:///mnt/a%20store",
        ] {
            assert_eq!(store(good).as_deref(), Ok(good));
        }
        for (wrong, why) in [
            ("", "begins with"),
            ("bucket/x", "begins with"),
            ("http://host/bucket", "there is no http://"),
            ("s3://", "bucket is missing"),
            ("s3:///x", "bucket is missing"),
            ("s3://key:secret@bucket/x", "environment"),
            ("s3://key@bucket/x", "user's name"),
            ("abfss://@account/x", "user's name"),
            ("az://container/x?sv=2&sig=secret", "environment"),
            ("s3://bucket/x#y", "environment"),
            ("s3://bucket/../x", "neither"),
            ("s3://bucket/a//b", "names between"),
            ("file://host/x", "from the root"),
            ("file:///", "from the root"),
            ("s3://bucket/a b", "signs"),
            ("s3://bucket/\u{1b}[2J", "signs"),
        ] {
            let error = store(wrong).expect_err(wrong);
            assert!(error.contains(why), "{wrong}: {error}");
        }
        assert!(store(&format!("s3://{}", "x".repeat(LONGEST))).is_err());
    }
}
