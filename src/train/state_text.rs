//! The text of a [`CheckpointState`]: `name: value` lines, strings in quotes with escapes.
//!
//! The reader accepts a protocol buffer's text format: comments, both kinds of quotes, adjacent strings, lists in
//! brackets, separators after fields.

use std::path::{Path, PathBuf};

/// The contents of the file `checkpoint` of a folder (`tf.train.CheckpointState`). All paths include the folder.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct CheckpointState {
    /// The newest checkpoint.
    pub model_checkpoint_path: PathBuf,
    /// Those that are kept, oldest first.
    pub all_model_checkpoint_paths: Vec<PathBuf>,
    /// The time when each was saved, in seconds since 1970; empty if it was not recorded.
    pub all_model_checkpoint_timestamps: Vec<f64>,
    /// The time when one was last preserved permanently, in seconds since 1970.
    pub last_preserved_timestamp: Option<f64>,
}

/// The text as TensorFlow writes it.
pub(super) fn write(state: &CheckpointState) -> Vec<u8> {
    let mut text = Vec::new();
    let mut line = |name: &str, value: &[u8]| {
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value);
        text.push(b'\n');
    };
    line("model_checkpoint_path", &quoted(&state.model_checkpoint_path));
    for path in &state.all_model_checkpoint_paths {
        line("all_model_checkpoint_paths", &quoted(path));
    }
    for time in &state.all_model_checkpoint_timestamps {
        line("all_model_checkpoint_timestamps", format!("{time:?}").as_bytes());
    }
    if let Some(time) = state.last_preserved_timestamp {
        line("last_preserved_timestamp", format!("{time:?}").as_bytes());
    }
    text
}

/// The state in a text, with the paths as written there, or the reason why the text is invalid.
pub(super) fn read(text: &[u8]) -> Result<CheckpointState, String> {
    let mut reader = Reader { text, at: 0 };
    let mut state = CheckpointState::default();
    let mut newest = None;
    let result = loop {
        match reader.field(&mut state, &mut newest) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(what) => break Err(what),
        }
    };
    result.map_err(|what| {
        let line = 1 + text[..reader.at.min(text.len())].iter().filter(|&&b| b == b'\n').count();
        format!("line {line} {what}")
    })?;
    state.model_checkpoint_path = newest.unwrap_or_default();
    Ok(state)
}

fn quoted(path: &Path) -> Vec<u8> {
    let mut text = vec![b'"'];
    let bytes = bytes_of(path);
    // Bytes that are not text need one escape each.
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => text.extend_from_slice(b"\\n"),
                '\r' => text.extend_from_slice(b"\\r"),
                '\t' => text.extend_from_slice(b"\\t"),
                '"' | '\\' => text.extend_from_slice(&[b'\\', c as u8]),
                c if c.is_ascii_control() => {
                    text.extend_from_slice(format!("\\{:03o}", c as u32).as_bytes());
                }
                c => text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        for byte in chunk.invalid() {
            text.extend_from_slice(format!("\\{byte:03o}").as_bytes());
        }
    }
    text.push(b'"');
    text
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads a field; false at the end.
    fn field(
        &mut self,
        state: &mut CheckpointState,
        newest: &mut Option<PathBuf>,
    ) -> Result<bool, String> {
        self.skip();
        let name = self.word();
        match name {
            "" if self.at == self.text.len() => return Ok(false),
            "" => return Err("does not begin with the name of a field".to_string()),
            "model_checkpoint_path" => {
                self.colon(name)?;
                let path = path_of(self.string()?)?;
                once(newest.replace(path).is_none(), name)?;
            }
            "all_model_checkpoint_paths" => {
                self.values(name, |reader| {
                    state.all_model_checkpoint_paths.push(path_of(reader.string()?)?);
                    Ok(())
                })?;
            }
            "all_model_checkpoint_timestamps" => {
                self.values(name, |reader| {
                    state.all_model_checkpoint_timestamps.push(reader.number()?);
                    Ok(())
                })?;
            }
            "last_preserved_timestamp" => {
                self.colon(name)?;
                let time = self.number()?;
                once(state.last_preserved_timestamp.replace(time).is_none(), name)?;
            }
            other => {
                return Err(format!("has the field \"{other}\", which the file does not have"));
            }
        }
        self.skip();
        if matches!(self.text.get(self.at), Some(b',' | b';')) {
            self.at += 1;
        }
        Ok(true)
    }

    /// One value, or several in brackets.
    fn values(
        &mut self,
        name: &str,
        mut one: impl FnMut(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        self.colon(name)?;
        if self.text.get(self.at) != Some(&b'[') {
            return one(self);
        }
        self.at += 1;
        self.skip();
        if self.text.get(self.at) == Some(&b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            one(self)?;
            self.skip();
            self.at += 1;
            match self.text.get(self.at - 1) {
                Some(b',') => self.skip(),
                Some(b']') => return Ok(()),
                _ => return Err(format!("has a list of {name} without an end")),
            }
        }
    }

    fn colon(&mut self, name: &str) -> Result<(), String> {
        self.skip();
        if self.text.get(self.at) != Some(&b':') {
            return Err(format!("has no colon behind {name}"));
        }
        self.at += 1;
        self.skip();
        Ok(())
    }

    /// Skips spaces, line ends and comments.
    fn skip(&mut self) {
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'#' => {
                    let rest = &self.text[self.at..];
                    self.at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
                }
                byte if byte.is_ascii_whitespace() || *byte == 0x0b => self.at += 1,
                _ => return,
            }
        }
    }

    fn word(&mut self) -> &'a str {
        self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }

    /// The next bytes that satisfy the predicate, which only ASCII bytes do.
    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|&byte| !wanted(byte)).unwrap_or(rest.len());
        self.at += length;
        std::str::from_utf8(&rest[..length]).unwrap_or_default()
    }

    fn number(&mut self) -> Result<f64, String> {
        let word =
            self.take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-'));
        let number = word.strip_suffix(['f', 'F']).filter(|rest| !rest.ends_with(['n', 'N']));
        let number = number.unwrap_or(word).parse();
        number.map_err(|_| format!("has \"{}\", which is not a number", word.escape_debug()))
    }

    /// A quoted string, or several that form one.
    fn string(&mut self) -> Result<Vec<u8>, String> {
        let mut string = Vec::new();
        let mut quotes = 0;
        while let Some(&quote @ (b'"' | b'\'')) = self.text.get(self.at) {
            quotes += 1;
            self.at += 1;
            loop {
                let byte = *self.text.get(self.at).ok_or("has a string without an end")?;
                if byte == b'\n' {
                    return Err("has a string without an end".to_string());
                }
                self.at += 1;
                match byte {
                    byte if byte == quote => break,
                    b'\\' => self.escape(&mut string)?,
                    byte => string.push(byte),
                }
            }
            self.skip();
        }
        if quotes == 0 {
            return Err("has a value that is no string in quotes".to_string());
        }
        Ok(string)
    }

    fn escape(&mut self, string: &mut Vec<u8>) -> Result<(), String> {
        let kind = self.text.get(self.at).copied().unwrap_or(b'\n');
        self.at += 1;
        let byte = match kind {
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            b'\\' | b'\'' | b'"' | b'?' => kind,
            b'0'..=b'7' => {
                self.at -= 1;
                let code = self.digits(8, 3);
                u8::try_from(code.unwrap_or(256)).map_err(|_| "has an escape beyond a byte")?
            }
            b'x' | b'X' => self.digits(16, 2).ok_or("has \\x without digits")? as u8,
            b'u' | b'U' => {
                let count = if kind == b'u' { 4 } else { 8 };
                let code = self.digits(16, count).and_then(char::from_u32);
                let c = code.ok_or("has an escape that is not a character")?;
                string.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            other => return Err(format!("has the escape \\{}", other.escape_ascii())),
        };
        string.push(byte);
        Ok(())
    }

    /// The number of at most this many digits; none if there is no digit.
    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let rest = &self.text[self.at.min(self.text.len())..];
        let digits = rest.iter().take(most).map_while(|&byte| char::from(byte).to_digit(radix));
        let digits: Vec<u32> = digits.collect();
        self.at += digits.len();
        if digits.is_empty() {
            return None;
        }
        Some(digits.iter().fold(0, |number, digit| number * radix + digit))
    }
}

fn once(first: bool, name: &str) -> Result<(), String> {
    if first { Ok(()) } else { Err(format!("has {name} for the second time")) }
}

#[cfg(unix)]
fn bytes_of(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}

/// On this system a path that is not text has no bytes.
#[cfg(not(unix))]
fn bytes_of(path: &Path) -> Vec<u8> {
    path.to_string_lossy().into_owned().into_bytes()
}

#[cfg(unix)]
fn path_of(bytes: Vec<u8>) -> Result<PathBuf, String> {
    use std::os::unix::ffi::OsStringExt;
    if bytes.contains(&0) {
        return Err("has a path with a byte 0".to_string());
    }
    Ok(std::ffi::OsString::from_vec(bytes).into())
}

#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> Result<PathBuf, String> {
    let text = String::from_utf8(bytes).map_err(|_| "has a path that is not UTF-8".to_string())?;
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(text: &str) -> CheckpointState {
        read(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_is_written_is_what_tensorflow_writes() {
        let state = CheckpointState {
            model_checkpoint_path: "a\"b'\\\n\tä\u{1}x?".into(),
            all_model_checkpoint_paths: vec!["p".into()],
            all_model_checkpoint_timestamps: vec![1795209925.442894, 1e-7, 0.0],
            last_preserved_timestamp: Some(3.0),
        };
        let text = write(&state);
        let wanted = "model_checkpoint_path: \"a\\\"b'\\\\\\n\\tä\\001x?\"\n\
                      all_model_checkpoint_paths: \"p\"\n\
                      all_model_checkpoint_timestamps: 1795209925.442894\n\
                      all_model_checkpoint_timestamps: 1e-7\n\
                      all_model_checkpoint_timestamps: 0.0\n\
                      last_preserved_timestamp: 3.0\n";
        assert_eq!(std::str::from_utf8(&text).unwrap(), wanted);
        assert_eq!(read(&text).unwrap(), state);
    }

    #[test]
    fn all_that_a_text_may_be_is_read() {
        let found = state(
            "# written by hand\nmodel_checkpoint_path : 'a' \"\\x62\\143\" # and more\n'\\u00e4\\U0001F600\\?';\
             all_model_checkpoint_paths: [\"a\", 'b'],all_model_checkpoint_paths:\"c\" \
             all_model_checkpoint_paths: [] all_model_checkpoint_timestamps: [1, -2.5e3, inf, .5f] \
             last_preserved_timestamp: 7f",
        );
        assert_eq!(found.model_checkpoint_path, Path::new("abcä😀?"));
        assert_eq!(found.all_model_checkpoint_paths, ["a", "b", "c"].map(PathBuf::from));
        assert_eq!(found.all_model_checkpoint_timestamps, [1.0, -2500.0, f64::INFINITY, 0.5]);
        assert_eq!(found.last_preserved_timestamp, Some(7.0));
        assert_eq!(state(""), CheckpointState::default());
    }

    #[test]
    fn errors_name_their_line() {
        for (text, what) in [
            ("\u{1f}", "line 1 does not begin"),
            ("a: 1", "line 1 has the field \"a\""),
            ("model_checkpoint_path \"a\"", "line 1 has no colon"),
            ("\nmodel_checkpoint_path: 1", "line 2 has a value"),
            ("model_checkpoint_path: \"a", "line 1 has a string without"),
            ("model_checkpoint_path: \"a\n\"", "line 1 has a string without"),
            ("model_checkpoint_path: \"a\\", "has the escape"),
            ("model_checkpoint_path: \"\\777\"", "beyond a byte"),
            ("model_checkpoint_path: \"\\xg\"", "without digits"),
            ("model_checkpoint_path: \"\\ud800\"", "not a character"),
            ("model_checkpoint_path: \"a\" model_checkpoint_path: \"b\"", "second time"),
            ("all_model_checkpoint_paths: [\"a\" \"b\"", "without an end"),
            ("all_model_checkpoint_timestamps: 1.2.3", "not a number"),
            ("last_preserved_timestamp: [1]", "not a number"),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_name_that_is_no_text_comes_back() {
        use std::os::unix::ffi::OsStringExt;
        let path = PathBuf::from(std::ffi::OsString::from_vec(b"a\xff\x80b\xc3".to_vec()));
        let state = CheckpointState { model_checkpoint_path: path, ..CheckpointState::default() };
        let text = write(&state);
        assert!(text.is_ascii());
        assert_eq!(read(&text).unwrap(), state);
    }
}
