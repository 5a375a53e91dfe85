//! Which checkpoints a manager keeps: a function of their times, their metrics and the rules, without disk access.

use std::path::{Path, PathBuf};

/// Which metrics are better, for [`CheckpointManager::best`](super::CheckpointManager::best).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Best {
    /// Small ones, such as losses.
    Min,
    /// Large ones, such as accuracies.
    Max,
}

/// A checkpoint that the manager may delete.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kept {
    pub(super) path: PathBuf,
    /// The time when it was saved, in seconds since 1970.
    pub(super) timestamp: f64,
    /// Its metric, if the program has set one.
    pub(super) metric: Option<f64>,
}

/// The rules for keeping checkpoints.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rules {
    pub(super) max_to_keep: Option<usize>,
    pub(super) keep_checkpoint_every_n_hours: Option<f64>,
    pub(super) best: Option<Best>,
}

/// The checkpoints that may be deleted, oldest first.
#[derive(Debug, Clone)]
pub(super) struct Active {
    pub(super) kept: Vec<Kept>,
    /// The time when the last permanent checkpoint was saved.
    pub(super) last_preserved: f64,
}

impl Active {
    /// For a folder without checkpoints.
    pub(super) fn new(now: f64) -> Self {
        // As in TensorFlow: a checkpoint that is saved at once is younger.
        Active { kept: Vec::new(), last_preserved: now - 1.0 }
    }

    /// For the state that an earlier manager has left.
    pub(super) fn recovered(kept: Vec<Kept>, last_preserved: f64, now: f64) -> Self {
        // If the clock was set back, no checkpoint counts as older.
        let last_preserved = last_preserved.min(now);
        let mut active = Active { kept, last_preserved };
        active.kept.iter_mut().for_each(|kept| kept.timestamp = kept.timestamp.min(now));
        active.kept.retain(|kept| kept.timestamp > last_preserved);
        active
    }

    /// Adds the newest one. An existing one with its name is replaced.
    pub(super) fn add(&mut self, path: &Path, timestamp: f64, metric: Option<f64>) {
        self.kept.retain(|kept| kept.path != path);
        self.kept.push(Kept { path: path.to_path_buf(), timestamp, metric });
    }

    /// Removes the obsolete ones, and returns those of them that should be deleted; the others are preserved permanently.
    pub(super) fn sweep(&mut self, rules: &Rules) -> Vec<Kept> {
        let Some(most) = rules.max_to_keep else { return Vec::new() };
        let mut ranks: Vec<usize> = (0..self.kept.len()).collect();
        match rules.best {
            None => ranks.reverse(),
            Some(best) => ranks.sort_by(|a, b| {
                let (x, y) = (&self.kept[*a], &self.kept[*b]);
                goodness(y, best).total_cmp(&goodness(x, best)).then(b.cmp(a))
            }),
        }
        // The newest always stays, because a program continues from it.
        let newest = self.kept.len().saturating_sub(1);
        let mut surplus: Vec<usize> =
            ranks.into_iter().skip(most).filter(|at| *at != newest).collect();
        surplus.sort_unstable();
        let mut deleted = Vec::new();
        for at in &surplus {
            let kept = &self.kept[*at];
            match rules.keep_checkpoint_every_n_hours.filter(|hours| *hours > 0.0) {
                Some(hours) if kept.timestamp - hours * 3600.0 >= self.last_preserved => {
                    self.last_preserved = kept.timestamp;
                }
                _ => deleted.push(kept.clone()),
            }
        }
        let mut at = 0;
        self.kept.retain(|_| {
            at += 1;
            surplus.binary_search(&(at - 1)).is_err()
        });
        deleted
    }

    /// The best one; of equals, the newest.
    pub(super) fn best(&self, best: Best) -> Option<&Kept> {
        let known = self.kept.iter().filter(|kept| goodness(kept, best) > f64::NEG_INFINITY);
        known.max_by(|a, b| goodness(a, best).total_cmp(&goodness(b, best)))
    }
}

/// Larger is better; a missing metric is the worst.
fn goodness(kept: &Kept, best: Best) -> f64 {
    match (kept.metric.filter(|metric| !metric.is_nan()), best) {
        (Some(metric), Best::Max) => metric,
        (Some(metric), Best::Min) => -metric,
        (None, _) => f64::NEG_INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    fn names(kept: &[Kept]) -> Vec<String> {
        kept.iter().map(|kept| kept.path.display().to_string()).collect()
    }

    fn texts(value: &Value) -> Vec<String> {
        value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_string()).collect()
    }

    /// `tests/data/checkpoint_manager.py` recorded TensorFlow's results.
    #[test]
    fn as_tensorflow_keeps_them() {
        let table = include_str!("../../../tests/data/checkpoint_manager.json");
        let cases: Vec<Value> = serde_json::from_str(table).unwrap();
        assert_eq!(cases.len(), 16);
        let mut steps = 0;
        for case in &cases {
            let rules = Rules {
                max_to_keep: case["max_to_keep"].as_u64().map(|most| most as usize),
                keep_checkpoint_every_n_hours: case["keep_every_n_hours"].as_f64(),
                best: None,
            };
            let mut now = case["start"].as_f64().unwrap();
            let mut active = Active::new(now);
            // The state that a manager writes, and the existing files.
            let (mut state, mut files) = (None::<Active>, BTreeSet::new());
            let saves = case["saves"].as_array().unwrap();
            for (save, after) in saves.iter().zip(case["after"].as_array().unwrap()) {
                now += save[0].as_f64().unwrap();
                match save[1].as_u64() {
                    None => {
                        active = state.clone().map_or(Active::new(now), |state| {
                            Active::recovered(state.kept, state.last_preserved, now)
                        });
                    }
                    Some(number) => {
                        let name = format!("ckpt-{number}");
                        active.add(Path::new(&name), now, None);
                        files.insert(name);
                        for deleted in names(&active.sweep(&rules)) {
                            files.remove(&deleted);
                        }
                        state = Some(active.clone());
                    }
                }
                assert_eq!(names(&active.kept), texts(&after["checkpoints"]), "{case}");
                assert_eq!(files.iter().cloned().collect::<Vec<_>>(), texts(&after["files"]));
                let preserved = state.as_ref().map(|state| state.last_preserved);
                assert_eq!(preserved, after["last_preserved"].as_f64());
                steps += 1;
            }
        }
        assert_eq!(steps, 16 * 24);
    }

    #[test]
    fn the_best_stay_and_the_newest() {
        let rules = Rules { max_to_keep: Some(2), best: Some(Best::Min), ..Rules::default() };
        let mut active = Active::new(0.0);
        let mut deleted = Vec::new();
        let losses = [None, Some(3.0), Some(1.0), Some(f64::NAN), Some(2.0), Some(2.0), Some(9.0)];
        for (at, loss) in losses.into_iter().enumerate() {
            active.add(Path::new(&at.to_string()), at as f64, loss);
            deleted.extend(names(&active.sweep(&rules)));
        }
        // 1.0, the newer 2.0, and the newest.
        assert_eq!(names(&active.kept), ["2", "5", "6"]);
        assert_eq!(deleted, ["0", "1", "3", "4"]);
        assert_eq!(active.best(Best::Min).unwrap().path, Path::new("2"));
        assert_eq!(active.best(Best::Max).unwrap().path, Path::new("6"));
    }
}
