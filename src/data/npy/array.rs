//! [`NpyArray`]: an array of any type that a `.npy` file may contain.

use std::io::{self, Read, Write};
use std::path::Path;

use half::f16;
use ndarray::{Array, ArrayD, Dimension, IxDyn, ShapeBuilder};

use super::header::Header;
use crate::data::files::input::{read_up_to, unreadable};
use crate::error::{Error, Result, message};

/// The supported types of NumPy arrays: `bool`, `f16`, `f32`, `f64` and the integers.
pub trait NpyElement: Copy + 'static {
    /// The type, for messages.
    const NAME: &'static str;

    #[doc(hidden)]
    fn take(array: NpyArray) -> Result<ArrayD<Self>, NpyArray>;
}

/// One type: its name in a header, without the byte order, and its values as bytes.
trait Values: Sized + Copy {
    const DESCR: &'static str;
    const SIZE: usize;

    /// The value of these bytes, lowest byte first; none if they represent no value.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;

    fn write(self, to: &mut Vec<u8>);
}

macro_rules! npy_types {
    ($($variant:ident $type:ty, $descr:literal, $name:literal;)*) => {
        /// The contents of a `.npy` file: an array of one of these types, in row-major order whatever the file's order is.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum NpyArray {
            $(
                #[doc = concat!("Of `", $name, "`.")]
                $variant(ArrayD<$type>),
            )*
        }

        impl NpyArray {
            /// The name of the elements' type, such as `f32`.
            pub fn dtype(&self) -> &'static str {
                match self {
                    $(NpyArray::$variant(_) => $name,)*
                }
            }

            /// The sizes of the axes.
            pub fn shape(&self) -> &[usize] {
                match self {
                    $(NpyArray::$variant(array) => array.shape(),)*
                }
            }

            /// Writes the array as a `.npy` file.
            ///
            /// # Errors
            /// The error of writing.
            pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
                match self {
                    $(NpyArray::$variant(array) => write(array, to),)*
                }
            }

            fn read_values(from: &mut impl Read, header: Header, name: &Path) -> Result<Self> {
                let (order, descr) = match header.descr.split_at_checked(1) {
                    Some((order @ ("<" | ">" | "|" | "="), descr)) => (order, descr),
                    _ => ("=", &header.descr[..]),
                };
                let swapped = match order {
                    ">" => true,
                    "=" => cfg!(target_endian = "big"),
                    _ => false,
                };
                match descr {
                    "?" => Ok(NpyArray::Bool(values(from, header, swapped, name)?)),
                    $(<$type>::DESCR => Ok(NpyArray::$variant(values(from, header, swapped, name)?)),)*
                    _ => Err(Error::Data(message!(
                        "{}: the elements are '{}', and read are bool, float16 to float64 and integers of 8 to \
                         64 bits. Convert the array with NumPy's astype.",
                        name.display(),
                        header.descr
                    ))),
                }
            }
        }

        $(
            impl NpyElement for $type {
                const NAME: &'static str = $name;

                fn take(array: NpyArray) -> Result<ArrayD<Self>, NpyArray> {
                    match array {
                        NpyArray::$variant(array) => Ok(array),
                        other => Err(other),
                    }
                }
            }

            impl<D: Dimension> From<Array<$type, D>> for NpyArray {
                fn from(array: Array<$type, D>) -> Self {
                    NpyArray::$variant(array.into_dyn())
                }
            }
        )*
    };
}

npy_types! {
    Bool bool, "b1", "bool";
    F16 f16, "f2", "f16";
    F32 f32, "f4", "f32";
    F64 f64, "f8", "f64";
    I8 i8, "i1", "i8";
    I16 i16, "i2", "i16";
    I32 i32, "i4", "i32";
    I64 i64, "i8", "i64";
    U8 u8, "u1", "u8";
    U16 u16, "u2", "u16";
    U32 u32, "u4", "u32";
    U64 u64, "u8", "u64";
}

macro_rules! numbers {
    ($($type:ty, $descr:literal;)*) => {$(
        impl Values for $type {
            const DESCR: &'static str = $descr;
            const SIZE: usize = size_of::<$type>();

            fn from_bytes(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(<$type>::from_le_bytes)
            }

            fn write(self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }
        }
    )*};
}

numbers! {
    f16, "f2"; f32, "f4"; f64, "f8";
    i8, "i1"; i16, "i2"; i32, "i4"; i64, "i8";
    u8, "u1"; u16, "u2"; u32, "u4"; u64, "u8";
}

impl Values for bool {
    const DESCR: &'static str = "b1";
    const SIZE: usize = 1;

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn write(self, to: &mut Vec<u8>) {
        to.push(self.into());
    }
}

impl NpyArray {
    /// Reads a `.npy` file that is in memory; `name` is for messages.
    ///
    /// # Errors
    /// [`Error::Data`] if the bytes are not such a file, end too early or continue after the array; or if the elements have
    /// another type: complex numbers, texts, structured records, Python objects.
    pub fn parse(bytes: &[u8], name: impl AsRef<Path>) -> Result<Self> {
        NpyArray::read(bytes, name)
    }

    /// Reads a `.npy` file to its end; `name` is for messages.
    ///
    /// # Errors
    /// As [`NpyArray::parse`], and [`Error::Io`] if reading fails.
    pub fn read(mut from: impl Read, name: impl AsRef<Path>) -> Result<Self> {
        let name = name.as_ref();
        let header = Header::read(&mut from, name)?;
        let array = NpyArray::read_values(&mut from, header, name)?;
        let mut more = Vec::new();
        match read_up_to(&mut from, 1, &mut more).map_err(|error| unreadable(name, error))? {
            0 => Ok(array),
            _ => Err(Error::Data(message!(
                "{}: the header promises {:?} elements of {}, and more bytes follow. The file is corrupt; \
                 write it again.",
                name.display(),
                array.shape(),
                array.dtype()
            ))),
        }
    }

    /// The array, if its elements are of type `T`.
    ///
    /// # Errors
    /// [`Error::DType`] with both types.
    pub fn into_array<T: NpyElement>(self) -> Result<ArrayD<T>> {
        T::take(self).map_err(|array| {
            Error::DType(message!(
                "npy: the array {:?} has elements of type {}, and {} is wanted. Ask for what it is, and \
                 convert it with mapv.",
                array.shape(),
                array.dtype(),
                T::NAME
            ))
        })
    }
}

/// The values after the header. Memory grows as they arrive.
fn values<T: Values>(
    from: &mut impl Read,
    header: Header,
    swapped: bool,
    name: &Path,
) -> Result<ArrayD<T>> {
    /// The bytes to read at once: a multiple of every element's size.
    const PIECE: u64 = 64 << 10;
    let Header { shape, fortran_order, descr } = header;
    let name = name.display();
    // An array without elements may have large axes, but none beyond the address range.
    let mut largest = shape.iter().filter(|size| **size > 0);
    let span = largest.try_fold(T::SIZE, |bytes, size| bytes.checked_mul(*size));
    if span.is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(Error::Data(message!(
            "{name}: the header promises {shape:?} elements of '{descr}', more than any memory holds. The \
             file is corrupt; write it again."
        )));
    }
    let count: usize = shape.iter().product();
    let (mut values, mut piece) = (Vec::new(), Vec::new());
    while values.len() < count {
        piece.clear();
        let wanted = ((count - values.len()) as u64).saturating_mul(T::SIZE as u64).min(PIECE);
        let found = read_up_to(from, wanted, &mut piece)
            .map_err(|error| unreadable(Path::new(&name.to_string()), error))?;
        if (found as u64) < wanted {
            return Err(Error::Data(message!(
                "{name}: the header promises {shape:?} elements of '{descr}', {} bytes, and only {} follow. \
                 The file is truncated; write it again.",
                count * T::SIZE,
                values.len() * T::SIZE + found
            )));
        }
        for bytes in piece.chunks_exact_mut(T::SIZE) {
            if swapped {
                bytes.reverse();
            }
            let Some(value) = T::from_bytes(bytes) else {
                return Err(Error::Data(message!(
                    "{name}: element {} is the byte {:#04x}, and a bool is 0 or 1. The file is corrupt.",
                    values.len(),
                    bytes[0]
                )));
            };
            values.push(value);
        }
    }
    let broken =
        |error| Error::Data(message!("{name}: no array has the shape {shape:?}: {error}."));
    let array =
        ArrayD::from_shape_vec(IxDyn(&shape).set_f(fortran_order), values).map_err(broken)?;
    Ok(match fortran_order {
        true => array.as_standard_layout().into_owned(),
        false => array,
    })
}

fn write<T: Values>(array: &ArrayD<T>, to: &mut impl Write) -> io::Result<()> {
    let order = if T::SIZE == 1 { '|' } else { '<' };
    let header = Header {
        descr: format!("{order}{}", T::DESCR),
        fortran_order: false,
        shape: array.shape().to_vec(),
    };
    to.write_all(&header.to_bytes())?;
    let mut piece = Vec::new();
    for value in array {
        value.write(&mut piece);
        if piece.len() >= 64 << 10 {
            to.write_all(&piece)?;
            piece.clear();
        }
    }
    to.write_all(&piece)
}
