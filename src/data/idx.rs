//! Reads IDX files, the format of MNIST: a magic number, the dimensions, then plain values.
//!
//! It reads unsigned bytes only, which is all that MNIST and similar data sets contain, and decompresses gzip if the
//! feature `gzip` is on. It does not write files, and does not know what the values mean.

use std::path::Path;

use ndarray::{ArrayD, IxDyn};

use crate::error::{Error, Result, message};

/// The contents of an IDX file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idx {
    /// The dimensions, outermost first: `[images, rows, columns]` or `[labels]`.
    pub shape: Vec<usize>,
    /// The values in row-major order; as many as the product of the dimensions.
    pub data: Vec<u8>,
}

impl Idx {
    /// The values as an array, for [`Dataset::from_tensor_slices`](super::Dataset::from_tensor_slices).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::{Dataset, idx::parse_idx};
    /// let labels = parse_idx(&[0, 0, 8, 1, 0, 0, 0, 2, 7, 9], "two labels")?.into_array()?;
    /// let label = Dataset::from_tensor_slices(labels)?.iter().nth(1).expect("two labels")?;
    /// assert_eq!(label.first(), Some(&9));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the program has changed the fields so that they do not match.
    pub fn into_array(self) -> Result<ArrayD<u8>> {
        ArrayD::from_shape_vec(IxDyn(&self.shape), self.data).map_err(|error| {
            Error::Shape(message!("Idx: {:?} is not the values' shape: {error}.", self.shape))
        })
    }
}

/// Reads the IDX file at `path`, gzip-compressed or not, whatever its name is.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read, [`Error::Data`] as for [`parse_idx`].
pub fn read_idx(path: impl AsRef<Path>) -> Result<Idx> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
    parse_idx(&bytes, &path.display().to_string())
}

/// Reads an IDX file that is already in memory, gzip-compressed or not; `name` is for messages.
///
/// Memory grows with the bytes that actually exist, not with the header's claim, and decompression stops where the
/// values end according to the header.
///
/// ```
/// use wgrad::data::idx::parse_idx;
/// // The magic number of labels (2049), their count and three labels.
/// let idx = parse_idx(&[0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1], "labels")?;
/// assert_eq!((idx.shape, idx.data), (vec![3], vec![7, 2, 1]));
/// # Ok::<(), wgrad::Error>(())
/// ```
///
/// # Errors
/// [`Error::Data`] if the magic number is not that of an IDX file, the values are not unsigned bytes, their number does
/// not match the dimensions, the gzip data are corrupt, or the data are compressed and the feature `gzip` is off.
pub fn parse_idx(bytes: &[u8], name: &str) -> Result<Idx> {
    match bytes {
        [0x1f, 0x8b, ..] => parse_packed(bytes, name),
        _ => parse(&mut Plain(bytes), name),
    }
}

/// The source of a file's bytes, read in parts.
trait ByteSource {
    /// The next `count` bytes, or fewer if the source ends earlier.
    fn take(&mut self, count: usize, name: &str) -> Result<Vec<u8>>;
}

/// Bytes in memory.
struct Plain<'a>(&'a [u8]);

impl ByteSource for Plain<'_> {
    fn take(&mut self, count: usize, _: &str) -> Result<Vec<u8>> {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        Ok(taken.to_vec())
    }
}

#[cfg(feature = "gzip")]
fn parse_packed(bytes: &[u8], name: &str) -> Result<Idx> {
    parse(&mut flate2::read::MultiGzDecoder::new(bytes), name)
}

#[cfg(not(feature = "gzip"))]
fn parse_packed(_: &[u8], name: &str) -> Result<Idx> {
    Err(Error::Data(message!(
        "{name}: the file is compressed with gzip, and wgrad was built without gzip. Decompress it with gunzip, or \
         build with the feature \"gzip\"."
    )))
}

fn parse(source: &mut dyn ByteSource, name: &str) -> Result<Idx> {
    let magic = source.take(4, name)?;
    let &[zero0, zero1, code, rank] = magic.as_slice() else {
        return Err(short(name, "magic number", magic.len(), 4));
    };
    if zero0 != 0 || zero1 != 0 || rank == 0 {
        return Err(Error::Data(message!(
            "{name}: the file begins with {zero0:02x} {zero1:02x} {code:02x} {rank:02x}, and an IDX file begins with \
             00 00, a type code and the rank (00 00 08 03 for images, 00 00 08 01 for labels). Check that it is the \
             right file and that the download is not an error page."
        )));
    }
    check_type(code, name)?;
    let shape = read_shape(source, usize::from(rank), name)?;
    let promised = shape.iter().try_fold(1usize, |size, &dim| size.checked_mul(dim));
    let Some(promised) = promised.filter(|&size| size < isize::MAX as usize) else {
        return Err(Error::Data(message!(
            "{name}: the header promises {shape:?} values, more than memory can hold. The file is corrupt; fetch it \
             again."
        )));
    };
    // Requesting one more byte finds leftover bytes, and makes gzip check its checksum at the end.
    let data = source.take(promised + 1, name)?;
    if data.len() < promised {
        return Err(short(name, &format!("{shape:?} values"), data.len(), promised));
    }
    if data.len() > promised {
        return Err(Error::Data(message!(
            "{name}: the header promises {shape:?} values, which are {promised} bytes, and more \
             follow. The file is corrupt or not what its header says; fetch it again."
        )));
    }
    Ok(Idx { shape, data })
}

fn check_type(code: u8, name: &str) -> Result<()> {
    let found = match code {
        0x08 => return Ok(()),
        0x09 => "i8",
        0x0b => "i16",
        0x0c => "i32",
        0x0d => "f32",
        0x0e => "f64",
        _ => "unknown to the format",
    };
    Err(Error::Data(message!(
        "{name}: the type code of the values is 0x{code:02x} ({found}), and only 0x08 (u8) is \
         supported. Convert the values to unsigned bytes, or check that it is the right file."
    )))
}

fn read_shape(source: &mut dyn ByteSource, rank: usize, name: &str) -> Result<Vec<usize>> {
    let dims = source.take(4 * rank, name)?;
    if dims.len() < 4 * rank {
        return Err(short(name, &format!("{rank} dimensions"), dims.len(), 4 * rank));
    }
    let dim = |bytes: &[u8]| bytes.iter().fold(0, |dim, &byte| dim << 8 | usize::from(byte));
    Ok(dims.chunks_exact(4).map(dim).collect())
}

#[cfg(feature = "gzip")]
impl ByteSource for flate2::read::MultiGzDecoder<&[u8]> {
    fn take(&mut self, count: usize, name: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read =
            std::io::Read::read_to_end(&mut std::io::Read::take(self, count as u64), &mut bytes);
        read.map(|_| bytes).map_err(|error| unreadable(name, &error))
    }
}

/// Reading bytes in memory cannot fail, so the gzip data are corrupt.
#[cfg(feature = "gzip")]
fn unreadable(name: &str, error: &std::io::Error) -> Error {
    let what = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "end too early",
        _ => "are corrupt",
    };
    Error::Data(message!(
        "{name}: the gzip data {what} ({error}). The file was probably not fetched completely; fetch \
         it again."
    ))
}

fn short(name: &str, part: &str, found: usize, promised: usize) -> Error {
    Error::Data(message!(
        "{name}: the {part} should take {promised} bytes, and only {found} are there. The file is \
         truncated; fetch it again."
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const GOOD: [u8; 18] = [0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 17, 255];

    fn message(bytes: &[u8]) -> String {
        match parse_idx(bytes, "some-file") {
            Err(Error::Data(message)) => {
                assert!(message.starts_with("some-file: "), "{message}");
                message.to_string()
            }
            other => panic!("a data error was expected, and it is {other:?}"),
        }
    }

    #[test]
    fn images_and_labels_are_read() {
        let idx = parse_idx(&GOOD, "images").unwrap();
        assert_eq!(idx, Idx { shape: vec![1, 2, 1], data: vec![17, 255] });
        let idx = parse_idx(
            &[0, 0, 8, 1, 0, 0, 1, 0].iter().copied().chain(0..=255).collect::<Vec<_>>(),
            "labels",
        )
        .unwrap();
        assert_eq!((idx.shape, idx.data.len(), idx.data[200]), (vec![256], 256, 200));
        assert_eq!(parse_idx(&[0, 0, 8, 1, 0, 0, 0, 0], "none").unwrap().shape, [0]);
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        assert!(message(b"<html>").contains("begins with 3c 68 74 6d"));
        assert!(message(&[0, 0, 8, 0, 1]).contains("begins with 00 00 08 00"));
    }

    #[test]
    fn other_types_are_named() {
        let cases = [
            (0x09, "i8"),
            (0x0b, "i16"),
            (0x0c, "i32"),
            (0x0d, "f32"),
            (0x0e, "f64"),
            (0x44, "unknown"),
        ];
        for (code, found) in cases {
            let message = message(&[0, 0, code, 1, 0, 0, 0, 0]);
            assert!(message.contains(&format!("0x{code:02x} ({found}")), "{message}");
            assert!(message.contains("only 0x08 (u8)"), "{message}");
        }
    }

    #[test]
    fn every_truncation_says_what_is_there_and_what_should_be() {
        assert!(message(&[]).contains("magic number should take 4 bytes, and only 0 are there"));
        assert!(message(&GOOD[..3]).contains("magic number should take 4 bytes, and only 3"));
        assert!(message(&GOOD[..9]).contains("3 dimensions should take 12 bytes, and only 5"));
        assert!(message(&GOOD[..17]).contains("[1, 2, 1] values should take 2 bytes, and only 1"));
        for end in 0..GOOD.len() {
            assert!(message(&GOOD[..end]).contains("truncated"));
        }
    }

    #[test]
    fn trailing_bytes_are_refused() {
        let bytes: Vec<u8> = GOOD.iter().copied().chain([0]).collect();
        assert!(message(&bytes).contains("which are 2 bytes, and more follow"));
    }

    #[test]
    fn a_header_that_lies_costs_no_memory() {
        let terabytes = [0, 0, 8, 2, 0, 0xff, 0xff, 0xff, 0, 0x0f, 0xff, 0xff, 1, 2];
        assert!(message(&terabytes).contains("only 2 are there"));
        let overflow: Vec<u8> = [0, 0, 8, 3].into_iter().chain([0xff; 12]).collect();
        assert!(message(&overflow).contains("more than memory can hold"));
    }

    #[test]
    fn a_missing_file_is_an_io_error_with_its_path() {
        let error = read_idx("no/such/file").unwrap_err();
        assert!(matches!(&error, Error::Io(io) if io.path.ends_with("no/such/file")), "{error}");
    }

    #[cfg(feature = "gzip")]
    mod packed {
        use super::*;
        use std::io::Write;

        fn pack(bytes: &[u8]) -> Vec<u8> {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }

        #[test]
        fn gzip_is_unpacked() {
            assert_eq!(
                parse_idx(&pack(&GOOD), "packed").unwrap(),
                parse_idx(&GOOD, "plain").unwrap()
            );
        }

        #[test]
        fn broken_contents_are_found_behind_gzip_too() {
            assert!(message(&pack(&GOOD[..17])).contains("only 1 are there"));
            assert!(message(&pack(b"hello")).contains("begins with 68 65 6c 6c"));
        }

        #[test]
        fn truncated_gzip_is_refused_wherever_it_ends() {
            let packed = pack(&GOOD);
            for end in 2..packed.len() {
                assert!(message(&packed[..end]).contains("gzip data end too early"), "{end}");
            }
        }

        #[test]
        fn corrupt_gzip_is_refused() {
            let packed = pack(&GOOD);
            // The checksum and the length are in the last eight bytes.
            for i in packed.len() - 8..packed.len() {
                let mut broken = packed.clone();
                broken[i] ^= 0x10;
                assert!(message(&broken).contains("gzip data are corrupt"), "{i}");
            }
            let mut broken = packed.clone();
            broken[10] = 0xff;
            assert!(message(&broken).contains("gzip data are corrupt"));
        }

        #[test]
        fn a_bomb_is_unpacked_no_further_than_its_header_promises() {
            let mut bytes = GOOD.to_vec();
            bytes.resize(50_000_000, 0);
            assert!(message(&pack(&bytes)).contains("more follow"));
        }
    }

    #[cfg(not(feature = "gzip"))]
    #[test]
    fn without_gzip_the_feature_is_named() {
        assert!(message(&[0x1f, 0x8b, 8]).contains("feature \"gzip\""));
    }
}
