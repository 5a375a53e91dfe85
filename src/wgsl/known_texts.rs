//! A cache of generated texts. A program whose sizes vary plans the same kernels repeatedly: all plans share their
//! texts, which are generated once.

use std::sync::{Arc, Mutex, PoisonError};

use crate::support::mixer::hash_bytes;

/// The most texts that are stored; a long training step has a hundred.
const MOST: usize = 1024;

/// Pairs of a source text and the text generated from it.
pub(super) struct KnownTexts(Mutex<Vec<Entry>>);

struct Entry {
    hash: u64,
    of: Box<str>,
    made: Arc<str>,
}

impl KnownTexts {
    pub(super) const fn new() -> Self {
        KnownTexts(Mutex::new(Vec::new()))
    }

    /// The result of `make` for `of`, which must be the same at every call.
    pub(super) fn get(&self, of: &str, make: impl FnOnce() -> String) -> Arc<str> {
        let hash = hash_bytes(of.as_bytes());
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = entries.iter().find(|entry| entry.hash == hash && *entry.of == *of);
        if let Some(known) = known {
            return known.made.clone();
        }
        if entries.len() == MOST {
            // The oldest texts are dropped; those of kernels that are still planned are generated again.
            entries.drain(..MOST / 2);
        }
        let made: Arc<str> = make().into();
        entries.push(Entry { hash, of: of.into(), made: made.clone() });
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_made_once_and_bounded_in_number() {
        let (known, mut made) = (KnownTexts::new(), 0);
        let mut get = |of: &str| {
            let text = known.get(of, || {
                made += 1;
                format!("<{of}>")
            });
            (text, made)
        };
        let (first, _) = get("a");
        let (again, count) = get("a");
        assert!(Arc::ptr_eq(&first, &again) && count == 1);
        assert_eq!((&*first, &*get("b").0), ("<a>", "<b>"));
        for i in 0..3 * MOST {
            let of = i.to_string();
            assert_eq!(*get(&of).0, format!("<{of}>"));
            assert!(known.0.lock().unwrap().len() <= MOST);
        }
        // The latest are still known.
        let latest = (3 * MOST - 1).to_string();
        assert_eq!(get(&latest).1, 2 + 3 * MOST);
    }
}
