//! Object headers: the messages that describe an object.

use std::borrow::Cow;

use super::bytes::{Broken, Cursor, Seen, UNDEFINED, part};
use super::links::{self, Link};
use super::texts::Heaps;
use super::types::Type;
use crate::host_array::{HostArray, HostDType};

/// The contents of a header.
#[derive(Debug, Default)]
pub(super) struct Object<'a> {
    /// The addresses of a group's B-tree and heap.
    pub(super) group: Option<(u64, u64)>,
    /// The links of a group with names beyond ASCII, and the heap and the B-tree for further ones.
    pub(super) links: Vec<Link<'a>>,
    pub(super) dense: Option<(u64, u64)>,
    space: Option<Vec<usize>>,
    elements: Option<Type>,
    layout: Option<Layout<'a>>,
    attributes: Vec<Attribute<'a>>,
}

#[derive(Debug)]
enum Layout<'a> {
    Here(&'a [u8]),
    At { address: u64, size: u64 },
    Other(&'static str),
}

#[derive(Debug)]
pub(super) struct Attribute<'a> {
    pub(super) name: Cow<'a, str>,
    elements: Type,
    count: usize,
    data: &'a [u8],
}

impl<'a> Object<'a> {
    /// Reads the header at an address, and its continuations.
    pub(super) fn read(file: &'a [u8], at: u64, seen: &mut Seen) -> Result<Self, Broken> {
        seen.note(at)?;
        let head = part(file, at, 16, "an object header")?;
        if head.starts_with(b"OHDR") {
            return Err(Broken(
                "it has object headers of version 2; only version 1 is supported, which h5py writes unless \
                 libver='latest' is set"
                    .into(),
            ));
        }
        let mut from = Cursor::new(head, "an object header");
        let (version, _) = (from.number(1)?, from.number(1)?);
        if version != 1 {
            return Err(Broken(format!("at byte {at} should be an object header of version 1")));
        }
        let (mut left, _, size) = (from.number(2)?, from.number(4)?, from.number(4)?);
        let mut object = Object::default();
        let mut blocks = vec![part(file, at + 16, size, "an object header")?];
        seen.spend(size, 1)?;
        while let Some(block) = blocks.pop() {
            let mut from = Cursor::new(block, "an object header");
            while left > 0 && from.rest.len() >= 8 {
                left -= 1;
                let (kind, size, flags) =
                    (from.number(2)?, from.number(2)? as usize, from.number(1)?);
                from.take(3)?;
                let message = from.take(size)?;
                if kind == 0x10 {
                    let mut to = Cursor::new(message, "an object header's continuation");
                    let (at, size) = (to.number(8)?, to.number(8)?);
                    seen.note(at)?;
                    seen.spend(size, 1)?;
                    blocks.push(part(file, at, size, "an object header")?);
                } else if flags & 2 != 0 && matches!(kind, 1 | 3 | 8) {
                    return Err(Broken(
                        "a type or shape is shared between objects, which is not supported".into(),
                    ));
                } else {
                    object.message(kind, message)?;
                }
            }
        }
        Ok(object)
    }

    fn message(&mut self, kind: u64, message: &'a [u8]) -> Result<(), Broken> {
        let mut from = Cursor::new(message, "a message");
        match kind {
            0x01 => self.space = Some(space(message)?),
            0x02 => self.dense = links::info(message)?,
            0x06 => self.links.push(links::link(message)?),
            0x03 => self.elements = Some(Type::parse(message)?),
            0x08 => self.layout = Some(layout(message)?),
            0x0c => self.attributes.push(Attribute::parse(message)?),
            0x11 => self.group = Some((from.number(8)?, from.number(8)?)),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute<'a>> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    pub(super) fn is_dataset(&self) -> bool {
        self.layout.is_some()
    }

    /// A dataset's values.
    pub(super) fn values(
        &self,
        file: &'a [u8],
        heaps: &mut Heaps<'a>,
    ) -> Result<HostArray<'a>, Broken> {
        let (Some(shape), Some(elements), Some(layout)) =
            (&self.space, self.elements, &self.layout)
        else {
            return Err(Broken("it lacks a shape, a type or a location".into()));
        };
        let mut as_bfloat = || {
            let tag = self.attribute("dtype").and_then(|attribute| attribute.texts(heaps).ok());
            tag.is_some_and(|texts| texts == ["bfloat16"])
        };
        let (dtype, big_endian) = match elements {
            Type::Number { dtype, big_endian } => (dtype, big_endian),
            Type::Opaque { size: 2 } if as_bfloat() => (HostDType::Bf16, false),
            other => {
                return Err(Broken(format!(
                    "it holds {}; only numbers are supported",
                    other.shown()
                )));
            }
        };
        let Some(needed) = dtype.array_bytes(shape) else {
            return Err(Broken(format!("its shape {shape:?} is too large for any memory")));
        };
        let bytes = match *layout {
            Layout::Here(bytes) => bytes,
            Layout::At { address: UNDEFINED, .. } if needed == 0 => &[],
            Layout::At { address: UNDEFINED, .. } => {
                return Err(Broken("its elements were never written".into()));
            }
            Layout::At { address, size } => part(file, address, size, "its elements")?,
            Layout::Other(what) => return Err(Broken(what.into())),
        };
        if bytes.len() != needed {
            let (name, found) = (dtype.file_name(), bytes.len());
            return Err(Broken(format!(
                "{shape:?} of {name} need {needed} bytes, and it has {found}"
            )));
        }
        let mut bytes = Cow::Borrowed(bytes);
        if let Some(size) = dtype.size().filter(|size| big_endian && *size > 1) {
            bytes.to_mut().chunks_exact_mut(size).for_each(|value| value.reverse());
        }
        // Any value but 0 is true in h5py's enumeration of Booleans.
        HostArray::new(dtype, &shape[..], bytes).map_err(|error| Broken(error.to_string()))
    }
}

fn space(message: &[u8]) -> Result<Vec<usize>, Broken> {
    let mut from = Cursor::new(message, "a shape");
    let (version, rank, _) = (from.number(1)?, from.number(1)?, from.number(1)?);
    match version {
        1 => drop(from.take(5)?),
        // 0 is a scalar, 1 an array, 2 an empty dataspace.
        2 if from.number(1)? == 2 => return Ok(vec![0]),
        2 => {}
        _ => {
            return Err(Broken(format!(
                "a shape has version {version}; only 1 and 2 are supported"
            )));
        }
    }
    let size = |from: &mut Cursor<'_>| {
        let size = from.number(8)?;
        usize::try_from(size).map_err(|_| Broken(format!("an axis has {size} elements")))
    };
    (0..rank).map(|_| size(&mut from)).collect()
}

fn layout(message: &[u8]) -> Result<Layout<'_>, Broken> {
    let mut from = Cursor::new(message, "a dataset's layout");
    let (version, class) = (from.number(1)?, from.number(1)?);
    Ok(match (version, class) {
        (3 | 4, 0) => {
            let size = from.number(2)? as usize;
            Layout::Here(from.take(size)?)
        }
        (3 | 4, 1) => Layout::At { address: from.number(8)?, size: from.number(8)? },
        (3 | 4, 2) => Layout::Other(
            "its elements are stored in chunks, perhaps compressed; only contiguous ones are supported, as Keras \
             writes them",
        ),
        _ => Layout::Other("its elements are stored in a form that is not supported"),
    })
}

impl<'a> Attribute<'a> {
    fn parse(message: &'a [u8]) -> Result<Self, Broken> {
        let mut from = Cursor::new(message, "an attribute");
        let (version, _) = (from.number(1)?, from.number(1)?);
        let mut size = || from.number(2).map(|size| size as usize);
        let (name, elements, shape) = (size()?, size()?, size()?);
        let mut next = |length| if version == 1 { from.padded(length) } else { from.take(length) };
        if version == 3 {
            // The character set.
            next(1)?;
        } else if !matches!(version, 1 | 2) {
            return Err(Broken(format!(
                "an attribute has version {version}; only 1 to 3 are supported"
            )));
        }
        let (name, elements, shape) = (next(name)?, next(elements)?, next(shape)?);
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let count = space(shape)?.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
        let elements = Type::parse(elements)?;
        let count =
            count.ok_or_else(|| Broken("an attribute is too large for any memory".into()))?;
        Ok(Attribute { name: String::from_utf8_lossy(name), elements, count, data: from.rest })
    }

    /// The strings of the attribute.
    pub(super) fn texts(&self, heaps: &mut Heaps<'a>) -> Result<Vec<Cow<'a, str>>, Broken> {
        let size = match self.elements {
            Type::Text { size } => size,
            Type::TextElsewhere => 16,
            _ if self.count == 0 => return Ok(Vec::new()),
            other => {
                return Err(Broken(format!("the attribute '{}' is {}", self.name, other.shown())));
            }
        };
        let needed =
            self.count.checked_mul(size).filter(|needed| *needed <= self.data.len() && size > 0);
        let Some(needed) = needed else {
            return Err(Broken(format!("the attribute '{}' ends too early", self.name)));
        };
        // Thousands of elements may refer to one string.
        let mut left = heaps.file_size();
        let mut text = |element: &'a [u8]| -> Result<Cow<'a, str>, Broken> {
            let bytes = match self.elements {
                Type::TextElsewhere => heaps.text(element)?,
                _ => element.split(|byte| *byte == 0).next().unwrap_or_default(),
            };
            left = left.checked_sub(bytes.len()).ok_or_else(|| {
                Broken(format!("the attribute '{}' holds more text than the file", self.name))
            })?;
            Ok(String::from_utf8_lossy(bytes))
        };
        self.data[..needed].chunks_exact(size).map(&mut text).collect()
    }
}
