//! `lookup_layer!`: the struct, setters and config of a layer around a [`Lookup`](super::lookup::Lookup).

/// `token` is the type of words, with what setters accept and how it becomes a word; `back`, how a word becomes what
/// `get_vocabulary` returns. `missing` stands for a special token that there is none of.
macro_rules! lookup_layer {
    (
        $(#[$doc:meta])*
        pub struct $layer:ident: $token:ty, oov $oov:expr, missing $missing:expr;
        given $given:ty, |$from:ident| $into:expr;
        out $out:ty, |$word:ident| $back:expr;
        read |$array:ident| $read:expr;
        make |$shape:ident, $words:ident| $make:expr;
        fixed { $($fixed:ident: $only:expr,)* }
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $layer {
            pub(crate) lookup: $crate::keras::layers::preprocessing::lookup::Lookup<$token>,
        }

        impl Default for $layer {
            fn default() -> Self {
                $layer::new()
            }
        }

        impl $layer {
            /// Creates a layer without a vocabulary: set one, or call [`adapt`](HostLayer::adapt).
            pub fn new() -> Self {
                let oov: $token = $oov;
                $layer { lookup: $crate::keras::layers::preprocessing::lookup::Lookup::new(stringify!($layer), oov) }
            }

            fn word($from: $given) -> $token {
                $into
            }

            /// Sets the vocabulary: the words by index, without special tokens, or beginning with all of them. The first use of the
            /// layer checks it; [`set_vocabulary`](Self::set_vocabulary) does so at once.
            #[must_use]
            pub fn vocabulary<W: Into<$given>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
                self.lookup.give(words.into_iter().map(|word| Self::word(word.into())).collect());
                self
            }

            /// Sets the weights of the words of the vocabulary, with [`OutputMode::TfIdf`].
            #[must_use]
            pub fn idf_weights(mut self, weights: impl Into<Vec<f32>>) -> Self {
                self.lookup.give_weights(weights.into());
                self
            }

            /// Sets the maximum number of indices, special ones included: `adapt` takes the most frequent words. Default: no maximum.
            #[must_use]
            pub fn max_tokens(mut self, max_tokens: impl Into<Option<usize>>) -> Self {
                self.lookup.max_tokens = max_tokens.into();
                self
            }

            /// Sets the number of indices for words outside the vocabulary, which share them; with 0, such a word is an error.
            /// Default: 1.
            #[must_use]
            pub fn num_oov_indices(mut self, num_oov_indices: usize) -> Self {
                self.lookup.num_oov_indices = num_oov_indices;
                self
            }

            /// Sets the word that stands for no value: index 0 with [`OutputMode::Int`], and nothing in other formats. Default: none.
            #[must_use]
            pub fn mask_token(mut self, token: impl Into<$given>) -> Self {
                self.lookup.mask_token = Some(Self::word(token.into()));
                self
            }

            /// Sets the word for indices of words outside the vocabulary, with [`invert`](Self::invert) and in `get_vocabulary`.
            #[must_use]
            pub fn oov_token(mut self, token: impl Into<$given>) -> Self {
                self.lookup.oov_token = Some(Self::word(token.into()));
                self
            }

            /// Sets whether the layer maps indices to words. Default: words to indices.
            #[must_use]
            pub fn invert(mut self, invert: bool) -> Self {
                self.lookup.invert = invert;
                self
            }

            /// Sets the output format. Default: [`OutputMode::Int`].
            #[must_use]
            pub fn output_mode(mut self, mode: OutputMode) -> Self {
                self.lookup.output_mode = mode;
                self
            }

            /// Sets whether rows have `max_tokens` elements even if the vocabulary is smaller.
            #[must_use]
            pub fn pad_to_max_tokens(mut self, pad: bool) -> Self {
                self.lookup.pad_to_max_tokens = pad;
                self
            }

            /// Sets the key of the hash by which words outside the vocabulary get one of several indices. Default: none, FarmHash64.
            #[must_use]
            pub fn salt(mut self, salt: impl Into<Salt>) -> Self {
                self.lookup.salt = Some(salt.into());
                self
            }

            /// Replaces the vocabulary.
            ///
            /// # Errors
            /// [`Error::Data`](crate::Error::Data) if it is empty, has a word twice or a special token that is not at the beginning, or
            /// is larger than `max_tokens`; or if the layer needs weights. The layer then keeps the vocabulary that it had.
            pub fn set_vocabulary<W: Into<$given>>(&self, words: impl IntoIterator<Item = W>) -> Result<()> {
                self.lookup.set(words.into_iter().map(|word| Self::word(word.into())).collect(), None)
            }

            /// Same as [`set_vocabulary`](Self::set_vocabulary), with the weights of [`OutputMode::TfIdf`].
            ///
            /// # Errors
            /// Same as [`set_vocabulary`](Self::set_vocabulary).
            pub fn set_vocabulary_with<W: Into<$given>>(
                &self,
                words: impl IntoIterator<Item = W>,
                idf_weights: &[f32],
            ) -> Result<()> {
                let words = words.into_iter().map(|word| Self::word(word.into())).collect();
                self.lookup.set(words, Some(idf_weights))
            }

            /// Returns the words by index, special tokens included.
            ///
            /// # Errors
            /// [`Error::Data`](crate::Error::Data) if the vocabulary that was set is invalid, or a word is not valid UTF-8.
            pub fn get_vocabulary(&self) -> Result<Vec<$out>> {
                let words = self.lookup.vocabulary(&$missing)?;
                words.into_iter().map(|$word| $back).collect()
            }

            /// Returns the weights by index, if the output format is [`OutputMode::TfIdf`]; else none.
            ///
            /// # Errors
            /// [`Error::Data`](crate::Error::Data) if the vocabulary that was set is invalid.
            pub fn get_idf_weights(&self) -> Result<Vec<f32>> {
                Ok(self.lookup.ready()?.known().map_or(Vec::new(), |known| known.idf.clone()))
            }

            /// Returns the number of indices, special ones included.
            ///
            /// # Errors
            /// [`Error::Data`](crate::Error::Data) if the vocabulary that was set is invalid.
            pub fn vocabulary_size(&self) -> Result<usize> {
                self.lookup.size()
            }
        }

        impl $crate::trackable::Trackable for $layer {
            fn track(&self, _parts: &mut $crate::trackable::Parts<'_>) {}

            fn kind(&self) -> &'static str {
                stringify!($layer)
            }
        }

        impl HostLayer for $layer {
            fn call_host(&self, x: &HostArray<'_>) -> Result<HostArray<'static>> {
                if self.lookup.invert {
                    let indices = integers(stringify!($layer), x)?;
                    let ($shape, $words) = (x.shape(), self.lookup.words(&indices, &$missing)?);
                    return Ok($make);
                }
                let $array = x;
                let ids = self.lookup.indices($read?.iter())?;
                self.lookup.encode(x.shape(), ids)
            }

            fn is_adaptable(&self) -> bool {
                let state = self.lookup.state.read();
                !state.unwrap_or_else(std::sync::PoisonError::into_inner).is_given
            }

            fn reset_state(&self) {
                self.lookup.reset();
            }

            fn update_state(&self, batch: &HostArray<'_>) -> Result<()> {
                let $array = batch;
                let words = $read?;
                // The last axis is a document.
                let size = batch.shape().last().map_or(1, |size| (*size).max(1));
                self.lookup.update(words.chunks(size).map(|document| document.iter()))
            }

            fn finalize_state(&self) -> Result<()> {
                self.lookup.finalize()
            }

            fn vocabulary_array(&self) -> Result<Option<HostArray<'static>>> {
                let $words = self.lookup.vocabulary(&$missing)?;
                let $shape: &[usize] = &[$words.len()];
                Ok(Some($make))
            }

            fn set_vocabulary_array(
                &self,
                $array: &HostArray<'_>,
                idf_weights: Option<&[f32]>,
            ) -> Result<()> {
                self.lookup.set($read?.to_vec(), idf_weights)
            }

            fn cardinality(&self) -> Result<Option<usize>> {
                let indices = self.lookup.output_mode == OutputMode::Int && !self.lookup.invert;
                indices.then(|| self.lookup.size()).transpose()
            }

            #[cfg(feature = "json")]
            fn describe(&self) -> Result<$crate::keras::Config> {
                $crate::keras::layers::Configured::config(self)
            }
        }

        #[cfg(feature = "json")]
        impl $crate::keras::layers::Configured for $layer {
            fn class_name() -> &'static str {
                stringify!($layer)
            }

            fn config(&self) -> Result<$crate::keras::Config> {
                let lookup = &self.lookup;
                let mut config = $crate::keras::Config::new(stringify!($layer));
                config.set("invert", &lookup.invert)?;
                config.set("max_tokens", &lookup.max_tokens)?;
                config.set("num_oov_indices", &lookup.num_oov_indices)?;
                let back = |$word: &$token| { let $word = $word.clone(); $back };
                config.set("oov_token", &lookup.oov_token.as_ref().map(back).transpose()?)?;
                config.set("mask_token", &lookup.mask_token.as_ref().map(back).transpose()?)?;
                config.set("output_mode", &lookup.output_mode)?;
                config.set("pad_to_max_tokens", &lookup.pad_to_max_tokens)?;
                let (words, weights, size) = lookup.described()?;
                let words = words.map(|words| words.iter().map(back).collect::<Result<Vec<_>>>());
                config.set("idf_weights", &weights)?;
                config.set("vocabulary", &words.transpose()?)?;
                config.set("vocabulary_size", &size)?;
                config.set("oov_method", &lookup.oov_method)?;
                config.set("salt", &lookup.salt)?;
                $(config.set_json(stringify!($fixed), ::serde_json::json!($only));)*
                Ok(config)
            }

            fn from_config(config: &$crate::keras::Config) -> Result<Self> {
                config.only(
                    &[
                        "invert", "max_tokens", "num_oov_indices", "oov_token", "mask_token", "output_mode", "pad_to_max_tokens",
                        "idf_weights", "vocabulary", "vocabulary_size", "oov_method", "salt", "has_input_vocabulary",
                    ],
                    &[$((stringify!($fixed), ::serde_json::json!($only)),)*],
                )?;
                let mut layer = $layer::new();
                let lookup = &mut layer.lookup;
                if let Some(invert) = config.get("invert")? {
                    lookup.invert = invert;
                }
                if let Some(max_tokens) = config.get("max_tokens")? {
                    lookup.max_tokens = max_tokens;
                }
                if let Some(count) = config.get("num_oov_indices")? {
                    lookup.num_oov_indices = count;
                }
                if let Some(token) = config.get::<Option<$out>>("oov_token")? {
                    lookup.oov_token = token.map(|token| Self::word(token.into()));
                }
                if let Some(token) = config.get::<Option<$out>>("mask_token")? {
                    lookup.mask_token = token.map(|token| Self::word(token.into()));
                }
                if let Some(mode) = config.get("output_mode")? {
                    lookup.output_mode = mode;
                }
                if let Some(pad) = config.get("pad_to_max_tokens")? {
                    lookup.pad_to_max_tokens = pad;
                }
                if let Some(Some(method)) = config.get::<Option<_>>("oov_method")? {
                    lookup.oov_method = method;
                }
                if let Some(salt) = config.get("salt")? {
                    lookup.salt = salt;
                }
                if let Some(Some(words)) = config.get::<Option<Vec<$out>>>("vocabulary")? {
                    layer = layer.vocabulary(words);
                }
                if let Some(Some(weights)) = config.get::<Option<Vec<f32>>>("idf_weights")? {
                    layer = layer.idf_weights(weights);
                }
                // A file of its own had the vocabulary, which was learnt.
                if config.get::<Option<bool>>("has_input_vocabulary")?.flatten() == Some(false) {
                    layer.lookup.learnt();
                }
                Ok(layer)
            }
        }
    };
}

pub(super) use lookup_layer;
