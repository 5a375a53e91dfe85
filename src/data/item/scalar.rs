//! [`ItemScalar`]: the values in the arrays of a dataset.

use std::fmt::Debug;
use std::path::PathBuf;

use crate::data::codec::{Reader, Writer};
use crate::error::Result;

/// A number, `bool`, a text or a path: an entry of a dataset's arrays. They stay on the host, which supports every type.
pub trait ItemScalar: Clone + Debug + Default + PartialEq + Send + Sync + 'static {
    /// The type's name in an [`ItemSpec`](super::ItemSpec).
    const NAME: &'static str;

    /// The minimum size of a saved value in bytes.
    #[doc(hidden)]
    const BYTES: usize;

    /// Writes a value.
    #[doc(hidden)]
    fn write(&self, out: &mut Writer);

    /// Reads a value that [`ItemScalar::write`] wrote.
    #[doc(hidden)]
    fn read(from: &mut Reader<'_>) -> Result<Self>;
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl ItemScalar for $t {
            const NAME: &'static str = stringify!($t);
            const BYTES: usize = size_of::<$t>();

            fn write(&self, out: &mut Writer) {
                out.raw(&self.to_le_bytes());
            }

            fn read(from: &mut Reader<'_>) -> Result<Self> {
                from.array().map(<$t>::from_le_bytes)
            }
        }
    )*};
}
// A number is written as its bytes.
numbers!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

impl ItemScalar for half::f16 {
    const NAME: &'static str = "f16";
    const BYTES: usize = 2;

    fn write(&self, out: &mut Writer) {
        out.raw(&self.to_le_bytes());
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        from.array().map(half::f16::from_le_bytes)
    }
}

impl ItemScalar for bool {
    const NAME: &'static str = "bool";
    const BYTES: usize = 1;

    fn write(&self, out: &mut Writer) {
        out.flag(*self);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        from.flag()
    }
}

impl ItemScalar for String {
    const NAME: &'static str = "string";
    const BYTES: usize = 8;

    fn write(&self, out: &mut Writer) {
        out.block(self.as_bytes());
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        from.text().map(str::to_string)
    }
}

impl ItemScalar for PathBuf {
    const NAME: &'static str = "path";
    const BYTES: usize = 8;

    fn write(&self, out: &mut Writer) {
        out.block(self.as_os_str().as_encoded_bytes());
    }

    /// A path that is not UTF-8 is read back with replacement characters if the system cannot make it from bytes.
    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let bytes = from.block()?;
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            Ok(PathBuf::from(std::ffi::OsStr::from_bytes(bytes)))
        }
        #[cfg(not(unix))]
        Ok(PathBuf::from(String::from_utf8_lossy(bytes).into_owned()))
    }
}
