//! [`CsvLogger`]: writes the logs of each epoch into a file.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{BatchLogs, Callback, EpochLogs, Logs, Run};
use crate::error::{Error, Result};

/// Writes a line for each epoch: its number, counted from 0, and the values of the logs, sorted by name. A value that an epoch
/// lacks, such as one of a validation, is `NA`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, keras::{CompileOptions, FitOptions, Model, Sequential, layers::Dense}};
/// use wgrad::keras::callbacks::CsvLogger;
/// # let path = std::env::temp_dir().join(format!("wgrad-log-{}.csv", std::process::id()));
/// let model = Sequential::new().add(Dense::new(1));
/// model.compile("sgd", "mse", CompileOptions::new())?;
/// let (x, y) = (Tensor::ones([64, 2])?, Tensor::zeros([64, 1])?);
/// model.fit((&x, &y), FitOptions::new().epochs(2).callback(CsvLogger::new(&path)))?;
/// let text = std::fs::read_to_string(&path).expect("it was written");
/// assert!(text.starts_with("epoch,loss,val_loss\n0,"), "{text}");
/// assert_eq!(text.lines().count(), 3);
/// # std::fs::remove_file(path).expect("it was written");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[doc(alias = "CSVLogger")]
pub struct CsvLogger {
    path: PathBuf,
    separator: String,
    append: bool,
    file: Option<File>,
    header: bool,
    names: Option<Vec<String>>,
}

impl CsvLogger {
    /// Creates a callback that writes a new file at `path` when the training begins.
    pub fn new(path: impl AsRef<Path>) -> Self {
        CsvLogger {
            path: path.as_ref().to_path_buf(),
            separator: ",".to_string(),
            append: false,
            file: None,
            header: true,
            names: None,
        }
    }

    /// Sets the separator between values. Default: `,`.
    pub fn separator(mut self, separator: &str) -> Self {
        self.separator = separator.to_string();
        self
    }

    /// Sets whether to append to an existing file.
    pub fn append(mut self, append: bool) -> Self {
        self.append = append;
        self
    }

    fn write(&mut self, line: &str) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(line.as_bytes()).map_err(|error| Error::io(&self.path, error))
    }
}

impl Callback for CsvLogger {
    fn is_for_chief(&self) -> bool {
        true
    }

    fn batch_logs(&self) -> BatchLogs {
        BatchLogs::Unused
    }

    fn epoch_logs(&self) -> EpochLogs {
        EpochLogs::Behind
    }

    fn on_train_begin(&mut self, _: &mut Run<'_>) -> Result<()> {
        let failed = |error| Error::io(&self.path, error);
        let file = match self.append {
            true => OpenOptions::new().append(true).create(true).open(&self.path),
            false => File::create(&self.path),
        };
        let file = file.map_err(failed)?;
        self.header = file.metadata().map_err(failed)?.len() == 0;
        (self.file, self.names) = (Some(file), None);
        Ok(())
    }

    fn on_epoch_end(&mut self, epoch: usize, logs: &mut Logs, _: &mut Run<'_>) -> Result<()> {
        let names = match &self.names {
            Some(names) => names.clone(),
            None => {
                let mut names: Vec<String> =
                    logs.iter().map(|(name, _)| name.to_string()).collect();
                names.sort();
                // As in Keras: the first validation may follow a later epoch.
                if !names.iter().any(|name| name.starts_with("val_")) {
                    names.extend(names.clone().iter().map(|name| format!("val_{name}")));
                }
                self.names = Some(names.clone());
                if self.header {
                    let head = [&["epoch".to_string()][..], &names].concat();
                    self.write(&(head.join(&self.separator.clone()) + "\n"))?;
                }
                names
            }
        };
        let value = |name: &String| logs.get(name).map_or("NA".to_string(), |v| v.to_string());
        let line: Vec<String> =
            std::iter::once(epoch.to_string()).chain(names.iter().map(value)).collect();
        self.write(&(line.join(&self.separator.clone()) + "\n"))
    }

    fn on_train_end(&mut self, _: &Logs, _: &mut Run<'_>) -> Result<()> {
        self.file = None;
        Ok(())
    }
}
