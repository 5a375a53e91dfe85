//! Encodes elements and the states of iterators as bytes: little-endian numbers, with a length before data of variable
//! size.
//!
//! [`Reader`] trusts no length: it rejects one that exceeds the remaining bytes.

use crate::error::{Error, Result, message};

/// The bytes that are written.
#[derive(Debug, Default, Clone)]
pub struct Writer {
    bytes: Vec<u8>,
}

/// The bytes that are read, from the front.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Writer {
    /// Without bytes.
    pub fn new() -> Self {
        Writer::default()
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a number.
    pub fn number(&mut self, number: u64) {
        self.raw(&number.to_le_bytes());
    }

    /// Appends a Boolean.
    pub fn flag(&mut self, flag: bool) {
        self.bytes.push(u8::from(flag));
    }

    /// Appends bytes after their length.
    pub fn block(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }

    /// Appends an error; an operating system's error becomes text.
    pub fn error(&mut self, error: &Error) {
        let kind: u8 = match error {
            Error::Shape(_) => 0,
            Error::DType(_) => 1,
            Error::Index(_) => 2,
            Error::Check(_) => 3,
            _ => 4,
        };
        self.bytes.push(kind);
        self.block(error.to_string().as_bytes());
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl<'a> Reader<'a> {
    /// Reads from the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// The bytes that are left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`Error::Data`] if there are fewer.
    pub fn raw(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.left() {
            return Err(Error::Data(message!(
                "saved elements: {count} bytes should follow byte {}, and {} are left: it is truncated or corrupt.",
                self.at,
                self.left()
            )));
        }
        let bytes = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(bytes)
    }

    /// The next bytes, as an array.
    ///
    /// # Errors
    /// As [`Reader::raw`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.raw(N)?);
        Ok(array)
    }

    /// A number.
    ///
    /// # Errors
    /// As [`Reader::raw`].
    pub fn number(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number as a `usize`; one beyond its range becomes the largest.
    ///
    /// # Errors
    /// As [`Reader::raw`].
    pub fn size(&mut self) -> Result<usize> {
        Ok(usize::try_from(self.number()?).unwrap_or(usize::MAX))
    }

    /// A number of items, each of which occupies at least `bytes` of the bytes that follow.
    ///
    /// # Errors
    /// [`Error::Data`] if too few bytes are left for that many.
    pub fn count(&mut self, bytes: usize) -> Result<usize> {
        let count = self.number()?;
        let fits = usize::try_from(count)
            .ok()
            .filter(|n| n.checked_mul(bytes.max(1)).is_some_and(|needed| needed <= self.left()));
        fits.ok_or_else(|| {
            Error::Data(message!(
                "saved elements: {count} items should follow byte {}, and {} bytes are left: it is truncated or \
                 corrupt.",
                self.at,
                self.left()
            ))
        })
    }

    /// A Boolean.
    ///
    /// # Errors
    /// As [`Reader::raw`].
    pub fn flag(&mut self) -> Result<bool> {
        Ok(self.array::<1>()? != [0])
    }

    /// Bytes after their length.
    ///
    /// # Errors
    /// As [`Reader::raw`].
    pub fn block(&mut self) -> Result<&'a [u8]> {
        let count = self.count(1)?;
        self.raw(count)
    }

    /// Text after its length.
    ///
    /// # Errors
    /// As [`Reader::raw`], and if the text is not UTF-8.
    pub fn text(&mut self) -> Result<&'a str> {
        let bytes = self.block()?;
        std::str::from_utf8(bytes)
            .map_err(|e| Error::Data(message!("saved elements: a string is not valid UTF-8: {e}.")))
    }

    /// An error that [`Writer::error`] wrote.
    ///
    /// # Errors
    /// As [`Reader::text`].
    pub fn error(&mut self) -> Result<Error> {
        let [kind] = self.array()?;
        let text = self.text()?.into();
        Ok(match kind {
            0 => Error::Shape(text),
            1 => Error::DType(text),
            2 => Error::Index(text),
            3 => Error::Check(text),
            _ => Error::Data(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut out = Writer::new();
        out.number(7);
        out.flag(true);
        out.block(b"seven");
        out.error(&Error::Index("out of range".into()));
        let bytes = out.into_bytes();
        let mut from = Reader::new(&bytes);
        assert_eq!((from.number().unwrap(), from.flag().unwrap()), (7, true));
        assert_eq!(from.text().unwrap(), "seven");
        assert!(matches!(from.error().unwrap(), Error::Index(text) if &*text == "out of range"));
        assert_eq!(from.left(), 0);
        assert!(from.number().is_err());
    }

    #[test]
    fn no_length_is_trusted() {
        let mut out = Writer::new();
        out.number(u64::MAX);
        let bytes = out.into_bytes();
        assert!(Reader::new(&bytes).block().is_err());
        assert!(Reader::new(&bytes).count(0).is_err());
        assert!(Reader::new(&bytes[..3]).number().is_err());
    }
}
