//! `#[derive(Trackable)]`: names what a struct's fields own, in their order.
//!
//! For
//!
//! ```ignore
//! #[derive(Trackable)]
//! struct Block {
//!     conv: Conv2D,
//!     #[track(rename = "norm")]
//!     normalization: BatchNorm,
//!     #[track(skip)]
//!     labels: Vocabulary,
//! }
//! ```
//!
//! it writes
//!
//! ```ignore
//! impl wgrad::Trackable for Block {
//!     fn track(&self, parts: &mut wgrad::Parts<'_>) {
//!         let Block { conv, normalization, labels: _ } = self;
//!         parts.add("conv", conv);
//!         parts.add("norm", normalization);
//!     }
//! }
//! ```
//!
//! The crate `wgrad` defines which names are valid, and what `Parts` does with them.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Expr, Fields, GenericParam, Ident, LitStr, Path};

pub(crate) fn implement(input: DeriveInput) -> syn::Result<TokenStream> {
    let Declared { wgrad, kind, class } = Declared::of(&input.attrs)?;
    let name = &input.ident;
    let arms: Vec<TokenStream> = match &input.data {
        Data::Struct(data) => vec![arm(&wgrad, quote!(#name), &data.fields)?],
        Data::Enum(data) => {
            let arm = |variant: &syn::Variant| {
                let variant_name = &variant.ident;
                arm(&wgrad, quote!(#name::#variant_name), &variant.fields)
            };
            data.variants.iter().map(arm).collect::<syn::Result<_>>()?
        }
        Data::Union(data) => {
            let text = "Trackable: a union does not say which of its fields it holds; use an enum";
            return Err(syn::Error::new(data.union_token.span(), text));
        }
    };
    let kind = kind.map(|kind| quote!(fn kind(&self) -> &'static str { #kind }));
    let class = class.map(|class| {
        quote!(fn class(&self) -> ::std::option::Option<&'static #wgrad::Class> {
            ::std::option::Option::Some(#class)
        })
    });
    // Match on nothing is only allowed for the value itself.
    let body = match arms.is_empty() {
        true => quote!(match *self {}),
        false => quote!(match self { #(#arms)* }),
    };
    let mut generics = input.generics;
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            parameter.bounds.push(syn::parse_quote!(#wgrad::Trackable));
        }
    }
    let (parameters, arguments, conditions) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #wgrad::Trackable for #name #arguments #conditions {
            #[allow(unused_variables)]
            fn track(&self, parts: &mut #wgrad::Parts<'_>) {
                #body
            }

            #kind

            #class
        }
    })
}

/// `Pattern { fields } => { calls }`
fn arm(wgrad: &Path, pattern: TokenStream, fields: &Fields) -> syn::Result<TokenStream> {
    let (mut bindings, mut calls) = (Vec::new(), Vec::new());
    for (at, field) in fields.iter().enumerate() {
        let bound = format_ident!("field_{at}");
        let member = match &field.ident {
            Some(name) => quote!(#name),
            None => {
                let index = syn::Index::from(at);
                quote!(#index)
            }
        };
        let options = Options::of(&field.attrs)?;
        if options.skip {
            bindings.push(quote!(#member: _));
            continue;
        }
        bindings.push(quote!(#member: #bound));
        // An error about the field's type is shown at the type.
        // Names resolve here also where a macro names the type.
        let place = field.ty.span().resolved_at(proc_macro2::Span::call_site());
        calls.push(match options.flatten {
            true => quote_spanned!(place=> #wgrad::Trackable::track(#bound, parts);),
            false => {
                let name = options.rename.unwrap_or_else(|| label(field.ident.as_ref(), at));
                quote_spanned!(place=> #wgrad::Parts::add(parts, #name, #bound);)
            }
        });
    }
    Ok(quote!(#pattern { #(#bindings),* } => { #(#calls)* }))
}

/// A field's name, with `type` for `r#type`; in a tuple struct, its number.
fn label(name: Option<&Ident>, at: usize) -> String {
    let Some(name) = name else { return at.to_string() };
    let name = name.to_string();
    name.strip_prefix("r#").unwrap_or(&name).to_string()
}

/// The settings in a field's `#[track(...)]`.
#[derive(Default)]
struct Options {
    skip: bool,
    flatten: bool,
    rename: Option<String>,
}

impl Options {
    fn of(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut options = Options::default();
        for attribute in attributes.iter().filter(|a| a.path().is_ident("track")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("skip") {
                    options.skip = true;
                } else if meta.path.is_ident("flatten") {
                    options.flatten = true;
                } else if meta.path.is_ident("rename") {
                    let name: LitStr = meta.value()?.parse()?;
                    if name.value().is_empty() {
                        return Err(syn::Error::new(
                            name.span(),
                            "track: a name has letters; to leave it out, use flatten",
                        ));
                    }
                    options.rename = Some(name.value());
                } else {
                    return Err(
                        meta.error("track: a field may have skip, flatten, or rename = \"name\"")
                    );
                }
                Ok(())
            })?;
            if usize::from(options.skip)
                + usize::from(options.flatten)
                + usize::from(options.rename.is_some())
                > 1
            {
                return Err(syn::Error::new(
                    attribute.span(),
                    "track: skip, flatten and rename exclude each other",
                ));
            }
        }
        Ok(options)
    }
}

/// What `#[track(...)]` declares of a struct or an enum.
struct Declared {
    /// Where the crate is: `::wgrad`, unless `crate = path` sets another path.
    wgrad: Path,
    kind: Option<LitStr>,
    class: Option<Expr>,
}

impl Declared {
    fn of(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut declared = Declared { wgrad: syn::parse_quote!(::wgrad), kind: None, class: None };
        for attribute in attributes.iter().filter(|a| a.path().is_ident("track")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("crate") {
                    declared.wgrad = meta.value()?.call(Path::parse_mod_style)?;
                } else if meta.path.is_ident("kind") {
                    declared.kind = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("class") {
                    declared.class = Some(meta.value()?.parse()?);
                } else {
                    return Err(meta.error(
                        "track: a struct or an enum may have kind = \"name\", class = &CLASS, or crate = path",
                    ));
                }
                Ok(())
            })?;
        }
        Ok(declared)
    }
}
