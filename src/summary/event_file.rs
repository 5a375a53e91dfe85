//! [`EventFile`]: an event file that grows by whole records.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::batch::{first_record, wall_time};
use crate::error::{Error, Result, message};

/// The maximum number of bytes that are kept when writing fails.
const MOST_UNWRITTEN: usize = 64 << 20;

pub(super) struct EventFile {
    folder: PathBuf,
    suffix: String,
    path: PathBuf,
    file: File,
    /// The bytes of whole records in the file.
    whole: u64,
    /// Records that are not in the file.
    unwritten: Vec<u8>,
    /// The file may end within a record, and must not grow.
    broken: bool,
}

impl EventFile {
    /// A new file in `folder`.
    pub(super) fn create(folder: &Path, suffix: &str) -> Result<Self> {
        if suffix.contains(['/', '\\']) {
            return Err(Error::Data(message!(
                "create_file_writer: filename_suffix is \"{suffix}\"; it is the end of a file name and must not name \
                 a folder."
            )));
        }
        let (path, file) = begin(folder, suffix)?;
        let (folder, suffix) = (folder.to_path_buf(), suffix.to_string());
        let unwritten = first_record(wall_time());
        let mut file = EventFile { folder, suffix, path, file, whole: 0, unwritten, broken: false };
        file.write()?;
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Records to be written.
    pub(super) fn records(&mut self) -> &mut Vec<u8> {
        &mut self.unwritten
    }

    /// Appends the records. If writing fails, the incomplete rest is cut off, and written again the
    /// next time.
    pub(super) fn write(&mut self) -> Result<()> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        if self.broken || self.removed() {
            let (path, file) = begin(&self.folder, &self.suffix)?;
            (self.path, self.file, self.whole, self.broken) = (path, file, 0, false);
            let rest = std::mem::replace(&mut self.unwritten, first_record(wall_time()));
            self.unwritten.extend(rest);
        }
        match self.file.write_all(&self.unwritten) {
            Ok(()) => {
                self.whole += self.unwritten.len() as u64;
                self.unwritten.clear();
                // Images may have made it large.
                self.unwritten.shrink_to(1 << 20);
                Ok(())
            }
            Err(error) => {
                // Half a record in the middle would end every reading there.
                self.broken = self.file.set_len(self.whole).is_err();
                if self.unwritten.len() > MOST_UNWRITTEN {
                    self.unwritten = Vec::new();
                    let (path, most) = (self.path.display(), MOST_UNWRITTEN >> 20);
                    return Err(Error::Data(message!(
                        "summary: {path}: more than {most} MiB could not be written ({error}), and these summaries are lost. Make room on the disk."
                    )));
                }
                Err(Error::io(&self.path, error))
            }
        }
    }

    /// Whether the file was removed while it was written; it would then grow without a name.
    fn removed(&self) -> bool {
        self.whole > 0 && fs::metadata(&self.path).is_err()
    }
}

/// Creates the file with the next free name.
fn begin(folder: &Path, suffix: &str) -> Result<(PathBuf, File)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    crate::files::make_folder(folder).map_err(|error| Error::io(folder, error))?;
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (time, process) = (wall_time() as u64, std::process::id());
        let name = format!("events.out.tfevents.{time:010}.{}.{process}.{number}{suffix}", host());
        let path = folder.join(name);
        match OpenOptions::new().append(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            // A process with the same number, in another container.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io(&path, error)),
        }
    }
}

/// The machine's name, as far as a file name permits.
fn host() -> String {
    let named = ["HOSTNAME", "COMPUTERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok().or(named);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
    let name: String = name.as_deref().unwrap_or("").trim().chars().map(plain).take(64).collect();
    if name.is_empty() { "localhost".to_string() } else { name }
}
