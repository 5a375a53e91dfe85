//! `#[derive(Attribute)]`: the fields of an op, or of a value within one, as attributes. For the crate `wgrad` itself.
//!
//! A struct is a list of named values. An enum is the name of its variant, with the values of the variant's fields behind it
//! if it has some. `#[attribute(skip)]` leaves a field out, which then cannot be read back. `#[op("Name")]` on a struct
//! declares the name by which files and the registry know the op.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DataStruct, DeriveInput, Field, Fields, Ident, LitStr};

pub(crate) fn implement(input: DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let (visit, read) = match &input.data {
        Data::Struct(data) => structure(name, data)?,
        Data::Enum(data) => {
            let variants: Vec<(&Ident, &Fields)> =
                data.variants.iter().map(|variant| (&variant.ident, &variant.fields)).collect();
            enumeration(name, &variants)?
        }
        Data::Union(data) => {
            return Err(syn::Error::new(
                data.union_token.span,
                "Attribute: use a struct or an enum",
            ));
        }
    };
    let op = declared_op(&input)?.map(|kind| {
        quote! {
            impl crate::graph::attributes::OpAttributes for #name {
                const KIND: &'static str = #kind;
            }
        }
    });
    Ok(quote! {
        #[automatically_derived]
        impl crate::graph::attributes::Attribute for #name {
            #[allow(unused_variables)]
            fn visit(&self, label: &'static str, visitor: &mut dyn crate::graph::attributes::Visitor) {
                #visit
            }

            #[allow(unused_variables)]
            fn read(value: &crate::graph::attributes::Value) -> ::std::result::Result<Self, ::std::string::String> {
                #read
            }
        }

        #op
    })
}

fn declared_op(input: &DeriveInput) -> syn::Result<Option<LitStr>> {
    let declared = input.attrs.iter().find(|attribute| attribute.path().is_ident("op"));
    declared.map(|attribute| attribute.parse_args()).transpose()
}

fn is_skipped(field: &Field) -> syn::Result<bool> {
    let mut skip = false;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("attribute")) {
        attribute.parse_nested_meta(|meta| {
            skip = meta.path.is_ident("skip");
            if skip { Ok(()) } else { Err(meta.error("attribute: a field may have skip")) }
        })?;
    }
    Ok(skip)
}

/// The bodies of `visit` and `read`.
fn structure(name: &Ident, data: &DataStruct) -> syn::Result<(TokenStream, TokenStream)> {
    let (mut visits, mut reads, mut count) = (Vec::new(), Vec::new(), 0usize);
    for (at, field) in data.fields.iter().enumerate() {
        let index = syn::Index::from(at);
        let (member, label) = match &field.ident {
            Some(name) => (quote!(#name), name.to_string()),
            None => (quote!(#index), at.to_string()),
        };
        if is_skipped(field)? {
            let words = format!("{label} is a function of the program, which is in no file");
            return Ok((
                rest(&visits, count, &data.fields, at + 1)?,
                quote!(::std::result::Result::Err(#words.to_string())),
            ));
        }
        count += 1;
        visits.push(
            quote!(crate::graph::attributes::Attribute::visit(&self.#member, #label, visitor);),
        );
        reads.push(quote!(#member: value.field(#label)?));
    }
    let visit = quote!(visitor.fields(label, #count); #(#visits)*);
    let read = quote!(::std::result::Result::Ok(#name { #(#reads),* }));
    Ok((visit, read))
}

/// The body of `visit` of a struct in which a field before `from` is left out.
fn rest(
    before: &[TokenStream],
    count: usize,
    fields: &Fields,
    from: usize,
) -> syn::Result<TokenStream> {
    let (mut visits, mut count) = (before.to_vec(), count);
    for (at, field) in fields.iter().enumerate().skip(from) {
        if !is_skipped(field)? {
            let index = syn::Index::from(at);
            let (member, label) = match &field.ident {
                Some(name) => (quote!(#name), name.to_string()),
                None => (quote!(#index), at.to_string()),
            };
            count += 1;
            visits.push(
                quote!(crate::graph::attributes::Attribute::visit(&self.#member, #label, visitor);),
            );
        }
    }
    Ok(quote!(visitor.fields(label, #count); #(#visits)*))
}

fn enumeration(
    name: &Ident,
    variants: &[(&Ident, &Fields)],
) -> syn::Result<(TokenStream, TokenStream)> {
    let (mut visits, mut reads) = (Vec::new(), Vec::new());
    for (variant, fields) in variants {
        let label = variant.to_string();
        match fields {
            Fields::Unit => {
                visits.push(quote!(#name::#variant => visitor.text(label, #label),));
                reads.push(quote!((#label, []) => ::std::result::Result::Ok(#name::#variant),));
            }
            Fields::Unnamed(fields) => {
                let bound: Vec<Ident> =
                    (0..fields.unnamed.len()).map(|at| format_ident!("field_{at}")).collect();
                let count = bound.len() + 1;
                visits.push(quote! {
                    #name::#variant(#(#bound),*) => {
                        visitor.list(label, #count);
                        visitor.text("", #label);
                        #(crate::graph::attributes::Attribute::visit(#bound, "", visitor);)*
                    }
                });
                reads.push(quote! {
                    (#label, [#(#bound),*]) => ::std::result::Result::Ok(#name::#variant(
                        #(crate::graph::attributes::Attribute::read(#bound)?),*
                    )),
                });
            }
            Fields::Named(fields) => {
                let bound: Vec<&Ident> =
                    fields.named.iter().filter_map(|field| field.ident.as_ref()).collect();
                let count = bound.len() + 1;
                visits.push(quote! {
                    #name::#variant { #(#bound),* } => {
                        visitor.list(label, #count);
                        visitor.text("", #label);
                        #(crate::graph::attributes::Attribute::visit(#bound, "", visitor);)*
                    }
                });
                reads.push(quote! {
                    (#label, [#(#bound),*]) => ::std::result::Result::Ok(#name::#variant {
                        #(#bound: crate::graph::attributes::Attribute::read(#bound)?),*
                    }),
                });
            }
        }
    }
    let text = name.to_string();
    let visit = quote!(match self { #(#visits)* });
    let read = quote! {
        match value.variant()? {
            #(#reads)*
            _ => ::std::result::Result::Err(::std::format!("{value} is not a {}", #text)),
        }
    };
    Ok((visit, read))
}
