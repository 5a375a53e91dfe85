//! Branches and loops of this crate, which a trace records. A page cannot wait for values, so it has none: there, the ops of a graph
//! with such a branch run one by one.

#[cfg(not(target_family = "wasm"))]
pub(super) use crate::function::{Branch, cond, switch_case, while_loop};

#[cfg(target_family = "wasm")]
pub(super) use in_pages::{Branch, cond, switch_case, while_loop};

#[cfg(target_family = "wasm")]
mod in_pages {
    //! The signatures of the originals.

    use crate::error::{Error, Result};
    use crate::tensor::Tensor;

    pub(in super::super) type Branch<'a, R> = Box<dyn FnOnce() -> Result<R> + 'a>;

    fn no_branch<R>() -> Result<R> {
        Err(Error::Trace("a page cannot record a branch or a loop by a value.".into()))
    }

    pub(in super::super) fn cond<R>(
        _: &Tensor,
        _: impl FnOnce() -> Result<R>,
        _: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        no_branch()
    }

    pub(in super::super) fn switch_case<R>(_: &Tensor, _: Vec<Branch<'_, R>>) -> Result<R> {
        no_branch()
    }

    pub(in super::super) fn while_loop<V>(
        _: impl Fn(&V) -> Result<Tensor>,
        _: impl Fn(V) -> Result<V>,
        _: V,
    ) -> Result<V> {
        no_branch()
    }
}
