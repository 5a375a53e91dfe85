//! Decides at which of a loop's marks the device cuts the stream.
//!
//! A turn is complete when a mark comes again. It ends at the mark that the most nodes follow: the assignments of a
//! training step stand close together, and the next step begins behind the last of them. The begin of a tape marks a
//! turn by itself.

use super::stream_limits::{LONGEST, STREAM_LIMIT};
use crate::graph::HashIndex;

/// What a program reveals of its turns without meaning to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The calls from here on belong to another turn than those before.
    Turn,
    /// The variable of this number has got a new value.
    Replaced(u64),
}

/// A flush of fewer nodes would cost more than it saves.
const LEAST: usize = 16;
/// The most that [`LEAST`] may grow to.
const LEAST_AT_MOST: usize = 1024;
/// After so many cuts a label has proven itself.
const SETTLED: u32 = 8;
/// How many marks are remembered until one comes again.
const MARKS: usize = 4096;
/// A program that flushes itself after every so many cuts needs no cuts.
const CUTS_A_STEP: u32 = 8;
/// So many times in a row the program must flush itself before the device relies on it.
const STEPS: u32 = 2;

/// Positions count nodes over all streams. They may go back where a test takes a stream away.
pub(super) struct Turns {
    /// The mark at which the stream is cut.
    label: Option<Mark>,
    /// Where the label came last.
    came: u64,
    /// The length of its turns.
    length: u64,
    /// How many cuts the label has made.
    cuts: u32,
    /// A turn and a cut have at least so many nodes. More than [`LEAST`] in a program whose turns have loops of their
    /// own.
    least: usize,
    /// Where a tape first began a turn since the last flush that somebody asked for.
    begun: Option<u64>,
    /// The variables that got values since the label came, and where; kept only while a label is sought.
    marks: Vec<(u64, u64)>,
    /// The first of `marks` with this variable.
    first: HashIndex,
    asked: Asked,
}

/// The flushes that the program itself asks for.
#[derive(Default)]
struct Asked {
    /// Where the last one was.
    at: u64,
    /// How many cuts there were since.
    cuts: u32,
    /// So many of them in a row came before the label would have cut.
    steps: u32,
    /// The program flushes itself often enough.
    enough: bool,
}

impl Default for Turns {
    fn default() -> Self {
        Turns {
            label: None,
            came: 0,
            length: 0,
            cuts: 0,
            least: LEAST,
            begun: None,
            marks: Vec::new(),
            first: HashIndex::default(),
            asked: Asked::default(),
        }
    }
}

impl Turns {
    /// A mark comes at `now`, behind `waiting` nodes. Returns whether to flush them.
    pub(super) fn mark(&mut self, mark: Mark, now: u64, waiting: usize) -> bool {
        if self.asked.enough && now.saturating_sub(self.asked.at) <= STREAM_LIMIT as u64 {
            return false;
        }
        self.asked.enough = false;
        match mark {
            _ if self.label == Some(mark) => self.comes(now),
            Mark::Turn => self.begins(now),
            Mark::Replaced(cell) if self.is_missing(now) => self.note(cell, now),
            Mark::Replaced(_) => {}
        }
        let cut = self.label == Some(mark) && waiting >= self.least;
        self.cuts += u32::from(cut);
        self.asked.cuts += u32::from(cut);
        cut
    }

    /// The program has asked for a flush at `now`, at the end of a step or because it looks at a value.
    pub(super) fn asked(&mut self, now: u64, step: bool) {
        let asked = &mut self.asked;
        if asked.cuts > 0 {
            let most = if step { CUTS_A_STEP } else { 1 };
            let short = now.saturating_sub(asked.at) < STREAM_LIMIT as u64 && asked.cuts <= most;
            asked.steps = if short { asked.steps + 1 } else { 0 };
        }
        (asked.at, asked.cuts) = (now, 0);
        if asked.steps >= STEPS {
            (asked.steps, asked.enough) = (0, true);
            self.label = None;
            self.least = LEAST;
        }
        self.begun = None;
        self.clear();
    }

    /// From `now` on the device relies on the program to flush itself often enough, until it does not.
    #[cfg(feature = "checkpoint")]
    pub(super) fn resume(&mut self, now: u64) {
        *self = Turns {
            asked: Asked { at: now, enough: true, ..Asked::default() },
            ..Turns::default()
        };
    }

    /// How many nodes may wait for the label, if its turns are longer than a stream may be otherwise.
    pub(super) fn room(&self) -> Option<usize> {
        let long = STREAM_LIMIT as u64 + 1..=LONGEST as u64;
        // This leaves room for turns of different lengths.
        let room = long.contains(&self.length).then_some(self.length + self.length / 4)?;
        self.label.map(|_| (room as usize).min(LONGEST))
    }

    /// The label comes.
    fn comes(&mut self, now: u64) {
        let length = now.saturating_sub(self.came);
        if !self.is_missing(now) && length >= self.least as u64 {
            // Turns may differ: the longest counts, and counts less as others follow.
            self.length = length.max(self.length - self.length / 4);
        }
        self.came = now;
        self.clear();
    }

    /// A tape begins, which is not the label yet.
    fn begins(&mut self, now: u64) {
        let Some(begun) = self.begun else {
            self.begun = Some(now);
            return;
        };
        let length = now.saturating_sub(begun);
        if length > LONGEST as u64 && !self.is_missing(now) {
            // This is one among many turns, which have their label.
            self.begun = Some(now);
        } else if length >= self.least as u64 {
            self.elect(Mark::Turn, now, length);
        }
    }

    /// There is no label, or it no longer comes.
    fn is_missing(&self, now: u64) -> bool {
        self.label.is_none() || now.saturating_sub(self.came) > 2 * self.length
    }

    /// A variable gets a value while a label is sought.
    fn note(&mut self, cell: u64, now: u64) {
        if self.marks.len() >= MARKS {
            self.clear();
        }
        let first = *self.first.entry(cell).or_insert(self.marks.len() as u32) as usize;
        let turn = self.marks.get(first..).unwrap_or_default();
        let begin = turn.first().map_or(now, |(_, at)| *at);
        let length = now.saturating_sub(begin);
        if turn.is_empty() || length < self.least as u64 {
            self.marks.push((cell, now));
            return;
        }
        let ends = turn.iter().skip(1).map(|(_, at)| *at).chain([now]);
        let gaps =
            turn.iter().zip(ends).map(|((cell, at), end)| (end.saturating_sub(*at), *cell, *at));
        let longest = gaps.reduce(|a, b| if b.0 > a.0 { b } else { a });
        let (_, last, at) = longest.unwrap_or((0, cell, now));
        // A label that soon went missing was that of a loop inside the turn.
        if self.label.is_some() {
            self.least = match self.cuts < SETTLED {
                true => (2 * self.least).min(LEAST_AT_MOST),
                false => LEAST,
            };
        }
        match self.begun.filter(|at| *at >= begin) {
            Some(at) => self.elect(Mark::Turn, at, length),
            None => {
                let at = if last == cell { now } else { at };
                self.elect(Mark::Replaced(last), at, length);
            }
        }
    }

    fn elect(&mut self, label: Mark, came: u64, length: u64) {
        (self.label, self.came, self.length) = (Some(label), came, length);
        self.cuts = 0;
        self.begun = None;
        self.clear();
    }

    fn clear(&mut self) {
        self.marks.clear();
        self.first.clear();
    }
}
