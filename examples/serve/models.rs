//! The models: for each, the newest version of its folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use wgrad::saved_model::{SavedFunction, SavedModel};

use crate::batches::{Batching, Runner};

/// A model by name, whose folder has a folder for each version: `models/digits/1`, `models/digits/2`.
pub struct Served {
    pub name: String,
    folder: PathBuf,
    batching: Batching,
    current: RwLock<Option<Arc<Version>>>,
    /// Why the newest version could not be loaded, if it could not: the one before it serves on.
    failure: Mutex<Option<Failure>>,
}

struct Failure {
    number: u64,
    why: String,
    /// How often it was tried.
    times: u32,
}

/// A version that cannot be loaded is tried so often: its folder may still be in the course of being copied.
const TRIES: u32 = 20;

/// A loaded version. Requests hold it until they are answered, also after a newer one has replaced it.
pub struct Version {
    pub number: u64,
    functions: HashMap<String, SavedFunction>,
    pub runner: Runner,
}

impl Version {
    fn load(folder: &Path, number: u64, batching: Batching) -> Result<Self, String> {
        let model = wgrad::saved_model::load(folder.join(number.to_string()));
        let model: SavedModel = model.map_err(|error| error.to_string())?;
        let names: Vec<String> = model.signatures().map(String::from).collect();
        let function = |name: String| {
            let function = model.signature(&name).map_err(|error| error.to_string())?;
            Ok((name, function))
        };
        let functions = names.into_iter().map(function).collect::<Result<_, String>>()?;
        let runner = Runner::new(batching).map_err(|error| error.to_string())?;
        Ok(Version { number, functions, runner })
    }

    /// The function of a signature; or what there is instead.
    pub fn function(&self, name: &str) -> Result<&SavedFunction, String> {
        self.functions.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.signatures().map(|(name, _)| name).collect();
            format!("the model has no signature \"{name}\"; it has: {}", names.join(", "))
        })
    }

    pub fn signatures(&self) -> impl Iterator<Item = (&str, &SavedFunction)> {
        let mut all: Vec<_> = self.functions.iter().map(|(name, f)| (&name[..], f)).collect();
        all.sort_by_key(|(name, _)| *name);
        all.into_iter()
    }
}

impl Served {
    pub fn new(name: String, folder: PathBuf, batching: Batching) -> Self {
        Served { name, folder, batching, current: RwLock::default(), failure: Mutex::default() }
    }

    /// The version that answers.
    pub fn current(&self) -> Option<Arc<Version>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why a version could not be loaded.
    pub fn failure(&self) -> Option<(u64, String)> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().map(|failure| (failure.number, failure.why.clone()))
    }

    /// Loads the newest version if it is another one than the present; returns its number. Requests go on meanwhile.
    pub fn refresh(&self) -> Option<u64> {
        let newest = self.newest()?;
        let known = self.current().map(|version| version.number);
        let times = {
            let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure
                .as_ref()
                .filter(|failed| failed.number == newest)
                .map_or(0, |failed| failed.times)
        };
        if Some(newest) == known || times >= TRIES {
            return None;
        }
        let loaded = Version::load(&self.folder, newest, self.batching);
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        match loaded {
            Ok(version) => {
                *failure = None;
                *self.current.write().unwrap_or_else(PoisonError::into_inner) =
                    Some(Arc::new(version));
                Some(newest)
            }
            Err(why) => {
                if times == 0 {
                    eprintln!("error: version {newest} of {} cannot be loaded: {why}", self.name);
                }
                *failure = Some(Failure { number: newest, why, times: times + 1 });
                None
            }
        }
    }

    /// The largest number that is the name of a model's folder.
    fn newest(&self) -> Option<u64> {
        let entries = std::fs::read_dir(&self.folder).ok()?;
        let numbers = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            let number = entry.file_name().to_str()?.parse().ok()?;
            entry.path().join("saved_model.pb").is_file().then_some(number)
        });
        numbers.max()
    }
}
