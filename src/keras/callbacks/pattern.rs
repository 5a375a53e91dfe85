//! File names with numbers in them: `epoch-{epoch:02d}-{val_loss:.2f}`.

use super::Logs;
use crate::error::{Error, Result, message};

/// Replaces each `{name:form}` in `text` by the result of `found`; `{{` and `}}` stand for braces.
fn replace(text: &str, mut found: impl FnMut(&str, &str) -> Result<String>) -> Result<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        filled.push_str(&rest[..at]);
        let brace = &rest[at..at + 1];
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix(brace) {
            filled.push_str(brace);
            rest = behind;
            continue;
        }
        let end = rest.find('}').filter(|_| brace == "{").ok_or_else(|| {
            Error::Data(message!(
                "ModelCheckpoint: '{text}' has a brace without the other; write {{{{ or }}}} for a brace in a name."
            ))
        })?;
        let (name, form) = rest[..end].split_once(':').unwrap_or((&rest[..end], ""));
        filled.push_str(&found(name, form)?);
        rest = &rest[end + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The file name for this epoch, counted from 0, and these logs.
pub(super) fn fill(text: &str, epoch: usize, batch: Option<usize>, logs: &Logs) -> Result<String> {
    replace(text, |name, form| match (name, batch, logs.get(name)) {
        ("epoch", ..) => whole(text, form, epoch.saturating_add(1)),
        ("batch", Some(batch), _) => whole(text, form, batch.saturating_add(1)),
        (_, _, Some(value)) => float(text, form, value),
        _ => Err(Error::Data(message!(
            "ModelCheckpoint: '{text}' names '{name}', and the logs have {}. Name one of these, or epoch.",
            logs.names()
        ))),
    })
}

/// True if the name depends on the logs.
pub(super) fn needs_logs(text: &str) -> bool {
    let mut needed = false;
    let _ = replace(text, |name, _| {
        needed |= !["epoch", "batch"].contains(&name);
        Ok(String::new())
    });
    needed
}

fn unknown(text: &str, form: &str, example: &str) -> Error {
    Error::Data(message!(
        "ModelCheckpoint: '{text}' has the form '{form}', which is not the format of a number. Write {example}."
    ))
}

/// `02d`, `3d`, `d` or nothing.
fn whole(text: &str, form: &str, value: usize) -> Result<String> {
    let digits = form.strip_suffix('d').unwrap_or(form);
    let bad = || unknown(text, form, "{epoch:02d}");
    let width = match digits {
        "" => 0,
        _ => digits.parse().ok().filter(|width| *width <= 100usize).ok_or_else(bad)?,
    };
    Ok(match digits.starts_with('0') {
        true => format!("{value:0width$}"),
        false => format!("{value:width$}"),
    })
}

/// `.2f`, `.3e`, `f` or nothing.
fn float(text: &str, form: &str, value: f64) -> Result<String> {
    let bad = || unknown(text, form, "{val_loss:.2f}");
    if form.is_empty() {
        return Ok(value.to_string());
    }
    let (digits, kind) = form.split_at_checked(form.len() - 1).ok_or_else(bad)?;
    let digits: usize = match digits {
        "" => 6,
        _ => {
            let digits = digits.strip_prefix('.').and_then(|digits| digits.parse().ok());
            digits.filter(|digits| *digits <= 100).ok_or_else(bad)?
        }
    };
    match kind {
        "f" => Ok(format!("{value:.digits$}")),
        "e" => Ok(format!("{value:.digits$e}")),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String> {
        let mut logs = Logs::new();
        logs.set("val_loss", 0.25);
        fill(text, 4, Some(6), &logs)
    }

    // The expected results are those of Python's `str.format`.
    #[test]
    fn forms_are_pythons() {
        assert_eq!(filled("{epoch:02d}-{val_loss:.2f}.w").unwrap(), "05-0.25.w");
        assert_eq!(filled("{epoch}_{batch:3d}_{val_loss:f}").unwrap(), "5_  7_0.250000");
        assert_eq!(filled("{{{epoch:d}}}").unwrap(), "{5}");
        assert!(needs_logs("{epoch}{val_loss}") && !needs_logs("{{loss}}{epoch}{batch}"));
    }

    #[test]
    fn other_names_and_forms_are_refused() {
        for (text, why) in [
            ("{loss}", "names 'loss', and the logs have val_loss"),
            ("{epoch", "a brace without the other"),
            ("epoch}", "a brace without the other"),
            ("{epoch:.2f}", "'.2f', which is not"),
            ("{val_loss:02d}", "'02d', which is not"),
            ("{val_loss:é}", "'é', which is not"),
        ] {
            let error = filled(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
