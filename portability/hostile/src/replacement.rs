//! Puts functions of a file in place of those of the same names in a text: to try a change of a shader without compiling
//! what holds it, and to take something out that tests must miss.

use crate::error::{Error, Result};

/// Functions in WGSL, by their names.
#[derive(Clone, Debug, Default)]
pub struct Replacement {
    functions: Vec<(String, String)>,
}

impl Replacement {
    /// Reads the functions of a file; what else is in it does not matter.
    ///
    /// # Errors
    /// If the file has no function.
    pub fn of(file: &str) -> Result<Self> {
        let mut functions = Vec::new();
        let mut rest = file;
        while let Some((name, from, to)) = first_function(rest) {
            functions.push((name.to_string(), rest[from..to].to_string()));
            rest = &rest[to..];
        }
        match functions.is_empty() {
            true => Err(Error::new("the file of functions has none")),
            false => Ok(Replacement { functions }),
        }
    }

    /// The text with these functions, and with those that they call and the text does not have.
    pub fn apply(&self, text: &str) -> String {
        let mut all = String::with_capacity(text.len());
        let mut present = Vec::new();
        let mut rest = text;
        while let Some((name, from, to)) = first_function(rest) {
            all.push_str(&rest[..from]);
            all.push_str(self.find(name).unwrap_or(&rest[from..to]));
            present.push(name.to_string());
            rest = &rest[to..];
        }
        all.push_str(rest);
        while let Some((name, function)) =
            self.functions.iter().find(|(name, _)| !present.contains(name) && calls(&all, name))
        {
            all.push('\n');
            all.push_str(function);
            all.push('\n');
            present.push(name.clone());
        }
        // A text of f32 alone does not enable what a function may need.
        match all.contains("f16>(") && !all.contains("enable f16;") {
            true => format!("enable f16;\n{all}"),
            false => all,
        }
    }

    fn find(&self, name: &str) -> Option<&str> {
        let known = self.functions.iter().find(|(known, _)| known == name);
        known.map(|(_, function)| function.as_str())
    }
}

fn calls(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let call = format!("{name}(");
    text.match_indices(&call).any(|(at, _)| !text[..at].ends_with(word))
}

/// The first function of a text: its name, and where it begins and ends.
fn first_function(text: &str) -> Option<(&str, usize, usize)> {
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        if let Some(declared) = line.strip_prefix("fn ") {
            let name = declared.split('(').next()?;
            let mut depth = 0;
            let end = text[begin..].char_indices().find(|(_, c)| {
                depth += i32::from(*c == '{') - i32::from(*c == '}');
                *c == '}' && depth == 0
            });
            return end.map(|(end, _)| (name, begin, begin + end + 1));
        }
        begin += line.len();
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_replaced_and_what_they_call_is_added() {
        let file = "// two\nfn f(x: f32) -> f32 { return g(x); }\n\nfn g(x: f32) -> f32 {\n    if (x > 0.0) { return x; }\n    return 1.0;\n}\n\nfn h() {}\n";
        let replacement = Replacement::of(file).unwrap();
        let text = "enable f16;\nfn f(x: f32) -> f32 { { return x; } }\nfn main() { f(1.0); }\n";
        let new = replacement.apply(text);
        assert!(new.starts_with(
            "enable f16;\nfn f(x: f32) -> f32 { return g(x); }\nfn main() { f(1.0); }\n"
        ));
        assert!(new.contains("    return 1.0;\n}\n") && !new.contains("fn h"));
        assert_eq!(replacement.apply("fn k() {}"), "fn k() {}");
        let halves =
            Replacement::of("fn f(x: vec2<f32>) -> vec2<f32> { return vec2<f32>(vec2<f16>(x)); }")
                .unwrap();
        assert!(halves.apply(text).starts_with("enable f16;\nfn f("));
        assert!(halves.apply("fn f() {}").starts_with("enable f16;\nfn f("));
        assert_eq!(halves.apply("fn k() {}"), "fn k() {}");
        assert!(Replacement::of("// none").is_err());
    }
}
