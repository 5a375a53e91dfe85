//! Reads numbers from the bytes of a file, which may end anywhere, and records the addresses that a walk has visited.

use std::collections::HashSet;

/// The description of an error.
#[derive(Debug)]
pub(super) struct Broken(pub(super) String);

/// The addresses that a walk has visited, and how many bytes of lists and of names it may still read.
pub(super) struct Seen {
    places: HashSet<u64>,
    left: u64,
    names: u64,
}

impl Seen {
    /// For a file of this many bytes.
    pub(super) fn with_length(length: usize) -> Self {
        let length = length as u64;
        // In a file with few links, each may have the longest name.
        Seen { places: HashSet::new(), left: length, names: length.saturating_mul(16) + (1 << 16) }
    }

    pub(super) fn note(&mut self, at: u64) -> Result<(), Broken> {
        match self.places.insert(at) {
            true => Ok(()),
            false => Err(Broken(format!("two links lead to byte {at}, which only one may"))),
        }
    }

    /// Records that a list of `count` entries of `size` bytes is read. Each byte of a file belongs to one list; otherwise
    /// nested lists could produce an unlimited number of entries from a small file.
    pub(super) fn spend(&mut self, count: u64, size: u64) -> Result<(), Broken> {
        let left = count.checked_mul(size).and_then(|bytes| self.left.checked_sub(bytes));
        self.left = left.ok_or_else(|| {
            Broken("its lists of objects overlap, or have more entries than it has bytes".into())
        })?;
        Ok(())
    }

    /// Records a name of this many bytes: thousands of links may share one that is stored once.
    pub(super) fn name(&mut self, bytes: usize) -> Result<(), Broken> {
        let left = self.names.checked_sub(bytes as u64);
        self.names = left.ok_or_else(|| {
            Broken("its links share names, which are too long to be read so often".into())
        })?;
        Ok(())
    }
}

/// An address that refers to nothing.
pub(super) const UNDEFINED: u64 = u64::MAX;

/// `length` bytes, starting at `from`.
pub(super) fn part<'a>(
    bytes: &'a [u8],
    at: u64,
    length: u64,
    what: &str,
) -> Result<&'a [u8], Broken> {
    let found = usize::try_from(at)
        .ok()
        .zip(usize::try_from(length).ok())
        .and_then(|(at, length)| bytes.get(at..)?.get(..length));
    found.ok_or_else(|| {
        Broken(format!(
            "{what} should take {length} bytes from byte {at} on, and there are {}",
            bytes.len()
        ))
    })
}

/// Reads one value after another.
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a [u8],
    what: &'static str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(rest: &'a [u8], what: &'static str) -> Self {
        Cursor { rest, what }
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Broken> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(Broken(format!("{} ends too early", self.what)));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// A number of `width` bytes, lowest byte first.
    pub(super) fn number(&mut self, width: usize) -> Result<u64, Broken> {
        let bytes = self.take(width)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// The next bytes up to a multiple of eight; `length` of them count.
    pub(super) fn padded(&mut self, length: usize) -> Result<&'a [u8], Broken> {
        let taken = self.take(length)?;
        let padding = (length.next_multiple_of(8) - length).min(self.rest.len());
        self.take(padding)?;
        Ok(taken)
    }

    pub(super) fn expect(&mut self, wanted: &[u8]) -> Result<(), Broken> {
        let found = self.take(wanted.len())?;
        match found == wanted {
            true => Ok(()),
            false => Err(Broken(format!(
                "{} should begin with {:?}, and begins with {:?}",
                self.what,
                String::from_utf8_lossy(wanted),
                String::from_utf8_lossy(found)
            ))),
        }
    }
}
