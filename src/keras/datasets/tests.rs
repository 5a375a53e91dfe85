//! Small files in the formats of the real ones, in a separate folder for each test.
#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::cifar10;
use super::files::{LoadDataOptions, load_quartet};
use crate::data::collection::FASHION_MNIST;
use crate::error::{Error, Result};

/// The folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("wgrad-sets-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Folder(dir)
    }

    fn idx(&self, name: &str, header: &[u32], values: &[u8]) {
        let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.extend(values);
        fs::write(self.0.join(name), bytes).unwrap();
    }

    /// Two training images of clothes and one test image, in a subfolder.
    fn clothes(&self, dir: &str) {
        fs::create_dir_all(self.0.join(dir)).unwrap();
        self.idx(&format!("{dir}/train-images-idx3-ubyte"), &[2051, 2, 28, 28], &[5; 2 * 784]);
        self.idx(&format!("{dir}/train-labels-idx1-ubyte"), &[2049, 2], &[3, 9]);
        self.idx(&format!("{dir}/t10k-images-idx3-ubyte"), &[2051, 1, 28, 28], &[6; 784]);
        self.idx(&format!("{dir}/t10k-labels-idx1-ubyte"), &[2049, 1], &[0]);
    }

    fn options(&self, dir: &str) -> LoadDataOptions {
        LoadDataOptions::new().dir(self.0.join(dir)).download(false)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn variables<'a>(pairs: &'a [(&str, &Path)]) -> impl Fn(&str) -> Option<OsString> + 'a {
    move |name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into())
}

fn words<T>(result: Result<T>) -> String {
    match result {
        Err(Error::Data(message)) => message.to_string(),
        Err(error) => panic!("a data error was expected, and it is {error:?}"),
        Ok(_) => panic!("it must be refused"),
    }
}

#[test]
fn clothes_are_found_where_they_may_be() {
    let folder = Folder::new("clothes");
    folder.clothes("named");
    folder.clothes("cache/fashion-mnist");
    let none = LoadDataOptions::new().download(false);
    let cache = folder.0.join("cache");
    let named = folder.0.join("named");
    let by_option = load_quartet(&FASHION_MNIST, &folder.options("named"), &|_| None);
    let variable = [("FASHION_MNIST_DIR", named.as_path())];
    let by_variable = load_quartet(&FASHION_MNIST, &none, &variables(&variable));
    let by_cache =
        load_quartet(&FASHION_MNIST, &none, &variables(&[("WGRAD_CACHE", cache.as_path())]));
    for found in [by_option, by_variable, by_cache] {
        let ((x_train, y_train), (x_test, y_test)) = found.unwrap();
        assert_eq!((x_train.shape(), x_train[[1, 27, 27]]), (&[2, 28, 28][..], 5));
        assert_eq!((y_train.to_vec(), y_test.to_vec()), (vec![3, 9], vec![0]));
        assert_eq!((x_test.shape(), x_test[[0, 0, 0]]), (&[1, 28, 28][..], 6));
    }
}

#[test]
fn missing_files_are_reported() {
    let folder = Folder::new("missing");
    let names = "train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz";
    let dir = folder.0.display();
    assert_eq!(
        words(load_quartet(&FASHION_MNIST, &folder.options("."), &|_| None)),
        format!(
            "fashion_mnist: {dir}/.: the folder should hold {names}, compressed or not. Put them there, or omit the \
             folder to have them downloaded."
        )
    );
    let none = LoadDataOptions::new().download(false);
    let env = [("WGRAD_CACHE", folder.0.as_path())];
    let text = words(load_quartet(&FASHION_MNIST, &none, &variables(&env)));
    let begin =
        format!("fashion_mnist: it needs {names}, and they are not in {dir}/fashion-mnist. ");
    assert!(text.starts_with(&begin), "{text}");
    assert!(text.ends_with("name their folder with FASHION_MNIST_DIR or LoadDataOptions::dir."));
    let text = words(load_quartet(&FASHION_MNIST, &none, &|_| None));
    assert!(text.contains("and there is no cache folder. "), "{text}");
}

#[test]
fn clothes_that_do_not_fit_are_refused() {
    let folder = Folder::new("unfit");
    let cases: [(&str, &[u32], &[u8], &str); 3] = [
        ("train-labels-idx1-ubyte", &[2049, 3], &[1, 2, 3], "has [3] labels"),
        ("train-labels-idx1-ubyte", &[2049, 2], &[9, 10], "has the label 10, and they end at 9"),
        ("t10k-images-idx3-ubyte", &[2051, 1, 2, 2], &[0; 4], "[1, 2, 2], not [images, 28, 28]"),
    ];
    for (name, header, values, expected) in cases {
        folder.clothes("some");
        folder.idx(&format!("some/{name}"), header, values);
        let text = words(load_quartet(&FASHION_MNIST, &folder.options("some"), &|_| None));
        assert!(text.starts_with("fashion_mnist: ") && text.contains(expected), "{text}");
    }
}

/// Records of CIFAR-10 whose red, green and blue are 1, 2 and 3 above ten times the label; the top left red is 99.
fn records(labels: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in labels {
        bytes.push(*label);
        for plane in 1..=3 {
            bytes.extend([10 * label + plane; 1024]);
        }
        let at = bytes.len() - 3072;
        bytes[at] = 99;
    }
    bytes
}

const NAMES: [&str; 6] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
    "test_batch.bin",
];

fn load(options: &LoadDataOptions) -> Result<cifar10::Quartet> {
    cifar10::load(options, &|_| None)
}

#[test]
fn photographs_are_read_from_their_files() {
    let folder = Folder::new("cifar");
    fs::create_dir_all(folder.0.join("cifar-10-batches-bin")).unwrap();
    for (i, name) in NAMES.iter().enumerate() {
        let path = folder.0.join("cifar-10-batches-bin").join(name);
        fs::write(path, records(&[i as u8, 9])).unwrap();
    }
    let ((x_train, y_train), (x_test, y_test)) = load(&folder.options(".")).unwrap();
    assert_eq!((x_train.shape(), x_test.shape()), (&[10, 32, 32, 3][..], &[2, 32, 32, 3][..]));
    assert_eq!(y_train.column(0).to_vec(), [0, 9, 1, 9, 2, 9, 3, 9, 4, 9]);
    assert_eq!((y_test.shape(), y_test[[0, 0]]), (&[2, 1][..], 5));
    let pixel = |row: usize, column: usize| [0, 1, 2].map(|c| x_test[[0, row, column, c]]);
    assert_eq!([pixel(0, 0), pixel(31, 31)], [[99, 52, 53], [51, 52, 53]]);

    let path = folder.0.join("cifar-10-batches-bin/data_batch_3.bin");
    fs::write(&path, &records(&[1, 2])[..4000]).unwrap();
    let text = words(load(&folder.options(".")));
    assert!(text.contains("data_batch_3.bin: its 4000 bytes are not a multiple"), "{text}");
    fs::write(&path, records(&[1, 12])).unwrap();
    let text = words(load(&folder.options(".")));
    assert!(
        text.contains("data_batch_3.bin: image 1 has the label 12, and they end at 9"),
        "{text}"
    );
    fs::remove_file(&path).unwrap();
    let text = words(load(&folder.options(".")));
    assert!(text.contains("the folder should hold cifar-10-binary.tar.gz"), "{text}");
}

/// An archive as `tar` writes it, without owners and times.
#[cfg(feature = "gzip")]
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    use std::io::Write;
    let mut tar = Vec::new();
    for (name, bytes) in files {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
        header[156] = if name.ends_with('/') { b'5' } else { b'0' };
        tar.extend(header);
        tar.extend(*bytes);
        tar.resize(tar.len().div_ceil(512) * 512, 0);
    }
    tar.resize(tar.len() + 1024, 0);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&tar).unwrap();
    packed.finish().unwrap()
}

#[cfg(feature = "gzip")]
#[test]
fn photographs_are_read_from_the_archive() {
    let folder = Folder::new("archive");
    let contents = [0u8, 1, 2, 3, 4, 5].map(|label| records(&[label]));
    let inside = NAMES.map(|name| format!("cifar-10-batches-bin/{name}"));
    let mut files = vec![("cifar-10-batches-bin/", &[][..]), ("readme.html", b"words")];
    // The archive has the files in another order.
    files.extend(inside.iter().map(String::as_str).zip(contents.iter().map(Vec::as_slice)).rev());
    let path = folder.0.join("cifar-10-binary.tar.gz");
    let whole = archive(&files);
    fs::write(&path, &whole).unwrap();
    let ((x_train, y_train), (_, y_test)) = load(&folder.options(".")).unwrap();
    assert_eq!((y_train.column(0).to_vec(), y_test[[0, 0]]), (vec![0, 1, 2, 3, 4], 5));
    assert_eq!(x_train[[3, 9, 9, 2]], 33);

    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(words(load(&folder.options("."))).starts_with("cifar10: "));
    fs::write(&path, archive(&files[..4])).unwrap();
    let text = words(load(&folder.options(".")));
    assert!(text.contains("cifar-10-binary.tar.gz: data_batch_1.bin is not in it"), "{text}");
    // A file length far beyond the end of the archive.
    let mut tar = [0u8; 1024];
    tar[..16].copy_from_slice(b"data_batch_1.bin");
    tar[124..135].copy_from_slice(b"77777777777");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &tar).unwrap();
    fs::write(&path, packed.finish().unwrap()).unwrap();
    let text = words(load(&folder.options(".")));
    assert!(text.contains("the archive ends within a file"), "{text}");
}
