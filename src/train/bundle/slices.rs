//! Tensors that were stored in slices: the names of the slices, and the part of the tensor that each covers.

use super::elements;
use super::proto::TensorSlice;

/// The part of each axis of its tensor that a slice covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slice {
    /// The first index and, unless it is the whole axis, the number of indices.
    extents: Vec<(usize, Option<usize>)>,
}

impl Slice {
    /// The slice in a message, if it is within a tensor of this shape.
    pub(super) fn from_message(message: &TensorSlice, shape: &[usize]) -> Option<Self> {
        if message.extent.len() != shape.len() {
            return None;
        }
        let mut extents = Vec::with_capacity(shape.len());
        for (extent, &size) in message.extent.iter().zip(shape) {
            let start = usize::try_from(extent.start).ok()?;
            // TensorFlow writes no length, or -1, for a whole axis.
            let length = match extent.length {
                None | Some(-1) if start == 0 => None,
                None => return None,
                Some(length) => Some(usize::try_from(length).ok()?),
            };
            if start.checked_add(length.unwrap_or(size))? > size {
                return None;
            }
            extents.push((start, length));
        }
        Some(Slice { extents })
    }

    /// The key of the slice's own entry (`EncodeTensorNameSlice` in TensorFlow's `saved_tensor_slice_util.cc`).
    pub(super) fn key(&self, name: &[u8]) -> Vec<u8> {
        let mut key = Vec::new();
        ordered_number(0, &mut key);
        ordered_string(name, &mut key);
        ordered_number(self.extents.len() as u64, &mut key);
        for &(start, length) in &self.extents {
            ordered_signed(start as i64, &mut key);
            ordered_signed(length.map_or(-1, |length| length as i64), &mut key);
        }
        key
    }

    pub(super) fn shape(&self, whole: &[usize]) -> Vec<usize> {
        self.extents.iter().zip(whole).map(|(&(_, length), &size)| length.unwrap_or(size)).collect()
    }

    /// Whether two slices of one tensor have an element in common.
    pub(super) fn overlaps(&self, other: &Self, whole: &[usize]) -> bool {
        let pairs = self.extents.iter().zip(&other.extents).zip(whole);
        pairs.into_iter().all(|((&(a, a_length), &(b, b_length)), &size)| {
            let (a_end, b_end) = (a + a_length.unwrap_or(size), b + b_length.unwrap_or(size));
            a.max(b) < a_end.min(b_end)
        })
    }

    /// Calls `copy` for each run of elements that is contiguous in both: the first index in the slice, the first index in the
    /// tensor, and the length.
    pub(super) fn runs(&self, whole: &[usize], mut copy: impl FnMut(usize, usize, usize)) {
        let shape = self.shape(whole);
        let Some(count) = elements(&shape).filter(|&count| count > 0) else { return };
        // After the last axis that the slice covers only in part, all elements are contiguous.
        let split = shape.iter().zip(whole).rposition(|(part, size)| part != size).unwrap_or(0);
        let run: usize = shape.get(split..).unwrap_or(&[]).iter().product();
        let mut index = vec![0; split];
        for from in (0..count).step_by(run) {
            let mut to = 0;
            for (axis, &size) in whole.iter().enumerate() {
                to = to * size + self.extents[axis].0 + index.get(axis).copied().unwrap_or(0);
            }
            copy(from, to, run);
            for axis in (0..split).rev() {
                index[axis] += 1;
                if index[axis] < shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
    }
}

// TensorFlow's `core/lib/strings/ordered_code`: codes whose order is that of the values.

/// A number: its length in bytes, then the bytes, highest first.
fn ordered_number(number: u64, to: &mut Vec<u8>) {
    let bytes = number.to_be_bytes();
    let zeros = number.leading_zeros() as usize / 8;
    to.push((bytes.len() - zeros) as u8);
    to.extend_from_slice(&bytes[zeros..]);
}

/// A string, with a terminator that no string contains.
fn ordered_string(string: &[u8], to: &mut Vec<u8>) {
    for &byte in string {
        to.push(byte);
        match byte {
            0 => to.push(0xff),
            0xff => to.push(0),
            _ => {}
        }
    }
    to.extend_from_slice(&[0, 1]);
}

/// A signed number: as many leading bits as it has bytes, then its own bits, all inverted if it is negative.
fn ordered_signed(number: i64, to: &mut Vec<u8>) {
    const HEADS: [[u8; 2]; 11] = [
        [0, 0],
        [0x80, 0],
        [0xc0, 0],
        [0xe0, 0],
        [0xf0, 0],
        [0xf8, 0],
        [0xfc, 0],
        [0xfe, 0],
        [0xff, 0],
        [0xff, 0x80],
        [0xff, 0xc0],
    ];
    let magnitude = if number < 0 { !number } else { number };
    let bits = 64 - magnitude.leading_zeros() as usize;
    // Seven bits per byte, one of them the sign.
    let length = bits / 7 + 1;
    let mut bytes = [if number < 0 { 0xff } else { 0 }; 10];
    bytes[2..].copy_from_slice(&number.to_be_bytes());
    let code = &mut bytes[10 - length..];
    code[0] ^= HEADS[length][0];
    if let Some(second) = code.get_mut(1) {
        *second ^= HEADS[length][1];
    }
    to.extend_from_slice(code);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(extents: &[(usize, Option<usize>)]) -> Slice {
        Slice { extents: extents.to_vec() }
    }

    #[test]
    fn signed_numbers_are_coded_in_order() {
        let numbers = [
            i64::MIN,
            -1 << 40,
            -8193,
            -8192,
            -65,
            -64,
            -1,
            0,
            1,
            63,
            64,
            8191,
            8192,
            1 << 33,
            i64::MAX,
        ];
        let codes = numbers.map(|number| {
            let mut code = Vec::new();
            ordered_signed(number, &mut code);
            code
        });
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "{codes:x?}");
        assert_eq!(codes[6], [0x7f]);
        assert_eq!(codes[7], [0x80]);
        assert_eq!(codes[10], [0xc0, 0x40]);
    }

    #[test]
    fn runs_say_where_a_piece_lies() {
        let runs = |slice: Slice, whole: &[usize]| {
            let mut found = Vec::new();
            slice.runs(whole, |from, to, count| found.push((from, to, count)));
            found
        };
        let piece = slice(&[(1, Some(2)), (0, None)]);
        assert_eq!(runs(piece, &[4, 3]), [(0, 3, 6)]);
        let piece = slice(&[(1, Some(2)), (1, Some(2))]);
        assert_eq!(runs(piece, &[4, 3]), [(0, 4, 2), (2, 7, 2)]);
        let piece = slice(&[(0, None), (2, Some(1)), (0, None)]);
        assert_eq!(runs(piece, &[2, 3, 5]), [(0, 10, 5), (5, 25, 5)]);
        assert_eq!(runs(slice(&[(0, None)]), &[0]), []);
        assert_eq!(runs(slice(&[]), &[]), [(0, 0, 1)]);
    }
}
