//! Provider files: what arguments of USDT probes mean. A note in a program has only their sizes and
//! places, so a text looks like any other address there. The file from which the program was built, for
//! `dtrace -h` (`provider app { probe query__start(const char *text); };`), has their types.
//!
//! `declaration` reads the type of one argument, and `tokens` makes tokens of the file. Anybody may have
//! written it, so its size and all that is kept of it are limited. It may be that of another version of
//! the program, so `fitting` compares it with the notes.

mod declaration;
mod fitting;
mod tokens;

pub(crate) use self::fitting::OtherNumber;
use self::{
    declaration::{Types, argument},
    tokens::{Token, TokenKind, tokens},
};
use super::{UsdtProbe, UsdtSite, arguments::parse};
use crate::target::values::abi::Type;
use ctrace_common::{MAX_TEXTS, MAX_VALUES};
use std::{
    collections::{HashMap, HashSet},
    fmt,
    fs::File,
    io::Read,
    path::Path,
    sync::Arc,
};

/// Bytes of a file, at most.
const LONGEST: u64 = 1 << 20;
/// Probes of a file, at most.
const MOST_PROBES: usize = 1 << 14;

/// The provider whose texts no zero byte ends: Java's. The argument behind each is its length.
const WITH_LENGTHS: &str = "hotspot";

/// An argument as a file declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    pub(crate) name: Option<Arc<str>>,
    /// Its type, if it is one that is known here.
    pub(crate) of: Option<Type>,
    /// For a text without a zero byte behind it: the argument that has its length.
    pub(crate) length: Option<usize>,
}

/// Displays what is known: `text: str`, `name: str[2]`, `kind`, `i32` or nothing.
impl fmt::Display for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_deref().unwrap_or_default())?;
        let Some(of) = self.of else { return Ok(()) };
        let colon = if self.name.is_some() { ": " } else { "" };
        write!(f, "{colon}{of}")?;
        self.length.map_or(Ok(()), |length| write!(f, "[{length}]"))
    }
}

/// A provider, and a probe of it.
type ProbeName = (Arc<str>, Arc<str>);

/// The arguments of all probes of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderFile {
    probes: HashMap<ProbeName, Arc<[Declared]>>,
}

/// The reason why a file is of no use.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    #[error("cannot be read: {0}")]
    Unread(String),
    #[error("has more than 1 MiB")]
    TooLong,
    #[error("declares more than {MOST_PROBES} probes")]
    TooMany,
    #[error("line {line}: {expected} is missing here")]
    Expected { line: usize, expected: &'static str },
    #[error(
        "declares no probe; it should have lines such as `provider app {{ probe start(char *); }};`"
    )]
    NoProbe,
}

impl ProviderFile {
    /// Reads a file that the user names.
    pub(crate) fn read(path: &str) -> Result<Self, ProviderError> {
        let unread = |error: std::io::Error| ProviderError::Unread(error.to_string());
        let mut bytes = Vec::new();
        let file = File::open(Path::new(path)).map_err(unread)?;
        file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(unread)?;
        if bytes.len() as u64 > LONGEST {
            return Err(ProviderError::TooLong);
        }
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self, ProviderError> {
        let mut types = Types::default();
        let tokens = tokens(text, &mut types);
        let mut reader = Reader { tokens: &tokens, types, file: Self::default() };
        reader.file()?;
        let Reader { file, .. } = reader;
        if file.probes.is_empty() { Err(ProviderError::NoProbe) } else { Ok(file) }
    }

    /// Returns the arguments of all probes.
    pub fn arguments(&self) -> impl Iterator<Item = &[Declared]> {
        self.probes.values().map(|arguments| &**arguments)
    }

    /// Returns the arguments of a probe, if the file declares it.
    fn of(&self, probe: &UsdtProbe) -> Option<&Arc<[Declared]>> {
        self.probes.get(&(Arc::clone(&probe.provider), Arc::clone(&probe.name)))
    }
}

/// Returns the arguments of a probe by the first file that declares it, as far as they fit its notes.
pub(crate) fn declared(
    files: &[ProviderFile],
    probe: &UsdtProbe,
) -> Option<Result<Vec<Declared>, OtherNumber>> {
    let arguments = files.iter().find_map(|file| file.of(probe))?;
    Some(fitting::fitting(arguments, &probe.sites))
}

/// Describes the arguments of a site with what a file says of them: `text: str (8@%rdi), i32 (4@%esi)`.
pub(crate) fn described(site: &UsdtSite, declared: &Result<Vec<Declared>, OtherNumber>) -> String {
    let (declared, remark) = match declared {
        Ok(declared) => (&**declared, String::new()),
        Err(other) => (&[][..], format!(" ({other})")),
    };
    let arguments = parse(&site.arguments);
    let each = arguments.iter().enumerate().map(|(place, argument)| {
        let known = declared.get(place).map(Declared::to_string).unwrap_or_default();
        match known.is_empty() {
            true => argument.text.to_owned(),
            false => format!("{known} ({})", argument.text),
        }
    });
    each.collect::<Vec<_>>().join(", ") + &remark
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    types: Types<'a>,
    file: ProviderFile,
}

impl<'a> Reader<'a> {
    fn file(&mut self) -> Result<(), ProviderError> {
        while let Some(token) = self.next() {
            match token.text {
                "provider" => self.provider()?,
                "typedef" => {
                    let definition = self.until(";");
                    self.types.define(&definition);
                }
                // Attributes, structures, translators.
                "{" => self.skip_block(),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads `NAME { PROBE; … }`. A semicolon may follow.
    fn provider(&mut self) -> Result<(), ProviderError> {
        let provider: Arc<str> = self.word("the name of a provider")?.into();
        self.expect("{", "`{`")?;
        loop {
            match self.next() {
                Some(Token { text: "probe", .. }) => self.probe(&provider)?,
                Some(Token { text: "}", .. }) => return Ok(()),
                Some(Token { text: ";", .. }) => {}
                other => {
                    let line = other.map_or_else(|| self.last_line(), |token| token.line);
                    return Err(ProviderError::Expected { line, expected: "`probe` or `}`" });
                }
            }
        }
    }

    /// Reads `NAME(TYPE [NAME] [: TYPE …], …);`. What stands behind a colon is for D programs.
    fn probe(&mut self, provider: &Arc<str>) -> Result<(), ProviderError> {
        let name = self.word("the name of a probe")?.replace('-', "__");
        let mut arguments = Vec::new();
        if self.peek() == Some("(") {
            self.next();
            let mut depth = 1;
            let (mut words, mut is_translated) = (Vec::new(), false);
            while depth > 0 {
                let line = self.last_line();
                let token = self.next().filter(|token| token.text != "}");
                let token = token.ok_or(ProviderError::Expected { line, expected: "`)`" })?;
                match token.text {
                    "(" => depth += 1,
                    ")" => depth -= 1,
                    ":" => is_translated = true,
                    _ => {}
                }
                if depth == 0 || depth == 1 && token.text == "," {
                    let is_none =
                        depth == 0 && arguments.is_empty() && matches!(words[..], [] | ["void"]);
                    if !is_none && arguments.len() < MAX_VALUES {
                        arguments.push(argument(&words, &self.types));
                    }
                    (words, is_translated) = (Vec::new(), false);
                } else if !is_translated {
                    words.push(token.text);
                }
            }
        }
        self.expect(";", "`;`")?;
        if self.file.probes.len() >= MOST_PROBES {
            return Err(ProviderError::TooMany);
        }
        let key = (Arc::clone(provider), name.into());
        self.file.probes.entry(key).or_insert_with(|| {
            limited(&mut arguments);
            if &**provider == WITH_LENGTHS {
                give_lengths(&mut arguments);
            }
            arguments.into()
        });
        Ok(())
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(*first)
    }

    fn peek(&self) -> Option<&'a str> {
        self.tokens.first().map(|token| token.text)
    }

    fn word(&mut self, expected: &'static str) -> Result<&'a str, ProviderError> {
        let line = self.last_line();
        let word = self.next().filter(|token| token.kind == TokenKind::Word);
        word.map(|token| token.text).ok_or(ProviderError::Expected { line, expected })
    }

    fn expect(&mut self, text: &str, expected: &'static str) -> Result<(), ProviderError> {
        let line = self.last_line();
        let found = self.next().filter(|token| token.text == text);
        found.map(|_| ()).ok_or(ProviderError::Expected { line, expected })
    }

    /// Returns the line of the next token, or 0 at the end of the file.
    fn last_line(&self) -> usize {
        self.tokens.first().map_or(0, |token| token.line)
    }

    fn until(&mut self, end: &str) -> Vec<&'a str> {
        let mut texts = Vec::new();
        while let Some(token) = self.next().filter(|token| token.text != end) {
            match token.text {
                "{" => self.skip_block(),
                text => texts.push(text),
            }
        }
        texts
    }

    fn skip_block(&mut self) {
        let mut depth = 1_usize;
        while depth > 0
            && let Some(token) = self.next()
        {
            match token.text {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
        }
    }
}

/// Leaves what can be read of a probe: so many texts, and names that differ.
fn limited(arguments: &mut [Declared]) {
    let texts = arguments.iter_mut().filter(|argument| argument.of == Some(Type::Text));
    texts.skip(MAX_TEXTS).for_each(|argument| argument.of = Some(Type::Pointer));
    let mut known: HashSet<Arc<str>> = (0..MAX_VALUES).map(|n| format!("arg{n}").into()).collect();
    for argument in arguments {
        argument.name.take_if(|name| !known.insert(Arc::clone(name)));
    }
}

/// Takes the whole number behind each text for its length.
fn give_lengths(arguments: &mut [Declared]) {
    for place in 1..arguments.len() {
        if let [text, Declared { of: Some(Type::Integer { .. }), .. }] =
            &mut arguments[place - 1..=place]
            && text.of == Some(Type::Text)
        {
            text.length = Some(place);
        }
    }
}

#[cfg(test)]
mod tests;
