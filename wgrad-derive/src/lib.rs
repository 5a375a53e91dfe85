//! The derive macros of `wgrad`: a file each.

mod item;
mod trackable;

use syn::DeriveInput;

/// Implements `wgrad::Trackable`: each field is a part, called by the field's name (a tuple's by its number).
///
/// A field may have an attribute:
/// - `#[track(skip)]`: there is nothing to find in it;
/// - `#[track(rename = "name")]`: files and messages call it so;
/// - `#[track(flatten)]`: its parts are called as if they were this struct's own.
///
/// `#[track(crate = path)]` on the struct says where `wgrad` is, if not at `::wgrad`.
#[proc_macro_derive(Trackable, attributes(track))]
pub fn trackable(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    trackable::implement(input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Implements `wgrad::data::Item` for a struct of items, and makes two structs beside it, with the same names of fields and the
/// same visibility: for a `struct Pet`, `PetBatch` holds a batch of each field, and `PetPadding` a value to fill up each.
///
/// `#[item(crate = path)]` on the struct says where `wgrad` is, if not at `::wgrad`.
#[proc_macro_derive(Item, attributes(item))]
pub fn item(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    item::implement(input).unwrap_or_else(syn::Error::into_compile_error).into()
}
