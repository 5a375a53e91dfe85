//! [`TextLineReader`]: the lines of a text file.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use super::input::{RecordPosition, unreadable};
use crate::error::{Error, Result, message};

/// Iterates over the lines of a text, without the line ends `\n` and `\r\n`. The last line needs no line end.
///
/// A line that is not UTF-8 is an error; the next line follows it.
///
/// ```
/// use wgrad::data::TextLineReader;
/// let lines: Vec<String> = TextLineReader::new(&b"one\r\n\ntwo"[..], "memory").collect::<Result<_, _>>()?;
/// assert_eq!(lines, ["one", "", "two"]);
/// let error = TextLineReader::new(&b"one\ntw\xff\n"[..], "memory").nth(1).expect("a second").unwrap_err();
/// assert!(error.to_string().starts_with("memory: line 2 is not valid UTF-8 from its byte 2 on"), "{error}");
/// # Ok::<(), wgrad::Error>(())
/// ```
///
/// # Errors
/// [`Error::Data`](crate::Error::Data) for a line that is not UTF-8, [`Error::Io`](crate::Error::Io) if reading fails.
#[derive(Debug)]
pub struct TextLineReader<R> {
    from: R,
    name: PathBuf,
    place: RecordPosition,
    failed: bool,
}

impl<R: BufRead> TextLineReader<R> {
    /// Reads lines from `from`; `name` is for messages.
    pub fn new(from: R, name: impl AsRef<Path>) -> Self {
        TextLineReader::resumed(from, name.as_ref(), RecordPosition::default())
    }

    /// Continues at `place`, where `from` is.
    pub(crate) fn resumed(from: R, name: &Path, place: RecordPosition) -> Self {
        TextLineReader { from, name: name.to_path_buf(), place, failed: false }
    }

    fn read(&mut self) -> Result<Option<String>> {
        let mut bytes = Vec::new();
        let read = self.from.read_until(b'\n', &mut bytes).map_err(|error| {
            self.failed = true;
            unreadable(&self.name, error)
        })?;
        if read == 0 {
            return Ok(None);
        }
        self.place.byte += read as u64;
        self.place.record += 1;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
        }
        String::from_utf8(bytes).map(Some).map_err(|error| {
            let (name, line) = (self.name.display(), self.place.record);
            let from = error.utf8_error().valid_up_to();
            Error::Data(message!(
                "{name}: line {line} is not valid UTF-8 from its byte {from} on. Convert the file, or read it as \
                 bytes if it is not text."
            ))
        })
    }
}

impl<R: BufRead> Iterator for TextLineReader<R> {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.failed {
            true => None,
            false => self.read().transpose(),
        }
    }
}

#[cfg(not(target_family = "wasm"))]
mod dataset {
    use super::TextLineReader;
    use crate::data::files::dataset::{FileDataset, IntoFiles};
    use crate::data::files::format::{FileFormat, OneFile, Records};
    use crate::data::files::input::{Input, RecordPosition};
    use crate::error::Result;

    /// The lines of text files (`tf.data.TextLineDataset`).
    ///
    /// ```
    /// use wgrad::data::TextLineDataset;
    /// let path = std::env::temp_dir().join(format!("wgrad-lines-{}.txt", std::process::id()));
    /// std::fs::write(&path, "one\ntwo\nthree\n").expect("a folder for temporary files");
    /// let lengths = TextLineDataset::new(&path).build()?.map(|line| line.len() as i64);
    /// assert_eq!(lengths.iter().collect::<Result<Vec<i64>, _>>()?, [3, 3, 5]);
    /// # std::fs::remove_file(&path).expect("it was written");
    /// # Ok::<(), wgrad::Error>(())
    /// ```
    pub type TextLineDataset = FileDataset<TextLines>;

    /// The format of a [`TextLineDataset`].
    #[derive(Debug, Clone)]
    pub struct TextLines;

    impl TextLineDataset {
        /// The lines of these files, without the line ends `\n` and `\r\n`.
        pub fn new(files: impl IntoFiles) -> Self {
            FileDataset::from_format(files, TextLines)
        }
    }

    impl FileFormat for TextLines {
        type Item = String;
        const NAME: &'static str = "TextLineDataset";

        fn records(
            &self,
            file: &OneFile,
            place: RecordPosition,
        ) -> Result<Box<dyn Records<String>>> {
            Ok(Box::new(TextLineReader::resumed(file.open(place.byte)?, &file.path, place)))
        }
    }

    impl Records<String> for TextLineReader<Input> {
        fn place(&self) -> Option<RecordPosition> {
            (!self.failed).then_some(self.place)
        }
    }
}
#[cfg(not(target_family = "wasm"))]
pub use dataset::TextLineDataset;
