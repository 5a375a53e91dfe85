//! `cache_file` and `snapshot`: make elements once and store them in a file.

use std::path::{Path, PathBuf};

use super::cache::warn_of_error;
use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::element_file::{ElementReader, ElementWriter};
use crate::data::item::{Item, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::error::{Error, Result, message};
use crate::files;

impl<T: Item> Dataset<T> {
    /// Writes the elements of the first complete pass to the file `filename`, and reads them from it in all later passes,
    /// including those of later programs (`Dataset.cache(filename)`).
    ///
    /// The file gets its name when the pass is complete. A pass that ends early or has errors leaves no file; a second pass
    /// that would write it at the same time is an error. Delete the file after changing the pipeline before this stage.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// # let folder = std::env::temp_dir().join(format!("wgrad-doc-cache-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// let dataset = wgrad::data::range(0..5).map(|n| n * n).cache_file(folder.join("squares"));
    /// assert_eq!(dataset.iter().count(), 5);
    /// assert!(folder.join("squares").exists());
    /// assert_eq!(dataset.reduce(0, |sum, n| sum + n)?, 30);
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A file that is corrupt, or has other elements, is an [`Error::Data`] in place of the first element.
    #[must_use]
    pub fn cache_file(&self, filename: impl AsRef<Path>) -> Dataset<T> {
        let file = filename.as_ref().to_path_buf();
        Dataset::new(FileCache {
            name: "cache",
            input: self.clone(),
            file,
            packed: false,
            folder: false,
        })
    }

    /// As [`Dataset::cache_file`], in a folder, which is created if it is missing; the file is compressed if the feature `gzip`
    /// is on (`Dataset.snapshot`).
    #[must_use]
    pub fn snapshot(&self, path: impl AsRef<Path>) -> Dataset<T> {
        let (file, packed) = (path.as_ref().join("snapshot.elements"), cfg!(feature = "gzip"));
        Dataset::new(FileCache {
            name: "snapshot",
            input: self.clone(),
            file,
            packed,
            folder: true,
        })
    }
}

struct FileCache<T: Item> {
    name: &'static str,
    input: Dataset<T>,
    file: PathBuf,
    packed: bool,
    /// Whether to create the file's folder.
    folder: bool,
}

struct FileCacheStream<T> {
    pass: Pass,
    name: &'static str,
    input: BoxStream<T>,
    file: PathBuf,
    packed: bool,
    folder: bool,
    state: State<T>,
    /// An element that could not be written, which follows the error.
    held: Option<T>,
}

enum State<T> {
    Begin,
    Writing(Box<ElementWriter<T>>),
    Reading(ElementReader<T>),
    /// The input's elements, which are not written.
    Through,
    Ended,
}

impl<T: Item> Node<T> for FileCache<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        Ok(Box::new(FileCacheStream {
            pass: pass.clone(),
            name: self.name,
            input: self.input.open(pass)?,
            file: self.file.clone(),
            packed: self.packed,
            folder: self.folder,
            state: State::Begin,
            held: None,
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn spec(&self) -> ItemSpec {
        self.input.element_spec()
    }
}

impl<T: Item> FileCacheStream<T> {
    fn write(&self) -> Result<State<T>> {
        if let Some(folder) = self.file.parent().filter(|_| self.folder) {
            files::make_folder(folder).map_err(|error| Error::io(folder, error))?;
        }
        ElementWriter::begin(self.name, &self.file, self.packed)
            .map(|w| State::Writing(Box::new(w)))
    }

    fn begin(&self) -> Result<State<T>> {
        match self.file.try_exists().map_err(|error| Error::io(&self.file, error))? {
            true => ElementReader::open(&self.file).map(State::Reading),
            false => self.write(),
        }
    }

    /// Writes and returns the input's next element.
    fn next_written(&mut self) -> Option<Result<T>> {
        let next = self.input.next();
        let state = std::mem::replace(&mut self.state, State::Through);
        let State::Writing(mut writer) = state else { return next };
        match next {
            Some(Ok(item)) => match writer.write(&item) {
                Ok(()) => {
                    self.state = State::Writing(writer);
                    Some(Ok(item))
                }
                Err(error) => {
                    self.held = Some(item);
                    Some(Err(error))
                }
            },
            Some(Err(error)) => {
                warn_of_error(self.name, &error);
                Some(Err(error))
            }
            // A stopped pass ends early.
            None if self.pass.stopped() => None,
            None => {
                self.state = State::Ended;
                writer.finish().err().map(Err)
            }
        }
    }
}

impl<T: Item> Stream<T> for FileCacheStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        if let Some(item) = self.held.take() {
            return Some(Ok(item));
        }
        if let State::Begin = self.state {
            match self.begin() {
                Ok(state) => self.state = state,
                Err(error) => {
                    self.state = State::Ended;
                    return Some(Err(error));
                }
            }
        }
        match &mut self.state {
            State::Reading(reader) => reader.next(),
            State::Writing(_) => self.next_written(),
            State::Begin | State::Through => self.input.next(),
            State::Ended => None,
        }
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name(self.name, out);
        out.flag(self.held.is_some());
        self.held.as_ref().map_or(Ok(()), |item| item.write(out))?;
        match &mut self.state {
            State::Begin => out.number(0),
            State::Writing(writer) => {
                out.number(1);
                let so_far = writer.so_far()?;
                out.number(so_far.elements());
                for item in so_far {
                    item?.write(out)?;
                }
            }
            State::Reading(reader) => {
                out.number(2);
                out.number(reader.at());
                return Ok(());
            }
            State::Through => out.number(3),
            State::Ended => {
                out.number(4);
                return Ok(());
            }
        }
        self.input.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name(self.name, from)?;
        if from.flag()? {
            self.held = Some(T::read(from)?);
        }
        self.state = match from.number()? {
            0 => State::Begin,
            1 => {
                let mut state = self.write()?;
                for _ in 0..from.count(1)? {
                    let item = T::read(from)?;
                    if let State::Writing(writer) = &mut state {
                        writer.write(&item)?;
                    }
                }
                state
            }
            2 => {
                let mut reader = ElementReader::open(&self.file)?;
                reader.pass_over(from.number()?)?;
                self.state = State::Reading(reader);
                return Ok(());
            }
            3 => State::Through,
            4 => {
                self.state = State::Ended;
                return Ok(());
            }
            kind => {
                return Err(Error::Data(message!(
                    "resume: the file of a {} is in state {kind}; it is corrupt.",
                    self.name
                )));
            }
        };
        self.input.restore(from)
    }
}
