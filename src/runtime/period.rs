//! Finds the period of a loop that gives no marks, in its sequence of calls.

use super::stream_limits::{LONGEST, STREAM_LIMIT};

/// How many calls are remembered: two turns of the longest period.
const HISTORY: usize = 2 * LONGEST;
/// So many calls must repeat before a period counts, if two turns of it are fewer. A loop inside the program's own turn
/// is seldom as long.
const EVIDENCE: usize = 1024;
/// A flush has at least about as many nodes: few enough to plan quickly, enough to keep a GPU busy.
const CUT: usize = 1024;
/// After so many cuts a period has proven itself.
const SETTLED: u32 = 8;

/// Finds the period of the calls in unasked flushes, and says whether it goes on.
pub(super) struct Periods {
    /// A hash for each call; up to twice as many as count.
    history: Vec<u64>,
    period: Option<usize>,
    /// How many cuts this period has made.
    cuts: u32,
    evidence: usize,
}

impl Default for Periods {
    fn default() -> Self {
        Periods { history: Vec::new(), period: None, cuts: 0, evidence: EVIDENCE }
    }
}

impl Periods {
    /// The first of `new` calls that [`Periods::full`] wants to see: as a rule it wants all, but of a period that has
    /// long gone on only the last turn.
    pub(super) fn first(&self, new: usize) -> usize {
        let settled = self.period.filter(|_| self.cuts >= SETTLED);
        settled.map_or(0, |period| new.saturating_sub(period))
    }

    /// Whether to cut the stream, which has as many nodes as [`Periods::cut_length`] or [`STREAM_LIMIT`]; `calls` are
    /// those from [`Periods::first`] on.
    pub(super) fn full(&mut self, nodes: usize, calls: impl Iterator<Item = u64>) -> bool {
        let skipped = self.first(nodes) > 0;
        let begin = self.history.len();
        self.history.extend(calls);
        let new = self.history.len() - begin;
        if let Some(period) = self.period {
            // The history always holds the turn before.
            let earlier = begin.saturating_sub(period);
            if self.history[begin..] == self.history[earlier..earlier + new] {
                self.cuts = self.cuts.saturating_add(1);
                self.trim();
                return true;
            }
            if skipped {
                self.history.drain(..begin);
            }
            // This was a loop inside the program's turn, and must not pass for the turn again.
            self.evidence = match self.cuts < SETTLED {
                true => (2 * self.evidence).min(HISTORY / 2),
                false => EVIDENCE,
            };
            self.period = None;
        }
        if nodes < STREAM_LIMIT {
            self.history.truncate(if skipped { 0 } else { begin });
            return false;
        }
        let old = self.history.len().saturating_sub(HISTORY);
        self.period = smallest_period(&self.history[old..], self.evidence);
        self.cuts = 0;
        self.trim();
        true
    }

    /// How many nodes each flush has while the period goes on: whole turns, so that all flushes are alike.
    pub(super) fn cut_length(&self) -> Option<usize> {
        self.period.map(|period| period * (CUT / period).max(1))
    }

    /// The program itself has said where it begins again, or has looked at a value.
    pub(super) fn forget(&mut self) {
        self.history.clear();
        self.period = None;
    }

    fn trim(&mut self) {
        // This is rare, as it moves all that stays.
        if self.history.len() > 2 * HISTORY {
            let old = self.history.len() - HISTORY;
            self.history.drain(..old);
        }
    }
}

/// The smallest period that holds for the last calls, for at least `evidence` of them and at least two turns.
fn smallest_period(calls: &[u64], evidence: usize) -> Option<usize> {
    // The failure function of Knuth, Morris and Pratt, read from the end: among the last `i` calls, the longest
    // beginning that is also an end. What remains is the smallest period.
    let back: Vec<u64> = calls.iter().rev().copied().collect();
    let mut border = vec![0; back.len()];
    let mut length = 0;
    for i in 1..back.len() {
        while length > 0 && back[i] != back[length] {
            length = border[length - 1];
        }
        if back[i] == back[length] {
            length += 1;
        }
        border[i] = length;
        let period = i + 1 - length;
        if i + 1 >= evidence && 2 * period <= i + 1 {
            return Some(period);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Periods, STREAM_LIMIT, smallest_period};

    #[test]
    fn the_smallest_period_is_found_from_the_end() {
        let turns = |period: u64, calls: u64| (0..calls).map(|i| i % period).collect::<Vec<_>>();
        assert_eq!(smallest_period(&turns(28, 2048), 1024), Some(28));
        assert_eq!(smallest_period(&turns(1, 2048), 1024), Some(1));
        assert_eq!(smallest_period(&turns(1024, 2048), 1024), Some(1024));
        assert_eq!(smallest_period(&turns(1025, 2048), 1024), None, "not yet twice");
        assert_eq!(smallest_period(&turns(2049, 4098), 1024), Some(2049));
        // What went before does not matter, if it is not too long ago.
        let mut calls: Vec<u64> = (1000..1900).collect();
        calls.extend(turns(7, 1148));
        assert_eq!(smallest_period(&calls, 1024), Some(7));
        assert_eq!(smallest_period(&calls, 1200), None);
        assert_eq!(smallest_period(&[], 0), None);
        assert_eq!(smallest_period(&(0..2048).collect::<Vec<_>>(), 1024), None);
    }

    /// Lengths of the flushes of a program whose call `i` is `call(i)`.
    fn flushes(calls: usize, call: impl Fn(usize) -> u64) -> Vec<usize> {
        let (mut periods, mut waiting, mut cuts) = (Periods::default(), Vec::new(), Vec::new());
        let mut limit = STREAM_LIMIT;
        for i in 0..calls {
            waiting.push(call(i));
            if waiting.len() >= limit {
                if periods
                    .full(waiting.len(), waiting[periods.first(waiting.len())..].iter().copied())
                {
                    cuts.push(waiting.len());
                    waiting.clear();
                }
                limit = periods.cut_length().unwrap_or(STREAM_LIMIT);
            }
        }
        cuts
    }

    #[test]
    fn flushes_are_whole_turns() {
        let cuts = flushes(100_000, |i| i as u64 % 28);
        assert_eq!(cuts[0], STREAM_LIMIT);
        assert!(cuts[1..].iter().all(|&cut| cut == 28 * 36), "{cuts:?}");
        let cuts = flushes(100_000, |i| i as u64 % 1500);
        assert!(cuts[3..].iter().all(|&cut| cut == 1500), "{cuts:?}");
    }

    #[test]
    fn a_turn_longer_than_the_limit_is_one_flush() {
        let cuts = flushes(100_000, |i| i as u64 % 2049);
        assert!(cuts[..3].iter().sum::<usize>() <= 5 * 2049 && cuts.len() > 40, "{cuts:?}");
        assert!(cuts[3..].iter().all(|&cut| cut == 2049), "{cuts:?}");
        // One call in 2,049 is another: the loop inside the turn is not the turn.
        let cuts = flushes(100_000, |i| u64::from(i % 2049 == 2048));
        let settled = cuts.iter().position(|&cut| cut == 2049).expect("the turn is found");
        assert!(cuts[..settled].iter().sum::<usize>() <= 5 * 2049, "{cuts:?}");
        assert!(cuts[settled..].iter().all(|&cut| cut == 2049), "{cuts:?}");
    }

    #[test]
    fn another_loop_gets_another_period() {
        let cuts =
            flushes(60_000, |i| if i < 20_000 { i as u64 % 28 } else { 100 + i as u64 % 30 });
        assert!(cuts[..15].iter().skip(1).all(|&cut| cut == 28 * 36), "{cuts:?}");
        assert!(cuts[25..].iter().all(|&cut| cut == 30 * 34), "{cuts:?}");
        // No period at all: the limit.
        let cuts = flushes(60_000, |i| (i * i) as u64);
        assert!(cuts.iter().all(|&cut| cut == STREAM_LIMIT), "{cuts:?}");
    }
}
