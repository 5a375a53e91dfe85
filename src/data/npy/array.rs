//! Reads and writes `.npy` files: a header, and the elements of an array.

use std::io::{self, Read, Write};
use std::path::Path;

use super::header::Header;
use crate::data::files::input::{read_up_to, unreadable};
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};

/// Reads a `.npy` file that is in memory; `name` is for messages.
///
/// # Errors
/// [`Error::Data`] if the bytes are not such a file, end too early or continue after the array; or if the elements have
/// another type than Booleans and numbers: texts, structured records, Python objects.
pub fn parse(bytes: &[u8], name: impl AsRef<Path>) -> Result<HostArray<'static>> {
    read(bytes, name)
}

/// Reads a `.npy` file to its end; `name` is for messages. The array is in row-major order whatever the file's order is.
///
/// # Errors
/// As [`parse`], and [`Error::Io`] if reading fails.
pub fn read(mut from: impl Read, name: impl AsRef<Path>) -> Result<HostArray<'static>> {
    let name = name.as_ref();
    let header = Header::read(&mut from, name)?;
    let array = elements(&mut from, header, name)?;
    let mut more = Vec::new();
    match read_up_to(&mut from, 1, &mut more).map_err(|error| unreadable(name, error))? {
        0 => Ok(array),
        _ => Err(Error::Data(message!(
            "{}: the header promises {:?} elements of {}, and more bytes follow. The file is corrupt; \
             write it again.",
            name.display(),
            array.shape(),
            array.dtype().name()
        ))),
    }
}

/// Writes an array as a `.npy` file.
///
/// # Errors
/// The error of writing; [`io::ErrorKind::InvalidInput`] if NumPy does not have the dtype.
pub fn write(array: &HostArray<'_>, to: &mut impl Write) -> io::Result<()> {
    let header =
        header(array).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    to.write_all(&header.to_bytes())?;
    to.write_all(array.bytes())
}

/// The header for an array, if NumPy has its dtype.
pub(super) fn header(array: &HostArray<'_>) -> Result<Header> {
    let Some(name) = array.dtype().numpy_name() else {
        return Err(Error::DType(message!(
            "npy: the array {:?} is {}, which NumPy does not have. Convert it first.",
            array.shape(),
            array.dtype()
        )));
    };
    let order = if array.dtype().size() == Some(1) { '|' } else { '<' };
    let (descr, shape) = (format!("{order}{name}"), array.shape().to_vec());
    Ok(Header { descr, fortran_order: false, shape })
}

/// The dtype of a header, and whether the highest byte is first.
fn dtype(descr: &str) -> Option<(HostDType, bool)> {
    let (order, name) = match descr.split_at_checked(1) {
        Some((order @ ("<" | ">" | "|" | "="), name)) => (order, name),
        _ => ("=", descr),
    };
    let swapped = match order {
        ">" => true,
        "=" => cfg!(target_endian = "big"),
        _ => false,
    };
    let name = if name == "?" { "b1" } else { name };
    Some((HostDType::from_numpy_name(name)?, swapped))
}

/// The elements after the header. Memory grows as they arrive.
fn elements(from: &mut impl Read, header: Header, name: &Path) -> Result<HostArray<'static>> {
    let Header { mut shape, fortran_order, descr } = header;
    let shown = name.display();
    let Some((dtype, swapped)) = dtype(&descr) else {
        return Err(Error::Data(message!(
            "{shown}: the elements are '{descr}'; supported are bool, float16 to float64, complex64, complex128 and \
             integers of 8 to 64 bits. Convert the array with NumPy's astype."
        )));
    };
    let Some(wanted) = dtype.array_bytes(&shape) else {
        return Err(Error::Data(message!(
            "{shown}: the header promises {shape:?} elements of '{descr}', more than memory can hold. The file is \
             corrupt; write it again."
        )));
    };
    let mut bytes = Vec::new();
    let found = read_up_to(from, wanted as u64, &mut bytes);
    let found = found.map_err(|error| unreadable(name, error))?;
    if found < wanted {
        return Err(Error::Data(message!(
            "{shown}: the header promises {shape:?} elements of '{descr}', {wanted} bytes, and only {found} follow. \
             The file is truncated; write it again."
        )));
    }
    if dtype == HostDType::Bool {
        if let Some(at) = bytes.iter().position(|byte| *byte > 1) {
            return Err(Error::Data(message!(
                "{shown}: element {at} is the byte {:#04x}, and a bool is 0 or 1. The file is corrupt.",
                bytes[at]
            )));
        }
    }
    if swapped {
        // The parts of a complex number have their own order.
        let complex = matches!(dtype, HostDType::Complex64 | HostDType::Complex128);
        let parts = if complex { 2 } else { 1 };
        let size = dtype.size().unwrap_or(1) / parts;
        bytes.chunks_exact_mut(size).for_each(|value| value.reverse());
    }
    if !fortran_order {
        return HostArray::new(dtype, shape, bytes);
    }
    shape.reverse();
    let axes: Vec<usize> = (0..shape.len()).rev().collect();
    HostArray::new(dtype, shape, bytes)?.permuted(&axes)
}
