//! `image_dataset_from_directory` and `text_dataset_from_directory`.
#![allow(clippy::unwrap_used)]

use crate::support::root;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ndarray::{Array3, s};
use wgrad::data::Dataset;
use wgrad::image::{self, encode_jpeg, encode_png};
use wgrad::io::write_file;
use wgrad::keras::layers::{Dense, Flatten, Rescaling};
use wgrad::keras::utils::{
    ColorMode, DirectoryDataset, ImageDatasetOptions, Subset, TextDatasetOptions,
    image_dataset_from_directory, text_dataset_from_directory,
};
use wgrad::keras::{CompileOptions, FitOptions, Model, Sequential};
use wgrad::{Error, Result};

/// A folder for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("wgrad-dirs-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Pictures whose red value is their number: 0 to 9 are ants, 10 to 15 bees, 16 to 19 cows.
    fn of_animals(test: &str) -> Self {
        let folder = Folder::new(test);
        for i in 0..20u8 {
            let image = Array3::from_shape_fn((6, 8, 3), |(_, _, c)| if c == 0 { i } else { 100 });
            let class = ["ants", "bees", "cows"][usize::from(i >= 10) + usize::from(i >= 16)];
            folder.write(&format!("{class}/{i:02}.png"), &encode_png(&image).unwrap());
        }
        folder
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        write_file(self.0.join(name), bytes).unwrap();
    }

    fn images(&self, options: ImageDatasetOptions) -> DirectoryDataset<ndarray::ArrayD<f32>> {
        image_dataset_from_directory(&self.0, options).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

fn options() -> ImageDatasetOptions {
    ImageDatasetOptions::new().image_size([4, 4]).seed(7)
}

fn all<T: wgrad::data::Item>(dataset: &Dataset<T>) -> Vec<T> {
    dataset.iter().collect::<Result<_>>().unwrap()
}

/// The numbers of the pictures, and their labels.
fn numbers(directory: &DirectoryDataset<ndarray::ArrayD<f32>>) -> Vec<(u8, i32)> {
    let elements = all(&directory.elements().unwrap());
    elements.iter().map(|(image, label)| (image[[0, 0, 0]] as u8, *label)).collect()
}

#[test]
fn classes_are_the_sub_folders_in_order() {
    let folder = Folder::of_animals("order");
    folder.write("readme.md", b"not a picture");
    folder.write("ants/notes.txt", b"not a picture");
    folder.write(".cache/00.png", b"hidden");
    let animals = folder.images(options().shuffle(false).batch_size(8));
    assert_eq!(animals.class_names, ["ants", "bees", "cows"]);
    assert_eq!(animals.file_paths.len(), 20);
    assert_eq!(animals.file_paths[10], folder.0.join("bees/10.png"));
    let expected: Vec<(u8, i32)> =
        (0..20u8).map(|i| (i, i32::from(i >= 10) + i32::from(i >= 16))).collect();
    assert_eq!(numbers(&animals), expected);

    let batches = all(&animals.dataset().unwrap());
    let shapes: Vec<_> = batches.iter().map(|(x, y)| (x.shape(), y.shape())).collect();
    let eight = (&[8, 4, 4, 3][..], &[8][..]);
    assert_eq!(shapes, [eight, eight, (&[4, 4, 4, 3], &[4])]);
    let (_, labels) = &batches[1];
    assert_eq!(labels.as_slice().unwrap(), [0, 0, 1, 1, 1, 1, 1, 1]);

    let (_, one_hot) = &all(&animals.categorical().unwrap())[2];
    assert_eq!(one_hot.slice(s![0, ..]).to_vec(), [0.0, 0.0, 1.0]);
    assert_eq!(all(&animals.unlabeled().unwrap())[2].shape(), [4, 4, 4, 3]);
}

#[test]
fn classes_may_be_chosen_and_ordered() {
    let folder = Folder::of_animals("chosen");
    let names = vec!["cows".to_string(), "ants".to_string()];
    let two = folder.images(options().class_names(names.clone()).shuffle(false));
    assert_eq!(two.class_names, names);
    assert_eq!(numbers(&two)[0], (16, 0));
    assert_eq!(numbers(&two)[4], (0, 1));
    let (_, labels) = &all(&two.binary().unwrap())[0];
    assert_eq!(labels.shape(), [14, 1]);
    assert_eq!(labels.sum(), 10.0);
    let unlabelled = folder.images(options().labels(false));
    assert_eq!((unlabelled.file_paths.len(), unlabelled.class_names.len()), (20, 0));
    assert_eq!(all(&unlabelled.unlabeled().unwrap())[0].shape(), [20, 4, 4, 3]);
    let error = unlabelled.dataset().unwrap_err().to_string();
    assert!(error.contains("without labels; `unlabeled` gives them"), "{error}");
}

#[test]
fn each_pass_has_another_order_and_a_seed_fixes_them() {
    let folder = Folder::of_animals("shuffled");
    let elements = folder.images(options()).elements().unwrap();
    let pass = |elements: &Dataset<(ndarray::ArrayD<f32>, i32)>| -> Vec<u8> {
        all(elements).iter().map(|(image, _)| image[[0, 0, 0]] as u8).collect()
    };
    let (first, second) = (pass(&elements), pass(&elements));
    assert_ne!(first, second);
    let again = folder.images(options()).elements().unwrap();
    assert_eq!([pass(&again), pass(&again)], [first.clone(), second]);
    let mut sorted = first;
    sorted.sort();
    assert_eq!(sorted, (0..20).collect::<Vec<_>>());
}

#[test]
fn subsets_share_the_files() {
    let folder = Folder::of_animals("split");
    for shuffle in [true, false] {
        let part = |subset: Subset| {
            let options = options().shuffle(shuffle).validation_split(0.25).subset(subset);
            let files = folder.images(options).file_paths;
            files.into_iter().collect::<BTreeSet<_>>()
        };
        let (training, validation) = (part(Subset::Training), part(Subset::Validation));
        assert_eq!((training.len(), validation.len()), (15, 5));
        assert!(training.is_disjoint(&validation));
        // Without shuffling, the last files are for validation.
        let last = ["bees/15.png", "cows/16.png", "cows/17.png", "cows/18.png", "cows/19.png"];
        let last: BTreeSet<_> = last.iter().map(|name| folder.0.join(name)).collect();
        assert_eq!(validation == last, !shuffle);
    }
}

#[test]
fn pictures_of_all_kinds_become_what_is_asked_for() {
    let folder = Folder::new("kinds");
    let drawn =
        Array3::from_shape_fn((10, 20, 3), |(_, column, _)| if column < 5 { 250u8 } else { 30 });
    folder.write("a/1.JPG", &encode_jpeg(&drawn).unwrap());
    folder.write("a/2.png", &encode_png(drawn.slice(s![.., .., ..1])).unwrap());
    let data = root::root().join("tests/data/images");
    for name in ["moving.gif", "rgba.png", "rgb.bmp", "lossy.webp"] {
        folder.write(&format!("a/b/c/{name}"), &fs::read(data.join(name)).unwrap());
    }
    for (mode, channels) in [(ColorMode::Grayscale, 1), (ColorMode::Rgb, 3), (ColorMode::Rgba, 4)] {
        let pictures = folder.images(options().color_mode(mode).shuffle(false));
        let batch = &all(&pictures.dataset().unwrap())[0].0;
        assert_eq!(batch.shape(), [6, 4, 4, channels]);
        if channels == 4 {
            assert_eq!(batch[[0, 0, 0, 3]], 255.0);
        }
    }
    // A square from the middle has no light column; the whole picture has one of four.
    let light = |crop: bool| {
        let options = options().crop_to_aspect_ratio(crop).shuffle(false);
        let elements = all(&folder.images(options).elements().unwrap());
        elements[1].0[[0, 0, 0]]
    };
    assert_eq!((light(false), light(true)), (250.0, 30.0));
    let nearest = options().interpolation(image::ResizeMethod::NearestNeighbor).shuffle(false);
    let elements = all(&folder.images(nearest).elements().unwrap());
    assert!(elements[1].0.iter().all(|value| [250.0, 30.0].contains(value)));
}

// TensorFlow 2.21, whose decode_image Keras uses for folders: for this file, written by tf.io.encode_jpeg(quality=90), the mean
// is 137.72699652777777, as with decode_jpeg(dct_method="INTEGER_FAST"), and 138.54991319444446 with "INTEGER_ACCURATE".
#[test]
fn a_jpeg_is_decoded_exactly_or_as_in_keras() {
    let folder = Folder::new("dct");
    folder.write("a/one.jpg", include_bytes!("../data/gradient_and_noise.jpg"));
    let mean = |options: ImageDatasetOptions| {
        let images = folder.images(options.image_size([32, 48])).dataset().unwrap();
        let (images, _) = images.iter().next().unwrap().unwrap();
        images.iter().map(|&level| f64::from(level)).sum::<f64>() / images.len() as f64
    };
    let fast = mean(options().dct_method(image::DctMethod::IntegerFast));
    assert!((fast - 137.726_996_527_777_77).abs() < 1e-9, "{fast}");
    let exact = mean(options());
    assert!((exact - 138.549_913_194_444_46).abs() < 1e-9, "{exact}");
}

#[test]
fn a_broken_picture_is_an_error_that_names_it_and_the_others_come() {
    let folder = Folder::of_animals("broken");
    folder.write("bees/12.png", b"oops");
    let elements = folder.images(options().shuffle(false)).elements().unwrap();
    let results: Vec<_> = elements.iter().collect();
    assert_eq!(results.len(), 20);
    let errors: Vec<String> =
        results.into_iter().filter_map(|result| Some(result.err()?.to_string())).collect();
    let path = folder.0.join("bees/12.png");
    let expected = format!(
        "{}: decode_image: the file begins with 6f 6f 70 73 and so is not a JPEG, PNG, GIF, BMP or WebP. Check that \
         it is an image and that the download is not an error page.",
        path.display()
    );
    assert_eq!(errors, [expected]);
    fs::remove_file(&path).unwrap();
    let error = elements.iter().find_map(Result::err).unwrap();
    assert!(matches!(&error, Error::Io(io) if io.path == path), "{error}");
}

#[test]
fn a_model_trains_from_a_folder() {
    let folder = Folder::of_animals("trains");
    let pictures = folder.images(options().batch_size(5)).dataset().unwrap();
    let model = Sequential::new()
        .add(Rescaling::new(1.0 / 255.0))
        .add(Flatten::new())
        .add(Dense::new(3).activation(wgrad::keras::Activation::Softmax));
    let loss = "sparse_categorical_crossentropy";
    model.compile("adam", loss, CompileOptions::new()).unwrap();
    let history = model.fit(&pictures, FitOptions::new().epochs(3).verbose(0)).unwrap();
    assert_eq!(history.get("loss").unwrap().len(), 3);
}

#[test]
fn texts_come_with_their_labels() {
    let folder = Folder::new("texts");
    folder.write("bad/1.txt", "schlecht, très mauvais".as_bytes());
    folder.write("good/1.txt", "gut".as_bytes());
    folder.write("good/2.txt", "".as_bytes());
    let options = || TextDatasetOptions::new().shuffle(false);
    let texts = text_dataset_from_directory(&folder, options()).unwrap();
    let (texts, labels) = &all(&texts.dataset().unwrap())[0];
    assert_eq!(texts.as_slice().unwrap(), ["schlecht, très mauvais", "gut", ""]);
    assert_eq!(labels.as_slice().unwrap(), [0, 1, 1]);
    // The è has two bytes, the 13th and the 14th.
    let short = text_dataset_from_directory(&folder, options().max_length(13)).unwrap();
    assert_eq!(all(&short.elements().unwrap())[0].0, "schlecht, tr");

    folder.write("good/2.txt", b"gr\xfcn");
    let texts = text_dataset_from_directory(&folder, options()).unwrap();
    let error = texts.elements().unwrap().iter().find_map(Result::err).unwrap();
    let path = folder.0.join("good/2.txt");
    let words = "the file is not valid UTF-8 from byte 2 on. Convert it, or leave it out.";
    assert_eq!(error.to_string(), format!("{}: {words}", path.display()));
}

/// The error of a wrong call, without its name and the folder, if any.
#[track_caller]
fn refused(folder: &Folder, options: ImageDatasetOptions) -> String {
    let error = match image_dataset_from_directory(folder, options) {
        Ok(_) => panic!("it must be refused"),
        Err(error) => error,
    };
    assert!(matches!(error, Error::Data(_)), "{error:?}");
    let text = error.to_string();
    let text = text.strip_prefix("image_dataset_from_directory: ").unwrap();
    text.strip_prefix(&format!("{}: ", folder.0.display())).unwrap_or(text).to_string()
}

#[test]
fn wrong_folders_and_options_are_refused() {
    let empty = Folder::new("empty");
    assert_eq!(
        refused(&empty, options()),
        "there is no sub-folder in it, and each class needs one; `labels(false)` does without classes."
    );
    let kinds = "there is no file in it that ends in .bmp, .gif, .jpeg, .jpg, .png, .webp.";
    assert_eq!(refused(&empty, options().labels(false)), kinds);
    fs::create_dir(empty.0.join("cats")).unwrap();
    assert_eq!(refused(&empty, options()), kinds);
    let missing = image_dataset_from_directory(empty.0.join("nowhere"), options());
    assert!(matches!(missing.err(), Some(Error::Io(io)) if io.path.ends_with("nowhere")));

    let folder = Folder::of_animals("refused");
    assert_eq!(
        refused(&folder, options().class_names(vec!["ants".into(), "dogs".into()])),
        "class_names has \"dogs\", and the sub-folders are [\"ants\", \"bees\", \"cows\"]."
    );
    let split = options().validation_split(0.2);
    assert_eq!(
        refused(&folder, split.clone()),
        "validation_split needs a subset: which part is wanted?"
    );
    let training = split.subset(Subset::Training);
    assert_eq!(
        refused(&folder, training.clone().seed(None)),
        "validation_split needs a seed, the same for both subsets, so that no file is in both; or shuffle(false)."
    );
    for share in [0.0, 1.0, -1.0, f64::NAN] {
        assert_eq!(
            refused(&folder, training.clone().validation_split(share)),
            format!("validation_split is {share}; it must be between 0 and 1.")
        );
    }
    assert_eq!(
        refused(&folder, options().subset(Subset::Validation)),
        "subset needs a validation_split."
    );
    assert_eq!(
        refused(&folder, options().validation_split(0.01).subset(Subset::Validation)),
        "a split of 0.01 leaves no file for validation."
    );
    let animals = folder.images(options());
    assert_eq!(
        animals.binary().unwrap_err().to_string(),
        "image_dataset_from_directory: binary labels need two classes, and there are 3: [\"ants\", \"bees\", \"cows\"]."
    );
    assert!(folder.images(options().batch_size(0)).dataset().is_err());
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_above_ends() {
    let folder = Folder::of_animals("links");
    std::os::unix::fs::symlink(&folder.0, folder.0.join("ants/all")).unwrap();
    assert_eq!(folder.images(options()).file_paths.len(), 20);
    let text = refused_anywhere(&folder, options().follow_links(true));
    assert!(text.contains("nested without end") || text.contains("symbolic links"), "{text}");
}

#[cfg(unix)]
fn refused_anywhere(folder: &Folder, options: ImageDatasetOptions) -> String {
    image_dataset_from_directory(folder, options).map(drop).unwrap_err().to_string()
}
