//! Reads a value of the configuration file in the type of its key.

use crate::target::usdt::provider::ProviderFile;
use std::path::PathBuf;
use toml::de::DeValue;

/// A value, with error messages for a wrong type.
#[derive(Clone, Copy)]
pub(crate) struct TomlValue<'a>(pub &'a DeValue<'a>);

impl TomlValue<'_> {
    pub(crate) fn text(self) -> Result<String, String> {
        self.0.as_str().map(str::to_owned).ok_or_else(|| self.wrong("a text in quotes"))
    }

    /// Reads one text, or a list of them.
    pub(crate) fn texts(self) -> Result<Vec<String>, String> {
        let Some(list) = self.0.as_array() else {
            let one = self.0.as_str().ok_or_else(|| self.wrong("a text or a list of texts"))?;
            return Ok(vec![one.to_owned()]);
        };
        list.iter().map(|item| TomlValue(item.get_ref()).text()).collect()
    }

    pub(crate) fn flag(self) -> Result<bool, String> {
        self.0.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    pub(crate) fn count(self) -> Result<u32, String> {
        let number =
            self.0.as_integer().and_then(|n| u32::from_str_radix(n.as_str(), n.radix()).ok());
        number.ok_or_else(|| self.wrong("a whole number"))
    }

    /// Reads a number, whole or not.
    pub(crate) fn number(self) -> Result<f64, String> {
        let whole = self.0.as_integer().map(|n| n.as_str().to_owned());
        let text = whole.or_else(|| self.0.as_float().map(|n| n.as_str().to_owned()));
        text.and_then(|text| text.parse().ok()).ok_or_else(|| self.wrong("a number"))
    }

    /// Reads a text in the form of the command line.
    pub(crate) fn parsed<T>(self, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
        let text = self.text()?;
        parse(&text).map_err(|why| format!("`{text}`: {why}"))
    }

    /// Like [`Self::parsed`], with `None` for `off`.
    pub(crate) fn unless_off<T>(
        self,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        self.parsed(|text| if text == "off" { Ok(None) } else { parse(text).map(Some) })
    }

    /// Reads one of several words.
    pub(crate) fn one_of<T: Copy>(self, words: &[(&str, T)]) -> Result<T, String> {
        self.parsed(|text| {
            let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
            let names = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
            found.ok_or_else(|| format!("one of {}", names()))
        })
    }

    fn wrong(self, wanted: &str) -> String {
        format!("{wanted} is expected, not {}", self.0.type_str())
    }
}

/// Reads a path from the root.
pub(super) fn path(value: TomlValue<'_>) -> Result<PathBuf, String> {
    value.parsed(rooted)
}

fn rooted(text: &str) -> Result<PathBuf, String> {
    match PathBuf::from(text) {
        path if path.is_absolute() => Ok(path),
        _ => Err("a path from the root is needed".to_owned()),
    }
}

/// Reads the provider files of these paths.
pub(super) fn providers(value: TomlValue<'_>) -> Result<Vec<ProviderFile>, String> {
    let read = |text: &String| {
        rooted(text)
            .and_then(|_| ProviderFile::read(text).map_err(|error| error.to_string()))
            .map_err(|why| format!("{text}: {why}"))
    };
    value.texts()?.iter().map(read).collect()
}
