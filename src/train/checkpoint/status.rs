//! [`RestoreStatus`]: how well a restored checkpoint matched a program.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::proto::VALUE;
use super::source::Source;
use super::{Part, Root, SAVE_COUNTER};
use crate::error::{Error, Result, message};
use crate::warnings::warn_user;

/// The result of restoring a checkpoint: the values that were used, and the parts for which it has no value.
///
/// As in TensorFlow, a part for which the checkpoint has no value stays unchanged, and the checkpoint's unused values are kept
/// for later. The methods below define which differences are errors; each first restores parts that have been created since.
/// If none is called, the log warns of the differences; without a logger, the warning goes to standard error.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Variable, train::Checkpoint};
/// # let folder = std::env::temp_dir().join(format!("wgrad-status-{}", std::process::id()));
/// let (a, b) = (Variable::new(tf::constant(1.0)?), Variable::new(tf::constant(2.0)?));
/// let path = Checkpoint::new().with("a", &a).with("b", &b).save(folder.join("ckpt"))?;
/// a.assign(0.0)?;
/// Checkpoint::new().with("a", &a).restore(&path)?.expect_partial();
/// assert_eq!(a.read().item::<f32>()?, 1.0);
/// let error = Checkpoint::new().with("a", &a).restore(&path)?.assert_consumed().unwrap_err();
/// assert!(error.to_string().contains("nothing here uses 'b/.ATTRIBUTES/VARIABLE_VALUE'"), "{error}");
/// # std::fs::remove_dir_all(folder).expect("it was written");
/// # Ok(())
/// # }
/// ```
#[must_use = "it says whether the checkpoint fits: call `assert_consumed`, or `expect_partial` where it need not"]
pub struct RestoreStatus<'a> {
    parts: Vec<Part<'a>>,
    with_counter: bool,
    /// None if there was no checkpoint.
    source: Option<Arc<Source>>,
    restored: HashSet<String>,
    unused: Vec<String>,
    missing: Vec<String>,
    reported: bool,
}

impl std::fmt::Debug for RestoreStatus<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RestoreStatus")
            .field("unused", &self.unused)
            .field("missing", &self.missing)
            .finish_non_exhaustive()
    }
}

impl<'a> RestoreStatus<'a> {
    pub(super) fn new(parts: Vec<Part<'a>>, with_counter: bool, source: Option<Source>) -> Self {
        RestoreStatus {
            parts,
            with_counter,
            reported: source.is_none(),
            source: source.map(Arc::new),
            restored: HashSet::new(),
            unused: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Restores all parts that did not have their values.
    pub(super) fn take(&mut self, counter: &std::sync::atomic::AtomicU64) -> Result<()> {
        let Some(source) = self.source.clone() else { return Ok(()) };
        let root = Root { parts: &self.parts, counter: self.with_counter.then_some(counter) };
        let matching = source.restore(&root, &self.restored)?;
        self.restored.extend(matching.values.into_iter().map(|(name, _)| name));
        (self.unused, self.missing) = (matching.unused, matching.missing);
        // `write` does not store the number of saves, and `read` does not use one.
        self.missing.retain(|name| name != SAVE_COUNTER);
        let counts = format!("{SAVE_COUNTER}/.ATTRIBUTES/{VALUE}");
        self.unused.retain(|key| *key != counts);
        Ok(())
    }

    fn ask(&mut self, call: &str) -> Result<()> {
        self.reported = true;
        let Some(source) = self.source.clone() else {
            return Err(Error::Checkpoint(message!(
                "{call}: there was no checkpoint to restore. Look with latest_checkpoint whether there is one."
            )));
        };
        let nobody = std::sync::atomic::AtomicU64::new(0);
        // The number of saves has been used.
        self.take(&nobody).map_err(|error| source.name(error))
    }

    /// Checks that every value of the checkpoint was used and that every part had one.
    ///
    /// # Errors
    /// [`Error::Checkpoint`], which lists unused values or parts without a value.
    pub fn assert_consumed(mut self) -> Result<()> {
        self.ask("assert_consumed")?;
        self.check_missing("assert_consumed")?;
        if self.unused.is_empty() {
            return Ok(());
        }
        Err(Error::Checkpoint(message!(
            "assert_consumed: {} holds {} values, of which nothing here uses {}. Add the part that they belong to, \
             or call expect_partial if they are to be left out.",
            self.name().display(),
            self.restored.len() + self.unused.len(),
            list(&self.unused)
        )))
    }

    /// Checks that every part of the program had a value. The checkpoint may contain more.
    ///
    /// # Errors
    /// [`Error::Checkpoint`], which lists the parts without a value.
    pub fn assert_existing_objects_matched(mut self) -> Result<()> {
        self.ask("assert_existing_objects_matched")?;
        self.check_missing("assert_existing_objects_matched")
    }

    /// Checks that at least one part had a value: a checkpoint of another program has none.
    ///
    /// # Errors
    /// [`Error::Checkpoint`], which lists the contents of the checkpoint.
    pub fn assert_nontrivial_match(mut self) -> Result<()> {
        self.ask("assert_nontrivial_match")?;
        let own = [SAVE_COUNTER, super::GLOBAL_GENERATOR];
        if self.restored.iter().any(|name| !own.contains(&&**name)) {
            return Ok(());
        }
        Err(Error::Checkpoint(message!(
            "assert_nontrivial_match: no part of the program is in {}, which holds {}. Give the parts the names that they \
             had when it was saved.",
            self.name().display(),
            list(&self.unused)
        )))
    }

    /// Declares that the checkpoint and the program may differ, so that the log does not warn.
    pub fn expect_partial(mut self) {
        self.reported = true;
    }

    /// The values of the checkpoint that no part has used, by their names there.
    pub fn unused(&self) -> &[String] {
        &self.unused
    }

    /// The parts for which the checkpoint has no value.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    fn name(&self) -> PathBuf {
        self.source.as_ref().map_or_else(PathBuf::new, |source| source.name.clone())
    }

    fn check_missing(&self, call: &str) -> Result<()> {
        if self.missing.is_empty() {
            return Ok(());
        }
        Err(Error::Checkpoint(message!(
            "{call}: {} has no value for {}; it holds {} that nothing here uses. Take a checkpoint of the same \
             parts, or leave these as they are with expect_partial.",
            self.name().display(),
            list(&self.missing),
            list(&self.unused)
        )))
    }
}

impl Drop for RestoreStatus<'_> {
    fn drop(&mut self) {
        if self.reported || (self.unused.is_empty() && self.missing.is_empty()) {
            return;
        }
        let own = [SAVE_COUNTER, super::GLOBAL_GENERATOR];
        let nothing = !self.restored.iter().any(|name| !own.contains(&&**name));
        let text = format!(
            "{} was restored {}: it has no value for {}, and nothing here used {}. assert_consumed makes this an \
             error, and expect_partial silences it.",
            self.name().display(),
            if nothing { "to no part of the program" } else { "in part" },
            list(&self.missing),
            list(&self.unused)
        );
        // Silently wrong numbers are worse than an unexpected log line.
        warn_user!("{text}");
    }
}

/// A few names for a message.
fn list(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(6).map(|name| format!("'{name}'")).collect();
    match (names.len(), names.len().saturating_sub(6)) {
        (0, _) => "nothing".to_string(),
        (_, 0) => shown.join(", "),
        (_, more) => format!("{} and {more} more", shown.join(", ")),
    }
}
