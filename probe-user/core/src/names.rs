//! Names of C++ as people write them: `std::string`, containers without the arguments that nobody
//! gives, and nothing of the tags that compilers add.

/// Longer names stay as they are.
const LONGEST: usize = 4096;

/// Template arguments that have a default.
const DEFAULTS: [&str; 6] = [
    "std::allocator<",
    "std::char_traits<",
    "std::less<",
    "std::hash<",
    "std::equal_to<",
    "std::default_delete<",
];

/// Templates with a name of their own for characters.
const NAMES: [(&str, &str); 7] = [
    ("std::basic_string<char>", "std::string"),
    ("std::basic_string_view<char>", "std::string_view"),
    ("std::basic_istream<char>", "std::istream"),
    ("std::basic_ostream<char>", "std::ostream"),
    ("std::basic_iostream<char>", "std::iostream"),
    ("std::basic_string<wchar_t>", "std::wstring"),
    ("std::basic_stringstream<char>", "std::stringstream"),
];

/// Returns the beginning of a name, of this many bytes at most.
pub fn cut(name: &str, most: usize) -> &str {
    let mut end = name.len().min(most);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Returns a name, or a pattern of names, as it is written in the source. Returns `None` where it has
/// neither a tag nor anything of the standard library.
pub fn as_written(name: &str) -> Option<String> {
    if name.len() > LONGEST {
        return None;
    }
    let bare = without_abi_tags(name);
    let name = bare.as_deref().unwrap_or(name);
    if !name.contains("std::") {
        return bare;
    }
    let mut text = name.replace("std::__cxx11::", "std::").replace("std::__1::", "std::");
    for default in DEFAULTS {
        text = without_argument(&text, default);
    }
    while text.contains("> >") {
        text = text.replace("> >", ">>");
    }
    NAMES.iter().for_each(|(long, short)| text = text.replace(long, short));
    Some(text)
}

/// Removes the tags of C++ interfaces: `label[abi:cxx11]` becomes `label`. Returns `None` when there
/// are none.
pub fn without_abi_tags(name: &str) -> Option<String> {
    let mut parts = name.split("[abi:");
    let mut bare = parts.next()?.to_owned();
    let before = bare.len();
    for part in parts {
        bare.push_str(part.split_once(']')?.1);
    }
    (before < name.len()).then_some(bare)
}

/// Removes each later argument of this template: `vector<int, std::allocator<int> >` becomes
/// `vector<int >`.
fn without_argument(text: &str, template: &str) -> String {
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    while let Some(at) = rest.find(template) {
        let (before, argument) = rest.split_at(at);
        let inside = &argument[template.len()..];
        let end = end_of_brackets(inside);
        match end {
            // Nor will any later one be closed.
            None => break,
            Some(end) if before.ends_with(", ") => {
                kept.push_str(&before[..before.len() - 2]);
                rest = inside[end..].strip_prefix(' ').unwrap_or(&inside[end..]);
            }
            Some(_) => {
                kept.push_str(before);
                kept.push_str(template);
                rest = inside;
            }
        }
    }
    kept + rest
}

/// Returns the place behind the bracket that closes one that is open.
fn end_of_brackets(text: &str) -> Option<usize> {
    let mut depth = 1u32;
    let mut before = b' ';
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' if before != b'-' => depth -= 1,
            _ => {}
        }
        before = byte;
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{as_written, without_abi_tags};

    #[test]
    fn writes_what_people_write() {
        let string =
            "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
        for (name, written) in [
            (format!("shop::load({string} const&)"), "shop::load(std::string const&)"),
            (
                format!("std::vector<{string}, std::allocator<{string} > >::push_back"),
                "std::vector<std::string>::push_back",
            ),
            (
                format!(
                    "look(std::map<{string}, int, std::less<{string} >, \
                     std::allocator<std::pair<{string} const, int> > > const&)"
                ),
                "look(std::map<std::string, int> const&)",
            ),
            (
                "take(std::unique_ptr<Shop, std::default_delete<Shop> >, long)".to_owned(),
                "take(std::unique_ptr<Shop>, long)",
            ),
            ("f(std::set<F, std::less<decltype (&G::operator->)> >)".to_owned(), "f(std::set<F>)"),
            ("std::allocator<int>::allocate".to_owned(), "std::allocator<int>::allocate"),
            ("f(std::vector<int, std::allocator<".to_owned(), "f(std::vector<int, std::allocator<"),
        ] {
            assert_eq!(as_written(&name).as_deref(), Some(written), "{name}");
            assert_eq!(as_written(written).as_deref(), Some(written), "{written}");
        }
        assert_eq!(as_written("shop::load(int)"), None);
        assert_eq!(as_written("shop::label[abi:cxx11](int)").as_deref(), Some("shop::label(int)"));
    }

    #[test]
    fn strips_abi_tags() {
        for (name, bare) in [
            ("label[abi:cxx11]", Some("label")),
            ("A[abi:a][abi:b]::f[abi:c](int)", Some("A::f(int)")),
            ("A::operator[]", None),
            ("broken[abi:", None),
        ] {
            assert_eq!(without_abi_tags(name).as_deref(), bare, "{name}");
        }
    }
}
