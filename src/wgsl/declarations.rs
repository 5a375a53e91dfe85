//! The declarations of a WGSL module; each name is declared once.

/// Functions and constants, in the order of their declaration.
#[derive(Default)]
pub(crate) struct Declarations {
    names: Vec<String>,
    text: String,
}

impl Declarations {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// Adds `text`, the whole declaration of `name`, unless there is one.
    pub(crate) fn add(&mut self, name: impl Into<String>, text: impl FnOnce() -> String) {
        let name = name.into();
        if !self.has(&name) {
            self.text.push_str(&text());
            self.names.push(name);
        }
    }

    /// All declarations as WGSL.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_declared_once() {
        let mut all = Declarations::default();
        all.add("get1", || "fn get1() {}\n".to_string());
        all.add("get", || "fn get() {}\n".to_string());
        all.add("get1", || unreachable!("it is there"));
        assert_eq!(all.text(), "fn get1() {}\nfn get() {}\n");
        assert!(all.has("get") && !all.has("get2"));
    }
}
