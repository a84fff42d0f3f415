//! Scopes in the methods of an `impl` or `trait` block.

use crate::{
    function::{insert, name},
    options::{Options, of_attribute},
};
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{
    Attribute, Block, Error, ImplItem, ItemImpl, ItemTrait, Result, Signature, TraitItem, Type,
};

pub(crate) fn mark_impl(options: &Options, mut block: ItemImpl) -> Result<TokenStream> {
    let around = around(options, type_name(&block.self_ty))?;
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item {
            around.mark(&mut method.attrs, &method.sig, &mut method.block)?;
        }
    }
    Ok(block.into_token_stream())
}

/// Marks the methods that a trait brings.
pub(crate) fn mark_trait(options: &Options, mut block: ItemTrait) -> Result<TokenStream> {
    let around = around(options, block.ident.to_string())?;
    for item in &mut block.items {
        if let TraitItem::Fn(method) = item
            && let Some(body) = &mut method.default
        {
            around.mark(&mut method.attrs, &method.sig, body)?;
        }
    }
    Ok(block.into_token_stream())
}

struct Around<'a> {
    options: &'a Options,
    name: String,
}

fn around(options: &Options, name: String) -> Result<Around<'_>> {
    match &options.name {
        Some(given) => Err(Error::new_spanned(given, "a block has many methods: name them there")),
        None => Ok(Around { options, name }),
    }
}

impl Around<'_> {
    fn mark(
        &self,
        attributes: &mut Vec<Attribute>,
        signature: &Signature,
        body: &mut Block,
    ) -> Result<()> {
        let mut own = Options::default();
        let mut asked = false;
        if let Some(at) = attributes.iter().position(is_mark) {
            own = of_attribute(&attributes.remove(at).meta)?;
            asked = true;
        }
        let options = own.within(self.options);
        if options.skip || self.options.skip {
            return Ok(());
        }
        if let Some(constness) = &signature.constness {
            return if asked {
                Err(Error::new_spanned(constness, "a `const fn` cannot be marked"))
            } else {
                Ok(())
            };
        }
        let path = format!("{}::{}", self.name, name(signature));
        insert(&options, &path, attributes, signature, body)
    }
}

fn is_mark(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "mark")
}

/// Returns `Map` for `std::collections::Map<K, V>`, and other types as they are written.
fn type_name(written: &Type) -> String {
    match written {
        Type::Path(path) if path.qself.is_none() => {
            path.path.segments.last().map_or_else(String::new, |segment| segment.ident.to_string())
        }
        Type::Reference(reference) => type_name(&reference.elem),
        Type::Group(group) => type_name(&group.elem),
        Type::Paren(paren) => type_name(&paren.elem),
        other => other.to_token_stream().to_string(),
    }
}
