//! Reads files, rejects everything that is not a file, and replaces files in one step.
//!
//! One rule holds for all that wgrad writes. It writes a new file next to the old one, under a name that contains the process,
//! and syncs it; one rename makes it valid; it syncs the folder; then it removes the old files. Several files that belong
//! together get new names first, and the rename of the file that lists them makes all of them valid. If the process is killed
//! before that, the next process that replaces the file removes the leftovers. A folder is replaced in the same way. Event files and the file of a
//! `CsvLogger` grow instead: each of their records is complete or the last.

use std::fs::{self, File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The metadata of the file at `path`. Rejects everything but a file: opening a pipe would wait for its other end, and
/// replacing a device would turn it into a file.
pub(crate) fn look(path: &Path) -> io::Result<Metadata> {
    let found = fs::metadata(path)?;
    if found.is_file() {
        return Ok(found);
    }
    let what = if found.is_dir() { "a folder" } else { "a pipe or a device" };
    let words = format!("it is {what} and not a file");
    Err(io::Error::new(io::ErrorKind::InvalidInput, words))
}

/// The contents of the file at `path`.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    look(path).and_then(|_| fs::read(path))
}

/// Writes a file next to `path` and renames it to `path` once it is complete, so that no reader sees half of it. Even a power
/// cut leaves the old one or the new one.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let mut replacement = Replacement::begin(path)?;
    write(replacement.file())?;
    replacement.finish()
}

/// Completes several files that belong together: `parts` get their names, which no file lists yet, and then `last`, which lists
/// them. Until then the old files are valid; afterwards the caller may remove them.
pub(crate) fn finish_all(parts: Vec<Replacement>, last: Replacement) -> io::Result<()> {
    let folder = folder_of(&last.path).to_path_buf();
    let mut named = Vec::with_capacity(parts.len());
    let finish = |named: &mut Vec<PathBuf>| {
        for part in parts {
            let path = part.path.clone();
            part.name()?;
            named.push(path);
        }
        // The names must be on the disk before the file that lists them.
        sync_folder(&folder)?;
        last.finish()
    };
    finish(&mut named).inspect_err(|_| {
        named.iter().for_each(|path| drop(fs::remove_file(path)));
    })
}

/// Gives the file `source` the name `path` too, and replaces a file of that name. The name is not synced yet.
pub(crate) fn replace_by_link(path: &Path, source: &Path) -> io::Result<()> {
    let temporary = Owner::this().file(path);
    fs::hard_link(source, &temporary)?;
    fs::rename(&temporary, path).inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// A new name for a file that is to become `path`, under which the next process finds the file if this one is killed.
pub(crate) fn temporary_for(path: &Path) -> PathBuf {
    Owner::this().file(path)
}

/// Gives a file a temporary name, under which the next process finds and removes it if this one is killed.
pub(crate) fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let temporary = Owner::this().file(path);
    fs::rename(path, &temporary)?;
    Ok(temporary)
}

/// The folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Makes a folder and its parent folders, and syncs them, so that they survive a power cut.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    // A name without a folder is in the current folder.
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let parent = folder_of(path);
    if parent != path {
        make_folder(parent)?;
    }
    match fs::create_dir(path) {
        // Another process made it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_folder(parent),
    }
}

/// Syncs the names in a folder to the disk. On Windows a rename does so itself, and a folder cannot be opened.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(path)?.sync_all() {
        // Some network file systems have no such call.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

/// Fills a new folder next to `path` with `write`, and then gives it this name. A folder that has it is removed after that. Where
/// the system can exchange two names (Linux and macOS), there is no moment without the old folder or the new one.
#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
pub(crate) fn replace_folder(
    path: &Path,
    write: impl FnOnce(&Path) -> crate::error::Result<()>,
) -> crate::error::Result<()> {
    let at = |error| crate::error::Error::io(path, error);
    make_folder(folder_of(path)).map_err(at)?;
    remove_leftovers(path);
    let temporary = TemporaryFolder(Owner::this().file(path));
    fs::create_dir(&temporary.0).map_err(at)?;
    write(&temporary.0)?;
    let name = || {
        sync_folder(&temporary.0)?;
        match exchange(&temporary.0, path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::rename(&temporary.0, path)?
            }
            Err(_) => {
                let old = TemporaryFolder(Owner::this().file(path));
                fs::rename(path, &old.0)?;
                fs::rename(&temporary.0, path).inspect_err(|_| drop(fs::rename(&old.0, path)))?;
            }
            Ok(()) => {}
        }
        sync_folder(folder_of(path))
    };
    name().map_err(at)
}

/// A folder that is removed: one that is not complete, or that another has replaced.
#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
struct TemporaryFolder(PathBuf);

#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Exchanges the names of two folders.
#[cfg(all(
    feature = "saved-model",
    any(target_os = "linux", target_os = "android", target_os = "macos")
))]
fn exchange(one: &Path, two: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, two, RenameFlags::EXCHANGE)?)
}

/// Other systems cannot: then one name follows the other.
#[cfg(all(
    feature = "saved-model",
    not(any(
        target_os = "linux",
        target_os = "android",
        target_os = "macos",
        target_family = "wasm"
    ))
))]
fn exchange(_: &Path, two: &Path) -> io::Result<()> {
    fs::symlink_metadata(two)?;
    Err(io::ErrorKind::Unsupported.into())
}

/// A file that is being written next to the one that it will replace. It is removed if it is dropped unfinished.
pub(crate) struct Replacement {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
    finished: bool,
}

impl Replacement {
    pub(crate) fn begin(path: &Path) -> io::Result<Self> {
        match look(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => remove_leftovers(path),
        }
        let temporary = Owner::this().file(path);
        let file = File::create_new(&temporary)?;
        Ok(Replacement { path: path.to_path_buf(), temporary, file, finished: false })
    }

    /// The file that another replacement of the same path writes at this time, if there is one.
    pub(crate) fn other(&self) -> Option<PathBuf> {
        let mut found = unfinished_of(&self.path).map(|found| found.file);
        found.find(|path| path.file_name() != self.temporary.file_name())
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Where it is written.
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Gives the file its name, and syncs its bytes and its name to the disk.
    pub(crate) fn finish(self) -> io::Result<()> {
        let folder = folder_of(&self.path).to_path_buf();
        self.name()?;
        sync_folder(&folder)
    }

    /// Gives the file its name, which is not synced yet.
    fn name(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// The process that writes a file: its number, and the system on which that number counts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    /// Identifies the running system and the processes that see each other there; 0 if the system does not report it.
    home: u64,
    process: u32,
}

/// After this time, a file of a process that this one cannot see counts as a leftover: no file takes that long to write.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);

impl Owner {
    fn this() -> Self {
        static HOME: OnceLock<u64> = OnceLock::new();
        Owner {
            home: *HOME.get_or_init(|| process_space().unwrap_or(0)),
            process: std::process::id(),
        }
    }

    /// The name of a new file that will replace the one at `path`: `NAME.HOME-PROCESS-COUNT.tmp`.
    fn file(&self, path: &Path) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{:016x}-{}-{}.tmp", self.home, self.process, count));
        path.with_file_name(name)
    }

    /// The owner of this file, if [`Owner::file`] made its name, and the name of the file that it replaces.
    fn parse(file: &str) -> Option<(&str, Self)> {
        let (name, middle) = file.strip_suffix(".tmp")?.rsplit_once('.')?;
        let mut parts = middle.split('-');
        let (home, process, count) = (parts.next()?, parts.next()?, parts.next()?);
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if parts.next().is_some() || home.len() != 16 || !digits(process) || !digits(count) {
            return None;
        }
        let home = u64::from_str_radix(home, 16).ok()?;
        Some((name, Owner { home, process: process.parse().ok()? }))
    }

    /// Whether the process has certainly ended; `found` is its file.
    fn is_gone(&self, found: &Metadata) -> bool {
        let this = Owner::this();
        if this.home == 0 || self.home != this.home {
            let age = found.modified().ok().and_then(|then| then.elapsed().ok());
            return age.is_some_and(|age| age > OLD);
        }
        // A system that hides other users' processes still shows our own.
        owns(found) && !Path::new("/proc").join(self.process.to_string()).exists()
    }
}

/// Identifies the running system and the PID namespace of this process, where the system reports them (Linux).
fn process_space() -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    fs::read("/proc/sys/kernel/random/boot_id").ok()?.hash(&mut hasher);
    fs::read_link("/proc/self/ns/pid").ok()?.hash(&mut hasher);
    Some(hasher.finish())
}

/// Whether the user of this process owns the file.
#[cfg(unix)]
fn owns(found: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|this| this.uid() == found.uid())
}

/// Whether the user of this process owns the file; only Unix reports it.
#[cfg(not(unix))]
fn owns(_: &Metadata) -> bool {
    false
}

/// A file that a replacement writes, or that a killed process left.
struct Unfinished {
    file: PathBuf,
    /// The name of the file that it replaces.
    name: String,
    owner: Owner,
}

impl Unfinished {
    fn is_leftover(&self) -> bool {
        // This does not follow links.
        fs::symlink_metadata(&self.file)
            .is_ok_and(|found| (found.is_file() || found.is_dir()) && self.owner.is_gone(&found))
    }
}

/// The files that replacements write in a folder, or that killed processes left there.
fn unfinished(folder: &Path) -> impl Iterator<Item = Unfinished> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let file = entry.file_name();
        let (name, owner) = Owner::parse(file.to_str()?)?;
        Some(Unfinished { file: entry.path(), name: name.to_string(), owner })
    })
}

/// Those for the file at `path`.
fn unfinished_of(path: &Path) -> impl Iterator<Item = Unfinished> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    unfinished(folder_of(path)).filter(move |found| !name.is_empty() && found.name == name)
}

/// Whether a process that may still run is writing a new file for `path`.
pub(crate) fn is_being_replaced(path: &Path) -> bool {
    unfinished_of(path).any(|found| !found.is_leftover())
}

/// The leftovers of killed processes in a folder: their files, and the files that these were to replace.
pub(crate) fn leftovers(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let left = unfinished(folder).filter(Unfinished::is_leftover);
    left.map(|found| (found.file, folder.join(found.name))).collect()
}

/// Removes the files that killed processes left next to `path` while they were replacing it.
fn remove_leftovers(path: &Path) {
    for left in unfinished_of(path).filter(Unfinished::is_leftover) {
        // Another process may have removed it.
        let _ = match left.file.is_dir() {
            true => fs::remove_dir_all(left.file),
            false => fs::remove_file(left.file),
        };
    }
}

#[cfg(test)]
#[path = "replacement_tests.rs"]
pub(crate) mod tests;
