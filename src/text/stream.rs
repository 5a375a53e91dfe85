//! [`TextStream`]: text from tokens that arrive one by one.

use super::Tokenizer;
use crate::error::Result;

/// Turns tokens into text as they arrive: [`Tokenizer::stream`] makes it.
///
/// A token can be a part of a character. Such tokens are held back until the character is complete.
#[derive(Debug)]
pub struct TextStream<'a> {
    tokenizer: &'a Tokenizer,
    /// The last tokens: the first `shown` of them are in the text already, and say whether a space precedes the others.
    tokens: Vec<u32>,
    shown: usize,
}

/// More than the tokens of a character.
const MOST_HELD: usize = 8;

impl<'a> TextStream<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer) -> Self {
        TextStream { tokenizer, tokens: Vec::new(), shown: 0 }
    }

    /// Adds a token, and returns the text that is complete with it, which may be empty.
    ///
    /// # Errors
    /// As [`Tokenizer::decode`]. The token is not added then.
    pub fn push(&mut self, token: u32) -> Result<String> {
        self.tokens.push(token);
        let text = self.new_text().inspect_err(|_| {
            let _ = self.tokens.pop();
        })?;
        let held = self.tokens.len() - self.shown;
        // A character that is not complete, or one that no token can complete any more.
        if text.ends_with('\u{FFFD}') && held < MOST_HELD {
            return Ok(String::new());
        }
        if !text.is_empty() || held >= MOST_HELD {
            self.tokens.drain(..self.shown);
            self.shown = self.tokens.len();
        }
        Ok(text)
    }

    /// Ends the text, and returns what was held back. Further tokens begin a new text.
    ///
    /// # Errors
    /// As [`Tokenizer::decode`].
    pub fn finish(&mut self) -> Result<String> {
        let text = self.new_text()?;
        self.tokens.clear();
        self.shown = 0;
        Ok(text)
    }

    /// The text of the tokens that are not shown, behind those that are.
    fn new_text(&self) -> Result<String> {
        let before = self.tokenizer.decode(&self.tokens[..self.shown])?;
        let all = self.tokenizer.decode(&self.tokens)?;
        Ok(all.get(before.len()..).unwrap_or_default().to_string())
    }
}
