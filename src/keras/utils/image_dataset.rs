//! `image_dataset_from_directory`: images in a sub-folder for each class.

use std::path::Path;
use std::sync::Arc;

use ndarray::{ArrayD, ArrayView3, s};

use super::directory::{DirectoryDataset, Rules, Subset};
use crate::error::{Error, Result, message};
use crate::files::io::read_file;
use crate::image::{
    DctMethod, DecodeOptions, ResizeMethod, ResizeOptions, decode_image_with, resize_array_with,
};
use crate::support::options::options;

/// The channels of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ColorMode {
    /// One channel: grayscale.
    Grayscale,
    /// Three channels.
    #[default]
    Rgb,
    /// Four channels; the last one is 255 if the file has no alpha.
    Rgba,
}

options! {
    /// How [`image_dataset_from_directory`] finds and reads images.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ImageDatasetOptions {
        /// Whether the sub-folders are classes, Keras's `labels="inferred"`; if not, all images below the folder are used.
        /// Default: `true`.
        labels: bool = true,
        /// The classes to use, in the order of their labels. Default: all sub-folders, sorted.
        class_names: Option<Vec<String>> as impl Into<Option<Vec<String>>> = None,
        /// The channels. Default: RGB.
        color_mode: ColorMode = ColorMode::Rgb,
        /// The batch size. Default: 32.
        batch_size: usize = 32,
        /// The height and width. Default: 256 x 256.
        image_size: [usize; 2] = [256, 256],
        /// Whether to shuffle the files for each iteration; if not, they are ordered by class and name. Default: `true`.
        shuffle: bool = true,
        /// The seed of the shuffling.
        seed: Option<u64> as impl Into<Option<u64>> = None,
        /// The fraction of the files for validation, between 0 and 1. It requires a `subset`, and a `seed` if files are
        /// shuffled.
        validation_split: Option<f64> as impl Into<Option<f64>> = None,
        /// The part of the files to use.
        subset: Option<Subset> as impl Into<Option<Subset>> = None,
        /// How images are resized. Default: bilinear.
        interpolation: ResizeMethod = ResizeMethod::Bilinear,
        /// Whether links to folders are followed. Default: `false`.
        follow_links: bool = false,
        /// Whether to crop images to the aspect ratio of `image_size` around the center before they are resized, so that
        /// nothing is stretched. Default: `false`.
        crop_to_aspect_ratio: bool = false,
        /// The cosine transform that decodes JPEG. Default: the accurate one. Keras uses the fast one
        /// ([`DctMethod::IntegerFast`]), whose pixels differ by some levels, on average by up to 0.7 of 255.
        dct_method: DctMethod = DctMethod::IntegerAccurate,
    }
}

/// Finds images in a folder with a sub-folder for each class: Keras's `image_dataset_from_directory`.
///
/// BMP, GIF (the first frame), JPEG, PNG and WebP files are found by their extensions. As in Keras, they are converted to `f32`
/// from 0 to 255 and resized on the host. Several are decoded at the same time, ahead of the consumer.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::utils::{ImageDatasetOptions, image_dataset_from_directory};
/// # let folder = std::env::temp_dir().join(format!("wgrad-pets-{}", std::process::id()));
/// for (name, grey) in [("cats/tom.png", 40u8), ("cats/kit.png", 60), ("dogs/rex.png", 200)] {
///     let image = wgrad::ndarray::Array3::from_elem((20, 30, 3), grey);
///     wgrad::io::write_file(folder.join(name), wgrad::image::encode_png(&image)?)?;
/// }
/// let options = ImageDatasetOptions::new().image_size([8, 8]).shuffle(false);
/// let pets = image_dataset_from_directory(&folder, options)?;
/// assert_eq!(pets.class_names, ["cats", "dogs"]);
/// let (images, labels) = pets.dataset()?.iter().next().expect("one batch")?;
/// assert_eq!((images.shape(), images[[2, 0, 0, 0]]), (&[3, 8, 8, 3][..], 200.0));
/// assert_eq!(labels.as_slice(), Some(&[0, 0, 1][..]));
/// # std::fs::remove_dir_all(&folder).map_err(|_| wgrad::Error::Data("left".into()))?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Io`] if a folder cannot be read; [`Error::Data`] if there is no image, no class, or not every requested class, and
/// if options contradict each other. For a damaged image, the dataset yields an error that names the file.
pub fn image_dataset_from_directory(
    directory: impl AsRef<Path>,
    options: ImageDatasetOptions,
) -> Result<DirectoryDataset<ArrayD<f32>>> {
    let op = "image_dataset_from_directory";
    let rules = Rules {
        op,
        endings: &[".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp"],
        labels: options.labels,
        class_names: options.class_names.as_deref(),
        shuffle: options.shuffle,
        seed: options.seed,
        validation_split: options.validation_split,
        subset: options.subset,
        follow_links: options.follow_links,
    };
    let chosen = rules.choose(directory.as_ref())?;
    let channels = match options.color_mode {
        ColorMode::Grayscale => 1,
        ColorMode::Rgb => 3,
        ColorMode::Rgba => 4,
    };
    let (size, crop) = (options.image_size, options.crop_to_aspect_ratio);
    let resize = ResizeOptions::new().method(options.interpolation);
    let decoding = DecodeOptions::new().dct_method(options.dct_method);
    let load = move |path: &Path| {
        let read = || {
            let image = decode_image_with(&read_file(path)?, channels, decoding)?;
            let image = if crop { middle(image.view(), size) } else { image.view() };
            resize_array_with(image, size, resize)
        };
        let named = |error: Error| error.reworded(|words| message!("{}: {words}", path.display()));
        Ok(read().map_err(named)?.into_dyn())
    };
    let (file_paths, labels) = chosen.files.into_iter().unzip();
    Ok(DirectoryDataset {
        class_names: chosen.class_names,
        file_paths,
        labels,
        op,
        batch_size: options.batch_size,
        seed: options.seed,
        shuffle: options.shuffle,
        load: Arc::new(load),
    })
}

/// The largest centered part with the aspect ratio of `size`, in Keras's arithmetic.
fn middle<'a>(image: ArrayView3<'a, u8>, size: [usize; 2]) -> ArrayView3<'a, u8> {
    let (height, width, _) = image.dim();
    let [to_height, to_width] = size.map(|side| side.max(1) as u128);
    let part = |own: usize, other: usize, to: u128, to_other: u128| {
        own.min((other as u128 * to / to_other) as usize).max(1)
    };
    let rows = part(height, width, to_height, to_width);
    let columns = part(width, height, to_width, to_height);
    let (top, left) = ((height - rows) / 2, (width - columns) / 2);
    image.slice_move(s![top..top + rows, left..left + columns, ..])
}
