//! The attribute in builds without markers: it changes nothing.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Removes the attribute from methods, too: only the block's own attribute knows their names for
/// it.
pub(super) fn mark(item: TokenStream) -> TokenStream {
    let keyword = item.clone().into_iter().find_map(|token| match token {
        TokenTree::Ident(word) => {
            Some(word.to_string()).filter(|word| ["fn", "impl", "trait"].contains(&word.as_str()))
        }
        _ => None,
    });
    if keyword.as_deref() == Some("fn") {
        return item;
    }
    let without = |token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            let mut methods = Group::new(Delimiter::Brace, without_marks(group.stream()));
            methods.set_span(group.span());
            TokenTree::Group(methods)
        }
        other => other,
    };
    item.into_iter().map(without).collect()
}

fn without_marks(methods: TokenStream) -> TokenStream {
    let mut tokens = methods.into_iter().peekable();
    let mut kept = Vec::new();
    while let Some(token) = tokens.next() {
        let begins = matches!(&token, TokenTree::Punct(sign) if sign.as_char() == '#');
        if begins && matches!(tokens.peek(), Some(TokenTree::Group(group)) if is_mark(group)) {
            tokens.next();
        } else {
            kept.push(token);
        }
    }
    kept.into_iter().collect()
}

/// Returns whether an attribute's path ends in `mark`.
fn is_mark(attribute: &Group) -> bool {
    let mut last = None;
    for token in attribute.stream() {
        match token {
            TokenTree::Ident(word) => last = Some(word.to_string()),
            TokenTree::Punct(sign) if sign.as_char() == ':' => {}
            _ => break,
        }
    }
    attribute.delimiter() == Delimiter::Bracket && last.as_deref() == Some("mark")
}
