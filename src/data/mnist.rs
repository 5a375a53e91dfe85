//! Loads the MNIST digits: from files if it finds them, by a download if the program requests one, or otherwise drawn.
//!
//! It finds, reads and checks the files. It neither shuffles nor batches nor scales: the pixels stay the bytes of the
//! files, 0 for paper and 255 for ink.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::drawn_digits::draw_digits;
use super::idx::read_idx;
pub use super::images::Images;
use super::images::match_up;
use crate::error::{Error, Result, message};
use crate::files::cache_folder::{Env, folder};
use crate::support::options::options;

const TRAIN: [&str; 2] = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"];
const TEST: [&str; 2] = ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"];

/// The training and the test images, and their source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mnist {
    /// The training images; 60,000 in the real files.
    pub train: Images,
    /// The test images; 10,000 in the real files.
    pub test: Images,
    /// The source of the images. Its text is one line for display.
    pub source: Source,
}

/// The source of images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Files in this folder.
    Files(PathBuf),
    /// A download into this folder, just now.
    Downloaded(PathBuf),
    /// Drawings by [`draw_digits`], because the real images were not available.
    Drawn {
        /// The seed of the drawings.
        seed: u64,
    },
}

options! {
    /// Where [`Mnist::load`] looks for MNIST, and what it does if it does not find it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct MnistOptions {
        /// The folder with the four files, which must exist.
        dir: Option<PathBuf> as impl Into<Option<PathBuf>> = None,
        /// Whether to download missing files; works only if built with the feature `download`. If the download fails,
        /// digits are drawn, with a warning that states the reason.
        download: bool = false,
        /// The seed of drawn digits; default: 0.
        seed: u64 = 0,
        /// The number of training images to draw if none are found; default: 60,000.
        train_count: usize = 60_000,
        /// The number of test images to draw if none are found; default: 10,000.
        test_count: usize = 10_000,
    }
}

impl Mnist {
    /// Finds MNIST and reads it, or draws digits instead and logs a warning.
    ///
    /// It looks in `options.dir`; if that is not given, in the folder that the environment variable
    /// `MNIST_DIR` names; if that is not set, in the folder `mnist` of the cache, which is
    /// `$WGRAD_CACHE`, else `wgrad` in the system's cache folder (`$XDG_CACHE_HOME` or `~/.cache`, `~/Library/Caches`,
    /// `%LOCALAPPDATA%`). Each of the four files may be compressed (`.gz`) or not.
    ///
    /// ```
    /// use wgrad::data::mnist::{Mnist, MnistOptions};
    /// let mnist = Mnist::load(&MnistOptions::new().train_count(100).test_count(10))?;
    /// println!("{} images, {}", mnist.train.len(), mnist.source);
    /// assert_eq!(mnist.train.pixels.len(), mnist.train.len() * 28 * 28);
    /// # Ok::<(), wgrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] if a named folder lacks files or a file is corrupt; [`Error::Io`] if a file cannot be read. A
    /// corrupt file is always an error, and never replaced by drawn digits.
    pub fn load(options: &MnistOptions) -> Result<Self> {
        load(options, &|name| std::env::var_os(name))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Files(dir) => write!(f, "MNIST from {}", dir.display()),
            Source::Downloaded(dir) => write!(f, "MNIST, downloaded to {}", dir.display()),
            Source::Drawn { seed } => write!(f, "drawn digits in place of MNIST, seed {seed}"),
        }
    }
}

/// Values of environment variables; a parameter, so that tests need not change the real ones.
fn load(options: &MnistOptions, env: Env) -> Result<Mnist> {
    let named = match &options.dir {
        Some(dir) => Some((dir.clone(), "the folder that was given")),
        None => folder(env, "MNIST_DIR").map(|dir| (dir, "the folder that MNIST_DIR names")),
    };
    if let Some((dir, who)) = named {
        return match find(&dir) {
            Some(files) => read(&files, Source::Files(dir)),
            None => Err(lacking(&dir, who)),
        };
    }
    let cache = cache(env);
    if let Some((dir, files)) = cache.as_ref().and_then(|dir| Some((dir, find(dir)?))) {
        return read(&files, Source::Files(dir.clone()));
    }
    #[cfg(all(feature = "download", not(target_family = "wasm")))]
    if options.download {
        match fetch(cache.as_deref()) {
            Ok(dir) => {
                let files = find(dir).ok_or_else(|| lacking(dir, "the folder of the download"))?;
                return read(&files, Source::Downloaded(dir.to_path_buf()));
            }
            Err(error) => log::warn!("{error}"),
        }
    }
    Ok(draw(options, cache.as_deref()))
}

/// Downloads the files into the cache folder.
#[cfg(all(feature = "download", not(target_family = "wasm")))]
fn fetch(cache: Option<&Path>) -> Result<&Path> {
    let Some(dir) = cache else {
        return Err(Error::Data(
            "MNIST: there is no folder to download to, as neither a home nor a cache folder is set. \
             Set WGRAD_CACHE to a folder that can be written."
                .into(),
        ));
    };
    super::download::fetch(&super::collection::MNIST, dir)?;
    Ok(dir)
}

fn draw(options: &MnistOptions, cache: Option<&Path>) -> Mnist {
    let seed = options.seed;
    let place = match cache {
        Some(dir) => format!(" in {}", dir.display()),
        None => String::new(),
    };
    let remedy = match (cfg!(target_family = "wasm"), cfg!(feature = "download")) {
        (true, _) => "load them with data::idx",
        (_, true) => "let them be downloaded, or name their folder (dir or MNIST_DIR)",
        _ => "build with the feature \"download\", or name their folder (dir or MNIST_DIR)",
    };
    log::warn!(
        "MNIST was not found{place}, so digits are drawn instead with seed {seed}; for the real ones {remedy}"
    );
    Mnist {
        train: draw_digits(options.train_count, seed),
        test: draw_digits(options.test_count, !seed),
        source: Source::Drawn { seed },
    }
}

/// The folder of downloaded files.
fn cache(env: Env) -> Option<PathBuf> {
    Some(crate::files::cache_folder::cache(env)?.join("mnist"))
}

/// Images and labels of the training and of the test set.
type Files = [[PathBuf; 2]; 2];

/// Finds the four files in a folder, compressed or not, if all are there.
fn find(dir: &Path) -> Option<Files> {
    let file = |name: &str| {
        let candidates = [dir.join(name), dir.join(format!("{name}.gz"))];
        candidates.into_iter().find(|path| path.is_file())
    };
    let pair = |[images, labels]: [&str; 2]| Some([file(images)?, file(labels)?]);
    Some([pair(TRAIN)?, pair(TEST)?])
}

fn lacking(dir: &Path, who: &str) -> Error {
    let found = match std::fs::read_dir(dir) {
        Ok(entries) => {
            let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
            let mut names: Vec<_> = entries.flatten().map(name).collect();
            names.sort();
            let more = names.len().saturating_sub(8);
            names.truncate(8);
            match (names.is_empty(), more) {
                (true, _) => "it is empty".into(),
                (_, 0) => format!("it holds {}", names.join(", ")),
                _ => format!("it holds {} and {more} more", names.join(", ")),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => "it does not exist".into(),
        Err(error) => return Error::io(dir, error),
    };
    let [[a, b], [c, d]] = [TRAIN, TEST];
    Error::Data(message!(
        "{}: {who} should hold {a}, {b}, {c} and {d}, each plain or with .gz, and {found}. Put the four files there, \
         or omit the folder to have them downloaded or digits drawn.",
        dir.display()
    ))
}

fn read(files: &Files, source: Source) -> Result<Mnist> {
    let [train, test] = files;
    Ok(Mnist { train: read_images(train)?, test: read_images(test)?, source })
}

fn read_images([images, labels]: &[PathBuf; 2]) -> Result<Images> {
    let (pixels, digits) = (read_idx(images)?, read_idx(labels)?);
    match_up(pixels, digits, &images.display().to_string(), &labels.display().to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::fs;

    /// A folder for one test only, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let dir =
                std::env::temp_dir().join(format!("wgrad-mnist-{test}-{}", std::process::id()));
            fs::create_dir_all(&dir).unwrap();
            Folder(dir)
        }

        /// Makes a folder with two training images and one test image.
        fn filled(test: &str) -> Self {
            let folder = Self::new(test);
            folder.write(TRAIN[0], &[2051, 2, 28, 28], &[1; 2 * 784]);
            folder.write(TRAIN[1], &[2049, 2], &[3, 9]);
            folder.write(TEST[0], &[2051, 1, 28, 28], &[2; 784]);
            folder.write(TEST[1], &[2049, 1], &[0]);
            folder
        }

        fn write(&self, name: &str, header: &[u32], values: &[u8]) {
            let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_be_bytes()).collect();
            bytes.extend(values);
            fs::write(self.0.join(name), bytes).unwrap();
        }

        fn load(&self) -> Result<Mnist> {
            let options = MnistOptions { dir: Some(self.0.clone()), ..few() };
            load(&options, &|_| None)
        }

        fn message(&self) -> String {
            match self.load() {
                Err(Error::Data(message)) => message.to_string(),
                other => panic!("a data error was expected, and it is {other:?}"),
            }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Options that draw quickly.
    fn few() -> MnistOptions {
        MnistOptions { seed: 5, train_count: 20, test_count: 10, ..MnistOptions::default() }
    }

    fn variables<'a>(pairs: &'a [(&str, &Path)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        move |name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into())
    }

    #[test]
    fn the_four_files_are_read() {
        let folder = Folder::filled("read");
        let mnist = folder.load().unwrap();
        assert_eq!(mnist.source, Source::Files(folder.0.clone()));
        assert_eq!((mnist.train.len(), mnist.test.len()), (2, 1));
        assert_eq!(mnist.train.labels, [3, 9]);
        assert_eq!((mnist.train.image(1), mnist.test.image(0)), (&[1; 784][..], &[2; 784][..]));
        assert!(mnist.train.image(2).is_empty() && !mnist.train.is_empty());
    }

    #[cfg(feature = "gzip")]
    #[test]
    fn packed_and_plain_files_may_be_mixed() {
        use std::io::Write;
        let folder = Folder::filled("mixed");
        let plain = folder.0.join(TEST[1]);
        let packed = fs::File::create(folder.0.join("t10k-labels-idx1-ubyte.gz")).unwrap();
        let mut packed = flate2::write::GzEncoder::new(packed, flate2::Compression::fast());
        packed.write_all(&fs::read(&plain).unwrap()).unwrap();
        packed.finish().unwrap();
        fs::remove_file(plain).unwrap();
        assert_eq!(folder.load().unwrap().test.labels, [0]);
    }

    #[test]
    fn a_named_folder_without_the_files_is_an_error() {
        let folder = Folder::new("lacking");
        assert!(folder.message().contains("it is empty"));
        for i in 0..10 {
            fs::write(folder.0.join(format!("other-{i}")), "").unwrap();
        }
        let message = folder.message();
        for part in [TRAIN[0], TRAIN[1], TEST[0], TEST[1], "other-0, other-1", "and 2 more", ".gz"]
        {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
        let gone = folder.0.join("gone");
        let error = load(&few(), &variables(&[("MNIST_DIR", &gone)])).unwrap_err().to_string();
        assert!(error.contains("the folder that MNIST_DIR names"), "{error}");
        assert!(error.contains("it does not exist"), "{error}");
    }

    #[test]
    fn the_option_comes_before_the_variable_and_that_before_the_cache() {
        let (option, variable, cache) =
            (Folder::filled("option"), Folder::filled("variable"), Folder::new("cache"));
        fs::create_dir(cache.0.join("mnist")).unwrap();
        for name in TRAIN.iter().chain(&TEST) {
            fs::copy(option.0.join(name), cache.0.join("mnist").join(name)).unwrap();
        }
        let env = [("MNIST_DIR", &*variable.0), ("WGRAD_CACHE", &*cache.0)];
        let named = MnistOptions { dir: Some(option.0.clone()), ..few() };
        fn source(options: &MnistOptions, env: &[(&str, &Path)]) -> Source {
            load(options, &variables(env)).unwrap().source
        }
        assert_eq!(source(&named, &env), Source::Files(option.0.clone()));
        assert_eq!(source(&few(), &env), Source::Files(variable.0.clone()));
        assert_eq!(source(&few(), &env[1..]), Source::Files(cache.0.join("mnist")));
        // An empty variable counts as not set.
        let unset = [("MNIST_DIR", Path::new("")), env[1]];
        assert_eq!(source(&few(), &unset), Source::Files(cache.0.join("mnist")));
    }

    #[test]
    fn the_cache_folder_follows_the_system() {
        let of = |pairs: &[(&str, &Path)]| cache(&variables(pairs));
        let (a, b) = (Path::new("a"), Path::new("b"));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("WGRAD_CACHE", a), ("HOME", b)]), Some(a.join("mnist")));
        let home = of(&[("HOME", a), ("LOCALAPPDATA", b)]);
        if cfg!(windows) {
            assert_eq!(home, Some(b.join("wgrad").join("mnist")));
        } else if cfg!(target_os = "macos") {
            assert_eq!(home, Some(a.join("Library/Caches/wgrad/mnist")));
        } else {
            assert_eq!(home, Some(a.join(".cache/wgrad/mnist")));
            let both = [("XDG_CACHE_HOME", b), ("HOME", a)];
            assert_eq!(of(&both), Some(b.join("wgrad/mnist")));
        }
    }

    #[test]
    fn digits_are_drawn_when_there_is_nothing_else() {
        let mnist = load(&few(), &|_| None).unwrap();
        assert_eq!(mnist.source, Source::Drawn { seed: 5 });
        assert_eq!((mnist.train.len(), mnist.test.len()), (20, 10));
        assert_eq!(mnist.train, draw_digits(20, 5));
        assert_ne!(mnist.train.pixels[..10 * 784], mnist.test.pixels);
    }

    #[cfg(all(feature = "download", not(target_family = "wasm")))]
    #[test]
    fn a_download_needs_a_folder_and_digits_are_drawn_without_one() {
        let error = fetch(None).unwrap_err().to_string();
        assert!(error.contains("WGRAD_CACHE"), "{error}");
        let options = MnistOptions { download: true, ..few() };
        assert_eq!(load(&options, &|_| None).unwrap().source, Source::Drawn { seed: 5 });
    }

    #[test]
    fn a_broken_file_is_never_passed_over() {
        let folder = Folder::filled("broken");
        fs::write(folder.0.join(TEST[0]), [0, 0, 8, 3, 0]).unwrap();
        let message = folder.message();
        assert!(message.contains(TEST[0]) && message.contains("truncated"), "{message}");
    }

    #[test]
    fn files_that_do_not_fit_are_refused() {
        let cases: [(&str, &[u32], &[u8], &str); 6] = [
            (TRAIN[1], &[2049, 3], &[1, 2, 3], "the labels are [3], and "),
            (TRAIN[1], &[2051, 2, 1, 1], &[1, 2], "the labels are [2, 1, 1], and "),
            (TRAIN[1], &[2049, 2], &[9, 10], "label 1 is 10"),
            (TEST[0], &[2051, 1, 2, 2], &[0; 4], "[1, 2, 2], not [images, 28, 28]"),
            (TEST[0], &[2049, 784], &[0; 784], "[784], not [images, 28, 28]"),
            (TEST[0], &[2051, 0, 28, 28], &[], "not a single image"),
        ];
        for (i, (name, header, values, expected)) in cases.into_iter().enumerate() {
            let folder = Folder::filled(&format!("unfit-{i}"));
            folder.write(name, header, values);
            let message = folder.message();
            assert!(message.contains(expected) && message.contains(name), "{message}");
        }
    }

    #[test]
    fn a_source_is_one_clear_line() {
        assert_eq!(Source::Files("data".into()).to_string(), "MNIST from data");
        assert_eq!(Source::Downloaded("data".into()).to_string(), "MNIST, downloaded to data");
        let drawn = Source::Drawn { seed: 7 }.to_string();
        assert_eq!(drawn, "drawn digits in place of MNIST, seed 7");
    }
}
