//! A folder for one test's files, which is removed at the test's end.

use std::fs;
use std::path::PathBuf;

pub struct Folder(PathBuf);

#[allow(dead_code)] // Not every test file uses all of it.
impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("wgrad-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
