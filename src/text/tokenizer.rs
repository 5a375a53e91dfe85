//! [`Tokenizer`]: Hugging Face's `tokenizer.json`, read and run by their library.

use tokenizers::models::ModelWrapper;
use tokenizers::utils::truncation::{TruncationParams, truncate_encodings};
use tokenizers::{Encoding, Model, PostProcessor};

use super::batch::{Row, TokenBatch};
use super::guard::guarded;
use super::stream::TextStream;
use crate::error::{Error, Result, message};
use crate::support::options::options;

options! {
    /// How [`Tokenizer::encode_with`] and [`Tokenizer::encode_batch`] turn texts into tokens.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct EncodeOptions {
        /// Sets whether the special tokens that the file names are added, such as BERT's `[CLS]` and `[SEP]`.
        special_tokens: bool = true,
        /// Sets the largest number of tokens, with special ones; the ends of longer texts are cut off. By default all are kept.
        max_length: Option<usize> as impl Into<Option<usize>> = None,
        /// Sets a number of which the length of a batch is a multiple. A few lengths need fewer kernels than many.
        multiple_of: usize = 1,
        /// Sets whether a word that the tokenizer does not know is an error. By default it becomes the token for unknown words.
        refuse_unknown: bool = false,
    }
}

/// Turns texts into tokens and back, as the file `tokenizer.json` of a published network says.
///
/// Padding and truncation in the file do not count: [`EncodeOptions`] has them.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    pad: u32,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer").field("vocab_size", &self.vocab_size()).finish_non_exhaustive()
    }
}

const DAMAGED: &str = "It is damaged or not a tokenizer.json of Hugging Face's tokenizers, or of a newer version of them; take \
                       another copy";
const WRONG: &str = "The text does not fit the tokenizer, or its file is damaged; take another copy of tokenizer.json";

impl Tokenizer {
    /// Reads the file at `path`: a `tokenizer.json`.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Data`] if it is damaged or has another format.
    #[cfg(not(target_family = "wasm"))]
    pub fn from_file(path: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = crate::files::read(path).map_err(|error| Error::io(path, error))?;
        Tokenizer::parse(&bytes, &path.display().to_string())
    }

    /// Reads the contents of a `tokenizer.json`.
    ///
    /// # Errors
    /// [`Error::Data`] if they are damaged or have another format.
    pub fn from_bytes(bytes: impl AsRef<[u8]>) -> Result<Self> {
        Tokenizer::parse(bytes.as_ref(), "tokenizer")
    }

    fn parse(bytes: &[u8], shown: &str) -> Result<Self> {
        guarded(shown, DAMAGED, || {
            let mut inner = tokenizers::Tokenizer::from_bytes(bytes)?;
            let named = inner.get_padding().map(|padding| padding.pad_id);
            let known = ["[PAD]", "<pad>", "<|endoftext|>", "</s>"];
            let pad = named.or_else(|| known.iter().find_map(|name| inner.token_to_id(name)));
            inner.with_padding(None).with_truncation(None)?;
            Ok(Tokenizer { inner, pad: pad.unwrap_or(0) })
        })
    }

    /// Returns the number of tokens, with the special ones. A network may know more.
    pub fn vocab_size(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    /// Returns the number of a token.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// Returns the token with a number, as it is in the vocabulary.
    pub fn id_to_token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// Returns the token that fills up batches.
    pub fn pad_id(&self) -> u32 {
        self.pad
    }

    /// Returns the token for words that the vocabulary lacks, if there is one.
    pub fn unknown_id(&self) -> Option<u32> {
        let name = match self.inner.get_model() {
            ModelWrapper::BPE(model) => model.unk_token.clone()?,
            ModelWrapper::WordPiece(model) => model.unk_token.clone(),
            ModelWrapper::WordLevel(model) => model.unk_token.clone(),
            ModelWrapper::Unigram(_) => "<unk>".to_string(),
        };
        self.inner.get_model().token_to_id(&name)
    }

    /// Returns the tokens of `text`, with the special ones that the file names.
    ///
    /// # Errors
    /// [`Error::Data`] if the text has a word or a character that no token stands for, and there is none for unknown words.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_with(text, &EncodeOptions::new())
    }

    /// Returns the tokens of `text`.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`]; [`Error::Data`] if a word is unknown and the options refuse that, or `max_length` has no room for
    /// a token besides the special ones.
    pub fn encode_with(&self, text: &str, options: &EncodeOptions) -> Result<Vec<u32>> {
        Ok(self.row(self.plain(text)?, None, options)?.ids)
    }

    /// Returns the tokens of several texts, filled up to the length of the longest.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::text::{EncodeOptions, Tokenizer};
    /// let file = br#"{"version": "1.0", "pre_tokenizer": {"type": "Whitespace"},
    ///     "model": {"type": "WordLevel", "vocab": {"[PAD]": 0, "a": 1, "b": 2}, "unk_token": "[UNK]"}}"#;
    /// let tokenizer = Tokenizer::from_bytes(file)?;
    /// let batch = tokenizer.encode_batch(&["a b a", "b"], &EncodeOptions::new().multiple_of(4))?;
    /// let [ids, kinds, mask] = batch.tensors()?; // the inputs of a Bert
    /// assert_eq!(ids.to_vec::<i32>()?, [1, 2, 1, 0, 2, 0, 0, 0]);
    /// assert_eq!(mask.to_vec::<i32>()?, [1, 1, 1, 0, 1, 0, 0, 0]);
    /// assert_eq!(kinds.shape(), [2, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tokenizer::encode_with`].
    pub fn encode_batch<T: AsRef<str>>(
        &self,
        texts: &[T],
        options: &EncodeOptions,
    ) -> Result<TokenBatch> {
        let row = |text: &T| self.row(self.plain(text.as_ref())?, None, options);
        let rows = texts.iter().map(row).collect::<Result<Vec<_>>>()?;
        Ok(TokenBatch::new(&rows, self.pad, options.multiple_of))
    }

    /// Returns the tokens of pairs of texts, such as a question and a paragraph, filled up to the length of the longest pair. The
    /// longer text of a pair is cut first.
    ///
    /// # Errors
    /// As [`Tokenizer::encode_with`].
    pub fn encode_pairs<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: &[(A, B)],
        options: &EncodeOptions,
    ) -> Result<TokenBatch> {
        let row = |(a, b): &(A, B)| {
            self.row(self.plain(a.as_ref())?, Some(self.plain(b.as_ref())?), options)
        };
        let rows = pairs.iter().map(row).collect::<Result<Vec<_>>>()?;
        Ok(TokenBatch::new(&rows, self.pad, options.multiple_of))
    }

    /// Returns the text of tokens, without special ones.
    ///
    /// # Errors
    /// [`Error::Data`] if there is no such token.
    pub fn decode(&self, tokens: &[u32]) -> Result<String> {
        if let Some(token) = tokens.iter().find(|token| self.inner.id_to_token(**token).is_none()) {
            return Err(Error::Data(message!(
                "tokenizer: there is no token {token}; the vocabulary has {}. Use the tokenizer that was published with the \
                 network.",
                self.vocab_size()
            )));
        }
        guarded("tokenizer", WRONG, || self.inner.decode(tokens, true))
    }

    /// Returns a stream that turns tokens into text as they arrive.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// # use wgrad::text::Tokenizer;
    /// # let file = br#"{"version": "1.0", "decoder": {"type": "ByteFallback"},
    /// #     "model": {"type": "WordLevel", "vocab": {"<0xC3>": 0, "<0xA9>": 1, "caf": 2}, "unk_token": "?"}}"#;
    /// # let tokenizer = Tokenizer::from_bytes(file)?;
    /// // In this vocabulary, 2 is "caf", and 0 and 1 are the two bytes of "é".
    /// let mut stream = tokenizer.stream();
    /// assert_eq!(stream.push(2)?, "caf");
    /// assert_eq!(stream.push(0)?, "");
    /// assert_eq!(stream.push(1)?, "é");
    /// assert_eq!(stream.finish()?, "");
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(&self) -> TextStream<'_> {
        TextStream::new(self)
    }

    /// The tokens of a text, without special ones.
    fn plain(&self, text: &str) -> Result<Encoding> {
        let encoding = guarded("tokenizer", WRONG, || self.inner.encode(text, false))?;
        self.check_all_used(text, &encoding)?;
        Ok(encoding)
    }

    /// A model of byte pairs leaves out characters for which it has no token.
    fn check_all_used(&self, text: &str, encoding: &Encoding) -> Result<()> {
        let ModelWrapper::BPE(model) = self.inner.get_model() else { return Ok(()) };
        if model.unk_token.is_some() || self.inner.get_normalizer().is_some() {
            return Ok(());
        }
        let mut used = vec![false; text.len()];
        for (begin, end) in encoding.get_offsets() {
            if let Some(part) = used.get_mut(*begin..*end) {
                part.fill(true);
            }
        }
        let lost = |(at, c): &(usize, char)| !used[*at] && !c.is_whitespace();
        match text.char_indices().find(lost) {
            None => Ok(()),
            Some((_, c)) => Err(Error::Data(message!(
                "tokenizer: the vocabulary has no token for {c:?}, and none for what is unknown. Replace the character, or use \
                 the tokenizer that was published with the network."
            ))),
        }
    }

    fn check_known(&self, encoding: &Encoding) -> Result<()> {
        let Some(unknown) = self.unknown_id() else { return Ok(()) };
        let Some(at) = encoding.get_ids().iter().position(|id| *id == unknown) else {
            return Ok(());
        };
        let (begin, end) = encoding.get_offsets().get(at).copied().unwrap_or_default();
        Err(Error::Data(message!(
            "tokenizer: the word at bytes {begin} to {end} is not in the vocabulary. Write it in another way, or leave \
             refuse_unknown false, and it becomes the token {unknown}."
        )))
    }

    /// The tokens of one or two texts as the options want them.
    fn row(&self, a: Encoding, b: Option<Encoding>, options: &EncodeOptions) -> Result<Row> {
        if options.refuse_unknown {
            self.check_known(&a)?;
            b.as_ref().map_or(Ok(()), |b| self.check_known(b))?;
        }
        let added = match self.inner.get_post_processor() {
            Some(of) if options.special_tokens => of.added_tokens(b.is_some()),
            _ => 0,
        };
        let most = options.max_length.unwrap_or(usize::MAX);
        let texts = 1 + usize::from(b.is_some());
        if most < added + texts {
            return Err(Error::Data(message!(
                "tokenizer: max_length is {most}, and there are {added} special tokens; it must be at least {}.",
                added + texts
            )));
        }
        let length = a.len() + b.as_ref().map_or(0, Encoding::len);
        let encoding = guarded("tokenizer", WRONG, || {
            let (a, b) = match length > most - added {
                true => {
                    let cut = TruncationParams { max_length: most - added, ..Default::default() };
                    truncate_encodings(a, b, &cut)?
                }
                false => (a, b),
            };
            self.inner.post_process(a, b, options.special_tokens)
        })?;
        Ok(Row { ids: encoding.get_ids().to_vec(), kinds: encoding.get_type_ids().to_vec() })
    }
}
