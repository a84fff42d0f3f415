//! The labels of pushed profiles. Pyroscope has no quotes for their values, so these are plain.

use super::Profiled;
use crate::{daemon::metrics::names::label, host_name::host_name};
use std::sync::Arc;

/// The limit of a value, in bytes.
const LONGEST: usize = 200;

/// Returns the labels of a profile but the name of its service: configured ones replace them, or are
/// added.
pub(super) fn labels(profiled: &Profiled, given: &[(String, String)]) -> Vec<(String, String)> {
    let own = [
        ("host", Some(plain(&host_name()))),
        ("program", Some(plain(&program(&profiled.program)))),
        ("version", profiled.origin.version.as_deref().map(plain)),
        ("target", Some(plain(&profiled.origin.target))),
    ];
    let own = own.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let own =
        own.filter(|(key, value)| !value.is_empty() && given.iter().all(|(other, _)| other != key));
    own.chain(given.iter().filter(|(key, _)| key != SERVICE).cloned()).collect()
}

/// The label that names the service, as both receivers know it.
pub(super) const SERVICE: &str = "service_name";

/// Returns the name of the service: the target, unless it is configured.
pub(super) fn service(profiled: &Profiled, given: &[(String, String)]) -> String {
    let given = given.iter().find(|(key, _)| key == SERVICE).map(|(_, value)| &**value);
    let name = plain(given.unwrap_or(&profiled.origin.target));
    // Pyroscope takes fewer signs in a name than in other values.
    name.replace([':', '@', '+', '='], "_")
}

/// Returns the file name of a program.
pub(super) fn program(path: &str) -> Arc<str> {
    label(path.rsplit('/').next().unwrap_or_default())
}

/// Returns a value without signs that a receiver could take for others.
fn plain(text: &str) -> String {
    text.chars().take(LONGEST).map(|c| if is_plain(c) { c } else { '_' }).collect()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-./:@+".contains(c)
}

/// Reads a label of the configuration: `name=value`.
pub(crate) fn label_of(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}`: name=value"))?;
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !begins || !is_name || name.starts_with("__") || name.len() > LONGEST {
        return Err(format!(
            "`{text}`: a name has letters, digits and _, and begins with neither a digit nor __"
        ));
    }
    match !value.is_empty() && value.len() <= LONGEST && value.chars().all(is_plain) {
        true => Ok((name.to_owned(), value.to_owned())),
        false => {
            Err(format!("`{text}`: a value has letters, digits and _-./:@+, {LONGEST} at most"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::fixtures::profiled, *};

    #[test]
    fn configured_labels_replace_ours() {
        let given = [("service_name", "all:1"), ("host", "h"), ("env", "t")];
        let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let profiled = profiled(1);
        assert_eq!(service(&profiled, &given), "all_1");
        assert_eq!(service(&profiled, &[]), "shop__1_");
        let labels = labels(&profiled, &given);
        let names: Vec<_> = labels.iter().map(|(key, _)| &**key).collect();
        assert_eq!(names, ["program", "version", "target", "host", "env"]);
        assert_eq!(labels[3].1, "h");
    }

    #[test]
    fn values_are_plain_and_bounded() {
        assert_eq!(plain("a,b{c}=\"d\" \x1bé/x-1.2"), "a_b_c___d____/x-1.2");
        assert_eq!(plain(&"x".repeat(999)).len(), LONGEST);
    }

    #[test]
    fn configured_labels_are_checked() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(label_of("env=a/b:1"), pair("env", "a/b:1"));
        for (wrong, why) in [
            ("env", "name=value"),
            ("=x", "a name"),
            ("1a=x", "a name"),
            ("__name__=x", "a name"),
            ("a-b=x", "a name"),
            ("a=", "a value"),
            ("a=b,c", "a value"),
            ("a=b}", "a value"),
            ("a=b=c", "a value"),
        ] {
            assert!(label_of(wrong).is_err_and(|error| error.contains(why)), "{wrong}");
        }
        assert!(label_of(&format!("a={}", "x".repeat(LONGEST + 1))).is_err());
    }
}
