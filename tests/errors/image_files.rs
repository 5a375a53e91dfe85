//! Errors of the image decoders for files that are broken, truncated or not what they claim, and for wrong calls.

use super::text;
use ndarray::Array3;
use wgrad::Error;
use wgrad::image::{self, DecodeOptions, EncodeJpegOptions, EncodePngOptions};

fn file(name: &str) -> Vec<u8> {
    std::fs::read(super::support::root::root().join("tests/data/images").join(name)).unwrap()
}

/// The error of `decode_image` without its name.
#[track_caller]
fn decoded(bytes: &[u8]) -> String {
    match image::decode_image(bytes, 0) {
        Ok(image) => panic!("it must be refused; it gave {:?}", image.shape()),
        Err(error) => {
            assert!(matches!(error, Error::Data(_)), "{error:?}");
            error.to_string().strip_prefix("decode_image: ").unwrap().to_string()
        }
    }
}

/// The same for a broken image, without the common text.
#[track_caller]
fn broken(bytes: &[u8]) -> String {
    let text = decoded(bytes);
    let text = text.strip_prefix("the image is broken: ").expect(&text);
    text.strip_suffix(". Replace the file, or leave it out.").expect(text).to_string()
}

/// The file with its bytes from `at` on replaced.
fn with(name: &str, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = file(name);
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn files_that_are_not_images_are_refused_by_their_first_bytes() {
    assert_eq!(decoded(b""), "the file is empty. Fetch it again, or leave it out.");
    assert_eq!(
        decoded(b"This is no image."),
        "the file begins with 54 68 69 73 20 69 73 20 and so is not a JPEG, PNG, GIF, BMP or WebP. Check that it is \
         an image and that the download is not an error page."
    );
}

#[test]
fn a_file_that_is_cut_short_is_refused() {
    for name in ["420.jpg", "progressive.jpg", "turned.jpg"] {
        let bytes = file(name);
        for length in [5, 20, bytes.len() / 2, bytes.len() - 2] {
            assert_eq!(
                decoded(&bytes[..length]),
                format!(
                    "the JPEG ends after {length} bytes, before its image does. Fetch the file again, leave it out, \
                     or let DecodeOptions::try_recover_truncated fill what is missing with grey."
                ),
                "{name}"
            );
        }
    }
    for length in [5, 20, 311, 621] {
        let words = format!("the PNG ends after {length} bytes, before its image does");
        assert_eq!(broken(&file("rgb.png")[..length]), words);
    }
    for length in [5, 20, 417] {
        let words = format!("the BMP ends after {length} bytes, before its image does");
        assert_eq!(broken(&file("rgb.bmp")[..length]), words);
    }
    for length in [5, 20, 223] {
        let words = format!("frame 0 of the GIF of {length} bytes: Unexpected End of File");
        assert_eq!(broken(&file("still.gif")[..length]), words);
    }
    let moving = file("moving.gif");
    let error = text(image::decode_gif(&moving[..moving.len() - 20]));
    assert!(error.contains("frame 2 of the GIF of"), "{error}");
    assert_eq!(
        broken(&file("lossless.webp")[..20]),
        "the WebP ends after 20 bytes, before its image does"
    );
    assert_eq!(broken(&file("lossless.webp")[..400]), "Corrupt bitstream");
}

#[test]
fn a_header_is_judged_before_memory_is_taken() {
    let bomb = |size: &str| {
        format!(
            "the header says {size} pixels, and at most 268435456 are decoded. If the file is right, raise \
             DecodeOptions::max_pixels."
        )
    };
    let frame = file("420.jpg").windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    let jpeg = |bytes: &[u8]| with("420.jpg", frame + 5, bytes);
    assert_eq!(decoded(&jpeg(&[0xff; 4])), bomb("65535 x 65535"));
    assert_eq!(
        broken(&jpeg(&[0x20, 0, 0x20, 0])),
        "721 bytes cannot hold the 8192 x 8192 pixels of its header"
    );
    assert_eq!(broken(&jpeg(&[0, 0, 0, 9])), "its header says 0 x 9 pixels");
    assert_eq!(
        broken(&with("420.jpg", frame + 4, &[12])),
        "it has 12 bits per sample, and only 8 are decoded"
    );
    assert_eq!(decoded(&with("rgb.bmp", 18, &[0xff, 0xff, 0xff, 0x7f])), bomb("13 x 2147483647"));
    assert_eq!(decoded(&with("still.gif", 6, &[0xff; 4])), bomb("65535 x 65535"));
    // A PNG's header has a checksum, here that of 16383 x 16383 pixels.
    let mut png = file("rgb.png");
    png[16..24].copy_from_slice(&[0, 0, 0x3f, 0xff, 0, 0, 0x3f, 0xff]);
    assert_eq!(broken(&png), "CRC error: expected 0xc4eec270 have 0x54d3fdfc");
    png[29..33].copy_from_slice(&0x54d3_fdfcu32.to_be_bytes());
    assert_eq!(broken(&png), "623 bytes cannot hold the 16383 x 16383 pixels of its header");
    // The second size is that of the picture inside.
    let mut webp = file("lossy.webp");
    webp[26..30].copy_from_slice(&[0xff, 0x3f, 0xff, 0x3f]);
    let options = DecodeOptions::new().max_pixels(1 << 20);
    assert_eq!(
        text(image::decode_webp_with(&webp, 3, options)),
        "decode_webp: the header says 16383 x 16383 pixels, and at most 1048576 are decoded. If the file is right, raise \
         DecodeOptions::max_pixels."
    );
}

#[test]
fn all_frames_together_have_a_limit() {
    let limited = |name: &str, most: usize| {
        text(image::decode_frames_with(&file(name), 0, DecodeOptions::new().max_pixels(most)))
    };
    for (name, most, frames) in [
        ("moving.gif", 500, "3 frames of "),
        ("moving.webp", 300, "2 frames of "),
        ("moving.gif", 246, ""),
    ] {
        assert_eq!(
            limited(name, most),
            format!(
                "decode_frames: the header says {frames}13 x 19 pixels, and at most {most} are decoded. If the file is right, \
                 raise DecodeOptions::max_pixels."
            )
        );
    }
}

#[test]
fn what_is_not_decoded_is_named() {
    assert_eq!(
        broken(&with("rgb.bmp", 28, &[1])),
        "it has 1 bits per pixel and compression 0, and only pixels of 8, 24 and 32 bits without compression are decoded"
    );
    assert!(broken(&with("grey.bmp", 46, &[9, 0])).ends_with("of a palette of 9"));
    assert_eq!(
        text(image::decode_jpeg(&file("moving.gif"), 0)),
        "decode_jpeg: the file is an animation of 3 frames. decode_gif gives all of them, decode_image the first."
    );
    assert_eq!(
        text(image::decode_jpeg(&file("rgb.bmp"), 0)),
        "decode_jpeg: the file is a BMP; decode_image decodes it."
    );
    assert_eq!(
        text(image::decode_bmp(&file("rgb.png"), 0)),
        "decode_bmp: the file is a PNG; decode_image decodes it."
    );
    assert_eq!(
        text(image::decode_gif(&file("lossy.webp"))),
        "decode_gif: the file is a WebP; decode_frames decodes it."
    );
    assert_eq!(
        text(image::decode_image(&file("rgb.png"), 2)),
        "decode_image: channels is 2; it must be 1 (grey), 3 (RGB), 4 (RGBA) or 0, which takes the number in the file."
    );
    assert_eq!(
        text(image::decode_jpeg_with(&file("420.jpg"), 0, DecodeOptions::new().ratio(3))),
        "decode_jpeg: ratio is 3; a JPEG is shrunk by 1, 2, 4 or 8."
    );
}

#[test]
fn pixels_that_a_format_cannot_hold_are_refused() {
    let of = |shape: [usize; 3]| Array3::<u8>::zeros(shape);
    for (shape, rule) in [
        ([4, 4, 4], "a JPEG has 1 or 3 channels"),
        ([0, 4, 3], "a JPEG has 1 to 65500 rows and columns"),
        ([1, 70_000, 3], "a JPEG has 1 to 65500 rows and columns"),
    ] {
        let expected = format!("encode_jpeg: the image is {shape:?}; {rule}.");
        assert_eq!(text(image::encode_jpeg(&of(shape))), expected);
    }
    for (shape, rule) in [
        ([4, 4, 5], "a PNG has 1 to 4 channels"),
        ([4, 0, 3], "a PNG has 1 to 2^32 - 1 rows and columns"),
    ] {
        let expected = format!("encode_png: the image is {shape:?}; {rule}.");
        assert_eq!(text(image::encode_png(&of(shape))), expected);
    }
    let options = EncodeJpegOptions::new().quality(101);
    assert_eq!(
        text(image::encode_jpeg_with(&of([4, 4, 3]), options)),
        "encode_jpeg: quality is 101; it must be at most 100."
    );
    let options = EncodePngOptions::new().compression(10);
    assert_eq!(
        text(image::encode_png_with(&of([4, 4, 3]), options)),
        "encode_png: compression is 10; it is -1, or 0 to 9."
    );
}

#[test]
fn sizes_that_no_image_has_are_refused_on_the_host() {
    let of = |shape: [usize; 3]| Array3::<u8>::zeros(shape);
    let resized = |shape: [usize; 3], size: [usize; 2]| text(image::resize_array(&of(shape), size));
    assert_eq!(
        resized([0, 4, 3], [2, 2]),
        "resize_array: the image is [0, 4, 3]; an empty one cannot be resized."
    );
    assert_eq!(
        resized([4, 4, 3], [2, 0]),
        "resize_array: the target is 2 x 0; both numbers must be above 0."
    );
    assert_eq!(
        resized([4, 4, 3], [usize::MAX, 2]),
        format!(
            "resize_array: from 4 x 4 to {} x 2; an image has at most 4194304 rows and columns here.",
            usize::MAX
        )
    );
    assert_eq!(
        resized([4, 4, 3], [1 << 22, 1 << 22]),
        "resize_array: there is no memory for an image of [4194304, 4194304, 3]."
    );
}

#[test]
fn a_files_name_is_in_the_error() {
    let error = wgrad::io::read_file("no/such/cat.jpg").unwrap_err();
    assert!(matches!(&error, Error::Io(io) if io.path.ends_with("cat.jpg")), "{error:?}");
    assert!(error.to_string().starts_with("no/such/cat.jpg: "), "{error}");
    let folder = super::support::root::root().display().to_string();
    let text = text(wgrad::io::read_file(&folder));
    assert_eq!(text, format!("{folder}: it is a folder and not a file"));
    let error = wgrad::io::write_file(format!("{folder}/Cargo.toml/cat.jpg"), b"").unwrap_err();
    assert!(matches!(&error, Error::Io(io) if io.path.ends_with("cat.jpg")), "{error:?}");
}
