//! [`StringLookup`]: indices of strings.

use super::category_encoding::OutputMode;
use super::host_layer::{HostLayer, integers, strings, utf8};
use super::lookup_layer::lookup_layer;
use super::salt::Salt;
use crate::error::Result;
use crate::host_array::HostArray;
use crate::shape::Shape;

lookup_layer! {
    /// Maps strings to their indices in a vocabulary, or indices to strings. The vocabulary is set, or learnt with
    /// [`adapt`](HostLayer::adapt): the most frequent strings first, equally frequent ones in descending order. Strings are compared
    /// byte by byte, and may be any bytes.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::keras::layers::{HostLayer, OutputMode, StringLookup};
    /// let layer = StringLookup::new().output_mode(OutputMode::MultiHot);
    /// layer.adapt(&["b", "a", "b", "c", "c", "b"])?;
    /// assert_eq!(layer.get_vocabulary()?, ["[UNK]", "b", "c", "a"]);
    /// let y = layer.apply(&[["a", "b"], ["d", "d"]])?;
    /// assert_eq!(y.to_array::<i64>()?, ndarray::array![[0, 1, 0, 1], [1, 0, 0, 0]].into_dyn());
    /// # Ok(())
    /// # }
    /// ```
    pub struct StringLookup: Vec<u8>, oov b"[UNK]".to_vec(), missing Vec::new();
    given String, |text| text.into_bytes();
    out String, |word| utf8("StringLookup", "a vocabulary", &word).map(str::to_string);
    read |x| strings("StringLookup", x);
    make |shape, words| HostArray::of_strings(Shape::from(shape), words);
    fixed { sparse: false, encoding: "utf-8", }
}
