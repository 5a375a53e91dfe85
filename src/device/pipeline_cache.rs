//! Stores the driver's compiled kernels on disk for the next process, if the backend exposes them (Vulkan).
//!
//! Nothing depends on it: the cache ignores a file that is missing, damaged or from another driver, and warns about a
//! folder that it cannot write to. `WGRAD_CACHE=off` disables the cache; any other value is the path of its folder.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{platform, trusted};
use crate::files;
use crate::files::cache_folder;

pub(super) struct PipelineCache {
    raw: wgpu::PipelineCache,
    key: String,
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    /// The length of the data in the file.
    checksum: u64,
    /// False after a failed write: the cache does not try again.
    writable: bool,
}

/// A larger file is ignored and replaced: caches only grow, and retain kernels that are not used any more.
const LARGEST: u64 = 256 << 20;

/// A driver without cached data returns only a header (Vulkan's has 32 bytes, wgpu's before it 64).
const HEADERS: usize = 96;

impl PipelineCache {
    pub(super) fn open(device: &wgpu::Device, adapter: &wgpu::AdapterInfo) -> Option<Self> {
        if !platform::HAS_FILES || !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let env = |name: &str| std::env::var_os(name);
        if cache_folder::is_off(&env) || super::kernels_are_rewritten() {
            return None;
        }
        let key = wgpu::util::pipeline_cache_key(adapter)?;
        let path = cache_folder::cache(&env)?.join("pipelines").join(&key);
        let kept = match load(&path, &key) {
            Ok(kept) => kept,
            Err(error) => {
                log::warn!("{}: {error}; kernels are compiled again.", path.display());
                None
            }
        };
        let raw = trusted::create_pipeline_cache(device, kept.as_deref());
        let state = State { checksum: kept.map_or(0, |data| checksum(&data)), writable: true };
        Some(PipelineCache { raw, key, path, state: Mutex::new(state) })
    }

    pub(super) fn raw(&self) -> &wgpu::PipelineCache {
        &self.raw
    }

    /// Writes the file again if the driver has more data than the file holds.
    pub(super) fn save(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.writable {
            return;
        }
        let Some(data) = self.raw.get_data().filter(|data| data.len() > HEADERS) else { return };
        let checksum = checksum(&data);
        if checksum == state.checksum {
            return;
        }
        match store(&self.path, &self.key, &data) {
            Ok(()) => state.checksum = checksum,
            Err(error) => {
                state.writable = false;
                log::warn!(
                    "{}: {error}; compiled kernels are not kept. Set WGRAD_CACHE to a folder that can be \
                     written, or to `off`.",
                    self.path.display()
                );
            }
        }
    }
}

/// The data in the file, if there is one.
fn load(path: &Path, key: &str) -> io::Result<Option<Vec<u8>>> {
    match files::look(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(file) if file.len() > LARGEST => return Err(broken("larger than a cache should be")),
        Ok(_) => {}
    }
    unpack(files::read(path)?, key).map(Some)
}

/// Replaces the file in one step, so that another process never reads half of it.
fn store(path: &Path, key: &str, data: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        files::make_folder(folder)?;
    }
    files::replace(path, |file| file.write_all(&pack(key, data)))
}

/// `wgradpip`, the version, the key's length, the checksum; then the key and the data. Little-endian.
const MAGIC: &[u8; 8] = b"wgradpip";
const VERSION: u32 = 1;
const FIXED: usize = 24;

fn pack(key: &str, data: &[u8]) -> Vec<u8> {
    let mut body = key.as_bytes().to_vec();
    body.extend_from_slice(data);
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(&(key.len() as u32).to_le_bytes());
    file.extend_from_slice(&checksum(&body).to_le_bytes());
    file.extend_from_slice(&body);
    file
}

fn unpack(mut file: Vec<u8>, key: &str) -> io::Result<Vec<u8>> {
    let header = file.get(..FIXED).ok_or_else(|| broken("too short"))?;
    if &header[..8] != MAGIC {
        return Err(broken("not a cache of wgrad"));
    }
    if header[8..12] != VERSION.to_le_bytes() {
        return Err(broken("of another version"));
    }
    let body = &file[FIXED..];
    if header[16..24] != checksum(body).to_le_bytes() {
        return Err(broken("damaged"));
    }
    if header[12..16] != (key.len() as u32).to_le_bytes() || !body.starts_with(key.as_bytes()) {
        return Err(broken("of another adapter"));
    }
    file.drain(..FIXED + key.len());
    Ok(file)
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the file is {what}"))
}

/// FNV-1a over words of eight bytes and what is left: fast, and enough against accidents.
fn checksum(data: &[u8]) -> u64 {
    let words = data.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.chain([data.len() as u64]).fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        mixed ^ (mixed >> 29)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fresh_id;

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let name = format!("wgrad-pipelines-{}-{}", std::process::id(), fresh_id());
            Folder(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_stored_is_loaded() {
        let folder = Folder::new();
        let path = folder.0.join("deeper").join("adapter_1_2");
        assert_eq!(load(&path, "key").unwrap(), None);
        let data: Vec<u8> = (0..1003u32).map(|i| (i * i) as u8).collect();
        store(&path, "key", &data).unwrap();
        assert_eq!(load(&path, "key").unwrap(), Some(data.clone()));
        store(&path, "key", &data[..7]).unwrap();
        assert_eq!(load(&path, "key").unwrap(), Some(data[..7].to_vec()));
        // No other files remain.
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        // A pipe neither blocks the read nor is replaced.
        #[cfg(unix)]
        {
            let pipe = folder.0.join("pipe");
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            let expected = "it is a pipe or a device and not a file";
            assert_eq!(load(&pipe, "key").unwrap_err().to_string(), expected);
            assert_eq!(store(&pipe, "key", &data).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_file_that_does_not_fit_is_refused() {
        let good = pack("key", b"some bytes of a driver");
        assert_eq!(unpack(good.clone(), "key").unwrap(), b"some bytes of a driver");
        let refused = |file: Vec<u8>, key: &str| unpack(file, key).unwrap_err().to_string();
        assert_eq!(refused(vec![], "key"), "the file is too short");
        assert_eq!(refused(good[..20].to_vec(), "key"), "the file is too short");
        assert_eq!(refused(good[..30].to_vec(), "key"), "the file is damaged");
        assert_eq!(refused(vec![7; 100], "key"), "the file is not a cache of wgrad");
        assert_eq!(refused(good.clone(), "other"), "the file is of another adapter");
        assert_eq!(refused(good.clone(), "ke"), "the file is of another adapter");
        let mut newer = good.clone();
        newer[8] = 2;
        assert_eq!(refused(newer, "key"), "the file is of another version");
        // Any flipped bit after the header is detected.
        for at in FIXED..good.len() {
            let mut flipped = good.clone();
            flipped[at] ^= 0x10;
            assert_eq!(refused(flipped, "key"), "the file is damaged", "byte {at}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error() {
        let folder = Folder::new();
        std::fs::write(&folder.0, b"a file").unwrap();
        assert!(store(&folder.0.join("pipelines").join("key"), "key", b"data").is_err());
        std::fs::remove_file(&folder.0).unwrap();
    }
}
