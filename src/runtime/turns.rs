//! Decides at which of a loop's marks the device cuts the stream.
//!
//! A turn is one iteration of the program's loop. It is complete when a mark repeats. It ends at the mark that the most
//! nodes follow: the assignments of a training step are close together, and the next step begins after the last of
//! them. The beginning of a tape marks a turn by itself.

use super::stream_limits::{LONGEST, STREAM_LIMIT};
use crate::graph::HashIndex;

/// An implicit sign of where the program's turns begin or end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The calls from here on belong to another turn than those before.
    Turn,
    /// The variable with this number has a new value.
    Replaced(u64),
}

/// A flush of fewer nodes would cost more than it saves.
const LEAST: usize = 16;
/// The most that [`LEAST`] may grow to.
const LEAST_AT_MOST: usize = 1024;
/// After this many cuts a label counts as reliable.
const SETTLED: u32 = 8;
/// How many marks are remembered until one repeats.
const MARKS: usize = 4096;
/// A program that flushes itself at least once in this many cuts needs no cuts.
const CUTS_A_STEP: u32 = 8;
/// The number of consecutive times that the program must flush itself before the device relies on it.
const STEPS: u32 = 2;

/// Positions count nodes over all streams. They may decrease when a test discards a stream.
pub(super) struct Turns {
    /// The mark at which the stream is cut.
    label: Option<Mark>,
    /// The position of the label's last occurrence.
    came: u64,
    /// The length of its turns.
    length: u64,
    /// How many cuts the label has made.
    cuts: u32,
    /// The minimum number of nodes of a turn and of a cut; more than [`LEAST`] if the turns contain loops.
    least: usize,
    /// The position at which a tape first began a turn since the last requested flush.
    begun: Option<u64>,
    /// The variables assigned since the label occurred, and the positions; recorded only while a label is sought.
    marks: Vec<(u64, u64)>,
    /// The first of `marks` with this variable.
    first: HashIndex,
    asked: Asked,
}

/// The flushes that the program itself requests.
#[derive(Default)]
struct Asked {
    /// The position of the last one.
    at: u64,
    /// How many cuts there were since.
    cuts: u32,
    /// How many of them in a row preceded a cut by the label.
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
    /// Handles a mark at position `now`, after `waiting` nodes. Returns whether to flush them.
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

    /// The program has requested a flush at `now`, at the end of a step or by reading a value.
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

    /// The label occurs.
    fn comes(&mut self, now: u64) {
        let length = now.saturating_sub(self.came);
        if !self.is_missing(now) && length >= self.least as u64 {
            // Turns may differ: the longest one counts, with decreasing weight as others follow.
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
            // This is one of many turns, which already have a label.
            self.begun = Some(now);
        } else if length >= self.least as u64 {
            self.elect(Mark::Turn, now, length);
        }
    }

    /// True if there is no label, or it has stopped occurring.
    fn is_missing(&self, now: u64) -> bool {
        self.label.is_none() || now.saturating_sub(self.came) > 2 * self.length
    }

    /// Records that a variable is assigned while a label is sought.
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
        // A label that soon stopped occurring belonged to a loop inside the turn.
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
