//! Text as tokens: [`Tokenizer`] reads the files of Hugging Face's `tokenizers`, so that networks for text take text and return
//! text.
//!
//! ```
//! # fn main() -> wgrad::Result<()> {
//! use wgrad::text::{EncodeOptions, Tokenizer};
//! // Tokenizer::from_file("tokenizer.json")? reads a file.
//! let file = br#"{"version": "1.0", "pre_tokenizer": {"type": "Whitespace"},
//!     "model": {"type": "WordLevel", "vocab": {"[PAD]": 0, "[UNK]": 1, "a": 2, "cat": 3, "sleeps": 4}, "unk_token": "[UNK]"}}"#;
//! let tokenizer = Tokenizer::from_bytes(file)?;
//! assert_eq!(tokenizer.encode("a cat sleeps")?, [2, 3, 4]);
//! assert_eq!(tokenizer.decode(&[2, 3])?, "a cat");
//! let batch = tokenizer.encode_batch(&["a cat sleeps", "a dog"], &EncodeOptions::new())?;
//! assert_eq!((batch.ids, batch.mask), (vec![2, 3, 4, 2, 1, 0], vec![1, 1, 1, 1, 1, 0]));
//! # Ok(())
//! # }
//! ```

mod batch;
mod guard;
mod stream;
mod tokenizer;

pub use batch::TokenBatch;
pub use stream::TextStream;
pub use tokenizer::{EncodeOptions, Tokenizer};
