//! `image_dataset_from_directory`: pictures in a sub-folder for each class.

use std::path::Path;
use std::sync::Arc;

use ndarray::{ArrayD, ArrayView3, s};

use super::directory::{DirectoryDataset, Rules, Subset};
use crate::error::{Error, Result, message};
use crate::image::{
    DctMethod, DecodeOptions, ResizeMethod, ResizeOptions, decode_image_with, resize_array_with,
};
use crate::io::read_file;
use crate::options::options;

/// The channels of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ColorMode {
    /// One: grey.
    Grayscale,
    /// Three.
    #[default]
    Rgb,
    /// Four, the last one 255 where a file has none.
    Rgba,
}

options! {
    /// How [`image_dataset_from_directory`] finds and reads pictures.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ImageDatasetOptions {
        /// Whether the sub-folders are classes, Keras's `labels="inferred"`; without, all pictures below the folder are taken.
        labels: bool = true,
        /// The classes to take, in the order of their labels; all sub-folders, sorted.
        class_names: Option<Vec<String>> as impl Into<Option<Vec<String>>> = None,
        /// The channels; RGB.
        color_mode: ColorMode = ColorMode::Rgb,
        /// Pictures in a batch; 32.
        batch_size: usize = 32,
        /// Height and width; 256 x 256.
        image_size: [usize; 2] = [256, 256],
        /// Whether each pass has another order; without, files come by class and name.
        shuffle: bool = true,
        /// The seed of the order.
        seed: Option<u64> as impl Into<Option<u64>> = None,
        /// The share of the files for validation, between 0 and 1. It needs a `subset`, and a `seed` if files are shuffled.
        validation_split: Option<f64> as impl Into<Option<f64>> = None,
        /// Which part of the files.
        subset: Option<Subset> as impl Into<Option<Subset>> = None,
        /// How pictures are resized; bilinear.
        interpolation: ResizeMethod = ResizeMethod::Bilinear,
        /// Whether links to folders are followed; `false`.
        follow_links: bool = false,
        /// Whether the middle of a picture is cut out, as large as it may be with the proportions of `image_size`, so that
        /// nothing is stretched; `false`.
        crop_to_aspect_ratio: bool = false,
        /// By which cosine transform a JPEG is decoded; the exact one. Keras decodes by the fast one
        /// ([`DctMethod::IntegerFast`]), whose pixels differ by some levels, and in the mean by up to 0.7 of the 255.
        dct_method: DctMethod = DctMethod::IntegerAccurate,
    }
}

/// Pictures from a folder with a sub-folder for each class: Keras's `image_dataset_from_directory`.
///
/// They are BMP, GIF (the first frame), JPEG, PNG and WebP files, found by the endings of their names, and become `f32` from 0 to
/// 255, resized on the host, as Keras has it. Several are decoded at the same time, ahead of who asks for them.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::utils::{ImageDatasetOptions, image_dataset_from_directory};
/// # let folder = std::env::temp_dir().join(format!("wgrad-pets-{}", std::process::id()));
/// for (name, grey) in [("cats/tom.png", 40u8), ("cats/kit.png", 60), ("dogs/rex.png", 200)] {
///     let image = ndarray::Array3::from_elem((20, 30, 3), grey);
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
/// [`Error::Io`] if a folder cannot be read; [`Error::Data`] if there is no picture, no class, or another class than those asked
/// for, and if options contradict each other. A broken picture is an error among the elements, which names the file.
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

/// The largest part around the middle that has the proportions of `size`, in Keras's arithmetic.
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
