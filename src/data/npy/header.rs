//! [`Header`]: the header of a `.npy` file, a Python dictionary as text.

use std::io::Read;
use std::path::Path;

use crate::data::files::input::{read_up_to, unreadable};
use crate::error::{Error, Result, message};

pub(super) const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The maximum length of a header: only structured records have longer ones, which are not supported.
const LONGEST: u32 = 64 << 10;

/// NumPy's limit for the number of axes.
const AXES: usize = 64;

/// The description of a file's contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// NumPy's name of the type, such as `<f4`.
    pub(super) descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
}

impl Header {
    /// The header at the front of a file.
    pub(super) fn read(from: &mut impl Read, name: &Path) -> Result<Self> {
        let mut start = Vec::new();
        let mut take = |count: u64, into: &mut Vec<u8>| {
            read_up_to(from, count, into).map_err(|error| unreadable(name, error))
        };
        let name = name.display();
        let short = |part: &str, found: usize, wanted: usize| {
            Error::Data(message!(
                "{name}: the {part} should take {wanted} bytes, and only {found} are there. The file is \
                 truncated; write it again."
            ))
        };
        let found = take(8, &mut start)?;
        if !start.starts_with(&MAGIC[..found.min(6)]) {
            return Err(Error::Data(message!(
                "{name}: the file begins with {}, and a .npy file begins with 93 4e 55 4d 50 59 (\"\\x93NUMPY\"). \
                 Check that it is the right file.",
                hex(&start[..found.min(6)])
            )));
        }
        if found < 8 {
            return Err(short("magic number and version", found, 8));
        }
        let (major, minor) = (start[6], start[7]);
        let width = match (major, minor) {
            (1, 0) => 2,
            (2 | 3, 0) => 4,
            _ => {
                return Err(Error::Data(message!(
                    "{name}: the file has version {major}.{minor} of the format; 1.0, 2.0 and 3.0 are supported."
                )));
            }
        };
        let mut length = Vec::new();
        let found = take(width, &mut length)?;
        if (found as u64) < width {
            return Err(short("header's length", found, width as usize));
        }
        let length = length.iter().rev().fold(0u32, |length, byte| length << 8 | u32::from(*byte));
        if length > LONGEST {
            return Err(Error::Data(message!(
                "{name}: the header has {length} bytes, and at most {LONGEST} are read. The file is corrupt, \
                 or holds records with names, which are not supported."
            )));
        }
        let mut text = Vec::new();
        let found = take(u64::from(length), &mut text)?;
        if found < length as usize {
            return Err(short("header", found, length as usize));
        }
        let broken = |why: &str| {
            let text: String =
                String::from_utf8_lossy(&text).trim_end().chars().take(200).collect();
            Error::Data(message!("{name}: the header is {text:?}; {why}."))
        };
        let text = std::str::from_utf8(&text).map_err(|_| broken("it is not valid UTF-8"))?;
        parse(text).map_err(|why| broken(&why))
    }

    /// The bytes before the numbers, a multiple of 64.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let sizes: String = match &self.shape[..] {
            [size] => format!("{size},"),
            sizes => sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
        };
        let order = if self.fortran_order { "True" } else { "False" };
        let mut text = format!(
            "{{'descr': '{}', 'fortran_order': {order}, 'shape': ({sizes}), }}",
            self.descr
        );
        // Magic, version, length, text and a line end; 64 axes fit into version 1.0.
        let padding = (10 + text.len() + 1).next_multiple_of(64) - (10 + text.len() + 1);
        text.extend(std::iter::repeat_n(' ', padding));
        text.push('\n');
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.bytes());
        bytes
    }
}

fn hex(bytes: &[u8]) -> String {
    match bytes {
        [] => "nothing".to_string(),
        _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
    }
}

/// The dictionary: three keys in any order, with a text, True or False, and a tuple of sizes.
fn parse(text: &str) -> Result<Header, String> {
    let mut rest = Rest(text);
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    rest.expect("{")?;
    while !rest.accept("}") {
        let key = rest.quoted()?;
        rest.expect(":")?;
        match key {
            "descr" => descr = Some(rest.descr()?),
            "fortran_order" => fortran_order = Some(rest.truth()?),
            "shape" => shape = Some(rest.sizes()?),
            _ => return Err(format!("it has the unknown key '{key}'")),
        }
        if !rest.accept(",") {
            rest.expect("}")?;
            break;
        }
    }
    if !rest.0.trim().is_empty() {
        return Err("more follows after its closing brace".to_string());
    }
    match (descr, fortran_order, shape) {
        (Some(descr), Some(fortran_order), Some(shape)) => {
            Ok(Header { descr, fortran_order, shape })
        }
        _ => Err("it should have the keys 'descr', 'fortran_order' and 'shape'".to_string()),
    }
}

/// The rest of the text.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn accept(&mut self, word: &str) -> bool {
        let rest = self.0.trim_start();
        match rest.strip_prefix(word) {
            Some(behind) => self.0 = behind,
            None => self.0 = rest,
        }
        self.0.len() < rest.len()
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        match self.accept(word) {
            true => Ok(()),
            false => {
                let found: String = self.0.chars().take(20).collect();
                Err(format!("{word} was expected instead of {found:?}"))
            }
        }
    }

    fn quoted(&mut self) -> Result<&'a str, String> {
        let quote = if self.accept("\"") { '"' } else { '\'' };
        if quote == '\'' {
            self.expect("'")?;
        }
        let (inside, behind) = self.0.split_once(quote).ok_or("a quote is not closed")?;
        self.0 = behind;
        Ok(inside)
    }

    fn descr(&mut self) -> Result<String, String> {
        if self.0.trim_start().starts_with('[') {
            let why = "its elements are records with names, which are not supported: save each field as an \
                       array of its own";
            return Err(why.to_string());
        }
        self.quoted().map(str::to_string)
    }

    fn truth(&mut self) -> Result<bool, String> {
        if self.accept("True") {
            return Ok(true);
        }
        self.expect("False").map(|()| false)
    }

    fn sizes(&mut self) -> Result<Vec<usize>, String> {
        self.expect("(")?;
        let mut sizes = Vec::new();
        while !self.accept(")") {
            let digits =
                self.0.len() - self.0.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, behind) = self.0.split_at(digits);
            sizes.push(number.parse().map_err(|_| format!("{number:?} is no size of an axis"))?);
            if sizes.len() > AXES {
                return Err(format!("an array has at most {AXES} axes"));
            }
            self.0 = behind;
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_as_numpy_writes_them() {
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }      \n";
        let header = Header { descr: "<f4".into(), fortran_order: false, shape: vec![3, 4] };
        assert_eq!(parse(text), Ok(header.clone()));
        assert_eq!(&header.to_bytes()[10..], format!("{:117}\n", text.trim_end()).as_bytes());
        for (sizes, shape) in [("()", vec![]), ("(5,)", vec![5]), ("(0, 3)", vec![0, 3])] {
            let text = format!("{{'shape': {sizes}, \"descr\": '|u1', 'fortran_order': True}}");
            let header = Header { descr: "|u1".into(), fortran_order: true, shape };
            assert_eq!(parse(&text), Ok(header.clone()), "{text}");
            let bytes = header.to_bytes();
            assert_eq!(bytes.len() % 64, 0);
            assert_eq!(Header::read(&mut &bytes[..], Path::new("x")).unwrap(), header);
        }
    }

    #[test]
    fn other_texts_are_refused_in_words() {
        for (text, why) in [
            ("", "{ was expected instead of \"\""),
            ("{'descr': '<f4'}", "should have the keys"),
            ("{'descr': [('a', '<f4')], }", "records with names"),
            ("{'descr': '<f4, ", "a quote is not closed"),
            ("{'shape': (-1,)}", "\"\" is no size of an axis"),
            ("{'shape': (99999999999999999999999,)}", "is no size of an axis"),
            ("{'shape': (1 2)}", ") was expected instead of \"2)}\""),
            ("{'fortran_order': 1}", "False was expected instead of \"1}\""),
            ("{'other': 1}", "the unknown key 'other'"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", "more follows"),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
        }
    }
}
