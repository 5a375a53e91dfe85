//! [`Turns`]: the elements of several files alternately, read ahead on the pool's threads.
//!
//! The order is that of `interleave`: when it is the turn of a file that has ended, the next file replaces it.

use std::collections::VecDeque;
use std::path::PathBuf;

use super::format::{FileFormat, Reading, Records};
use super::input::RecordPosition;
use crate::data::codec::{Reader, Writer};
use crate::data::item::Item;
use crate::data::node::{BoxStream, Pass, Stream, expect_name, write_name};
use crate::data::pool::{Jobs, guarded};
use crate::error::{Error, Result, message};

/// A thread reads this many elements of a file before it looks for other work.
const AT_ONCE: usize = 16;

pub(super) struct Turns<F: FileFormat> {
    of: Reading<F>,
    files: BoxStream<PathBuf>,
    pass: Pass,
    /// The maximum number of open files; the number of open files once there are no more.
    width: usize,
    open: Vec<Option<Ahead<F::Item>>>,
    /// The index in `open` whose turn it is, or the index after the last one.
    turn: usize,
}

impl<F: FileFormat> Turns<F> {
    pub(super) fn new(of: Reading<F>, width: usize, files: BoxStream<PathBuf>, pass: Pass) -> Self {
        Turns { of, files, pass, width, open: Vec::new(), turn: 0 }
    }

    fn ahead(&self, path: PathBuf, place: RecordPosition) -> Result<Ahead<F::Item>> {
        let records = self.of.records(&path, place)?;
        Ok(Ahead::new(path, records))
    }
}

impl<F: FileFormat> Stream<F::Item> for Turns<F> {
    fn next(&mut self) -> Option<Result<F::Item>> {
        // The number of consecutive turns without an element.
        let mut idle = 0;
        while idle <= self.width && !self.pass.stopped() {
            if self.open.get(self.turn).is_none_or(Option::is_none) {
                match self.files.next() {
                    Some(Ok(path)) => match self.ahead(path, RecordPosition::default()) {
                        Ok(ahead) if self.turn == self.open.len() => self.open.push(Some(ahead)),
                        Ok(ahead) => self.open[self.turn] = Some(ahead),
                        Err(error) => return Some(Err(error)),
                    },
                    Some(Err(error)) => return Some(Err(error)),
                    None => {
                        self.width = self.open.len();
                        if self.width == 0 {
                            return None;
                        }
                    }
                }
            }
            let turn = self.turn % self.width;
            self.turn = (turn + 1) % self.width;
            let Some(Some(ahead)) = self.open.get_mut(turn) else {
                idle += 1;
                continue;
            };
            if let Some(record) = ahead.next() {
                return Some(record);
            }
            self.open[turn] = None;
            idle = 0;
        }
        None
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name(F::NAME, out);
        out.number(self.width as u64);
        out.number(self.turn as u64);
        out.number(self.open.len() as u64);
        for ahead in &self.open {
            let place = ahead.as_ref().and_then(|ahead| Some((&ahead.path, ahead.place?)));
            out.flag(place.is_some());
            if let Some((path, place)) = place {
                path.write(out)?;
                out.number(place.byte);
                out.number(place.record);
            }
        }
        self.files.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name(F::NAME, from)?;
        let number =
            |from: &mut Reader<'_>| from.number().map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let (width, turn, count) = (number(from)?, number(from)?, from.count(1)?);
        if width > self.width || count > width || turn > count {
            return Err(Error::Data(message!(
                "resume: the state was saved by a dataset that reads {width} files in turn, of which {count} were \
                 open, and this one reads {}. Resume with the dataset that the iterator came from.",
                self.width
            )));
        }
        self.open.clear();
        for _ in 0..count {
            let ahead = match from.flag()? {
                false => None,
                true => {
                    let path = PathBuf::read(from)?;
                    let place = RecordPosition { byte: from.number()?, record: from.number()? };
                    Some(self.ahead(path, place)?)
                }
            };
            self.open.push(ahead);
        }
        (self.width, self.turn) = (width.max(1), turn);
        self.files.restore(from)
    }
}

/// An element, and where the next one begins.
type Read<T> = (Result<T>, Option<RecordPosition>);

/// A reader, and what it has read.
type Piece<T> = (Box<dyn Records<T>>, Vec<Read<T>>);

/// A file, some of whose elements are read before they are requested.
struct Ahead<T> {
    path: PathBuf,
    /// Returns the reader with the elements that it has read.
    jobs: Jobs<Result<Piece<T>>>,
    read: VecDeque<Read<T>>,
    /// The position after the last element that was returned; none if no more can follow.
    place: Option<RecordPosition>,
}

impl<T: Item> Ahead<T> {
    fn new(path: PathBuf, records: Box<dyn Records<T>>) -> Self {
        let place = records.place();
        let ahead = Ahead { path, jobs: Jobs::new(), read: VecDeque::new(), place };
        ahead.go_on(records);
        ahead
    }

    fn go_on(&self, mut records: Box<dyn Records<T>>) {
        self.jobs.push(move || {
            guarded("read", move || {
                let next = |_| records.next().map(|record| (record, records.place()));
                let read: Vec<Read<T>> = (0..AT_ONCE).map_while(next).collect();
                Ok((records, read))
            })
        });
    }

    fn next(&mut self) -> Option<Result<T>> {
        if self.read.is_empty() {
            match self.jobs.pop(true)? {
                Ok((records, read)) => {
                    self.read.extend(read);
                    if !self.read.is_empty() {
                        self.go_on(records);
                    }
                }
                Err(error) => {
                    self.place = None;
                    return Some(Err(error));
                }
            }
        }
        let (record, place) = self.read.pop_front()?;
        self.place = place;
        Some(record)
    }
}
