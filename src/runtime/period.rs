//! Finds the period of a loop without marks in its sequence of calls.

use super::stream_limits::{LONGEST, STREAM_LIMIT};

/// How many calls are remembered: two repetitions of the longest period.
const HISTORY: usize = 2 * LONGEST;
/// At least this many calls must repeat before a period counts, even if two repetitions are fewer. A loop inside the
/// program's iteration is rarely as long.
const EVIDENCE: usize = 1024;
/// The approximate minimum number of nodes in a flush: few enough to plan quickly, enough to keep a GPU busy.
const CUT: usize = 1024;
/// After this many cuts a period counts as reliable.
const SETTLED: u32 = 8;

/// Finds the period of the calls between automatic flushes, and whether it continues.
pub(super) struct Periods {
    /// A hash for each call; at most twice as many as are used.
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
    /// The first of `new` calls that [`Periods::full`] needs: usually all of them, but only the last repetition of a
    /// period that has continued for long.
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
            // The history always holds the previous repetition.
            let earlier = begin.saturating_sub(period);
            if self.history[begin..] == self.history[earlier..earlier + new] {
                self.cuts = self.cuts.saturating_add(1);
                self.trim();
                return true;
            }
            if skipped {
                self.history.drain(..begin);
            }
            // This was a loop inside the program's iteration, and must not be mistaken for the iteration again.
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

    /// How many nodes each flush has while the period continues: whole repetitions, so that all flushes are equal.
    pub(super) fn cut_length(&self) -> Option<usize> {
        self.period.map(|period| period * (CUT / period).max(1))
    }

    /// Forgets the history: the program has marked where its loop begins again, or has read a value.
    pub(super) fn forget(&mut self) {
        self.history.clear();
        self.period = None;
    }

    fn trim(&mut self) {
        // This is rare, because it moves all remaining entries.
        if self.history.len() > 2 * HISTORY {
            let old = self.history.len() - HISTORY;
            self.history.drain(..old);
        }
    }
}

/// The smallest period that holds for the last calls, for at least `evidence` of them and at least two repetitions.
fn smallest_period(calls: &[u64], evidence: usize) -> Option<usize> {
    // The failure function of Knuth, Morris and Pratt, read from the end: among the last `i` calls, the longest proper
    // prefix that is also a suffix. The rest is the smallest period.
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
        // Earlier calls do not matter if the history still holds enough repetitions.
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
        // One call in 2,049 differs: the loop inside the iteration is not the iteration.
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
