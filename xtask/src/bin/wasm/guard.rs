//! Adds argument checks to the bindings. Without them the wasm fails with messages such as "null pointer passed to rust", or
//! computes with an unintended number. The types of parameters are read from the comments that wasm-bindgen writes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context, Result, bail, ensure};

/// Parameters that must be whole numbers; the comments have `number` for all of them.
const WHOLE: [&str; 3] = ["axis", "diagonal", "index"];

/// Parameters that must be whole numbers from 0.
const COUNTS: [&str; 11] = [
    "columns",
    "depth",
    "k",
    "n",
    "num",
    "numColumns",
    "numRows",
    "parts",
    "repeats",
    "rows",
    "steps",
];

/// A parameter according to the comment before its function.
struct Param {
    name: String,
    kind: String,
    optional: bool,
}

/// The content of the comment before a function.
#[derive(Default)]
struct Comment {
    params: Vec<Param>,
    returns: String,
}

impl Comment {
    /// Reads a line such as ` * @param {Tensor} x`.
    fn take(&mut self, line: &str) {
        let Some(line) = line.trim_start().strip_prefix("* @") else { return };
        if let Some(kind) = line.strip_prefix("returns {").and_then(|rest| rest.strip_suffix('}')) {
            self.returns = kind.to_owned();
        }
        let Some((kind, name)) =
            line.strip_prefix("param {").and_then(|rest| rest.rsplit_once("} "))
        else {
            return;
        };
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let mut optional = bare != name;
        let kinds = kind.split(" | ").filter(|kind| {
            let nothing = ["null", "undefined", "void"].contains(kind);
            optional |= nothing;
            !nothing
        });
        let kind = kinds.collect::<Vec<_>>().join(" | ");
        self.params.push(Param { name: bare.to_owned(), kind, optional });
    }
}

/// The bindings with a check of each call, followed by `runtime`, which defines the checks.
pub fn guarded(bindings: &str, runtime: &str) -> Result<String> {
    let mut out = String::with_capacity(bindings.len() * 3 / 2);
    let classes: BTreeSet<&str> = bindings
        .lines()
        .filter_map(|line| line.strip_prefix("export class ")?.strip_suffix(" {"))
        .collect();
    ensure!(
        !classes.is_empty(),
        "the bindings export no class: wasm-bindgen writes them in another way now"
    );
    let mut class: Option<Class> = None;
    let mut comment = Comment::default();
    // The line that ends the function being read, and whether the function returns a promise.
    let mut inside: Option<(&str, bool)> = None;
    let mut promising = BTreeSet::new();
    let mut count = 0;
    for line in bindings.lines() {
        if let Some((end, promise)) = inside {
            if line == end {
                inside = None;
                if promise {
                    out += "} catch (error) { return Promise.reject(error); }\n";
                }
            }
            writeln!(out, "{line}")?;
            continue;
        }
        let here = line.trim_start();
        if here.starts_with('*') || here.starts_with("/**") {
            comment.take(line);
            writeln!(out, "{line}")?;
            continue;
        }
        if let Some(name) = line.strip_prefix("export class ").and_then(|l| l.strip_suffix(" {")) {
            class = Some(Class::new(name));
            writeln!(out, "{line}")?;
        } else if let Some(own) = class.as_mut().filter(|_| line != "}") {
            let header = Header::of(here).with_context(|| {
                format!(
                    "{}: '{line}' is no method: wasm-bindgen writes them in another way now",
                    own.name
                )
            })?;
            ensure!(
                line.starts_with("    ") && !line.starts_with("     "),
                "'{line}' is no method"
            );
            inside = Some(("    }", false));
            writeln!(out, "{line}")?;
            if header.name == "free" {
                out += "        if (!this.__wbg_ptr) return;\n";
            } else if !header.name.starts_with("__") {
                let promise = comment.returns.starts_with("Promise<");
                inside = Some(("    }", promise));
                if promise {
                    promising.insert(format!("{}.{}", own.name, header.name));
                    out += "        try {\n";
                }
                own.saw(&header, &comment);
                own.check(&mut out, &header)?;
                check_params(&mut out, &own.called(&header), &header, &comment, &classes)?;
                count += 1;
            }
        } else if let Some(own) = class.take_if(|_| line == "}") {
            out += &own.constructor();
            writeln!(out, "{line}")?;
        } else if let Some(rest) = line.strip_prefix("export function ") {
            let header = Header::of(rest).with_context(|| format!("'{line}' is no function"))?;
            writeln!(out, "{line}")?;
            inside = Some(("}", false));
            if header.name != "start" {
                writeln!(out, "    guard.ready('{}');", header.name)?;
                check_params(&mut out, header.name, &header, &comment, &classes)?;
                count += 1;
            }
        } else {
            writeln!(out, "{line}")?;
        }
        if !here.is_empty() {
            comment = Comment::default();
        }
    }
    if class.is_some() || inside.is_some() {
        bail!("the bindings end within a class or a function");
    }
    ensure!(count > classes.len(), "the bindings have {count} calls to check, too few");
    let promising: Vec<String> = promising.iter().map(|name| format!("'{name}'")).collect();
    let classes: Vec<String> = classes.iter().map(|name| format!("[{name}, '{name}']")).collect();
    let mut runtime = runtime.to_owned();
    for (place, list) in [("/* PROMISING */", promising), ("/* CLASSES */", classes)] {
        ensure!(runtime.matches(place).count() == 1, "the checks have no place '{place}'");
        runtime = runtime.replace(place, &list.join(", "));
    }
    out += &runtime;
    Ok(out)
}

/// The first line of a function.
struct Header<'a> {
    /// `static`, `get`, `set` or empty.
    way: &'a str,
    name: &'a str,
    arguments: Vec<&'a str>,
    /// The last argument collects all remaining ones.
    open: bool,
}

impl<'a> Header<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let (before, arguments) = line.strip_suffix(") {")?.split_once('(')?;
        let (way, name) = before.rsplit_once(' ').unwrap_or(("", before));
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let known = ["", "static", "get", "set"].contains(&way);
        // A rest parameter collects all remaining arguments in a list.
        let open = arguments.contains("...");
        let name_of = |name: &'a str| name.strip_prefix("...").unwrap_or(name);
        let arguments: Vec<&str> =
            arguments.split(", ").map(name_of).filter(|name| !name.is_empty()).collect();
        let all = std::iter::once(&name).chain(&arguments).all(|name| name.chars().all(word));
        (known && all && !name.is_empty()).then_some(Header { way, name, arguments, open })
    }
}

/// Facts about a class collected so far.
struct Class<'a> {
    name: &'a str,
    constructed: bool,
    /// No method needs an instance.
    lone: bool,
    /// Static methods that return an instance.
    makers: Vec<String>,
}

impl<'a> Class<'a> {
    fn new(name: &'a str) -> Self {
        Class { name, constructed: false, lone: true, makers: Vec::new() }
    }

    fn saw(&mut self, header: &Header<'_>, comment: &Comment) {
        self.constructed |= header.name == "constructor";
        self.lone &= header.way == "static";
        let promise = format!("Promise<{}>", self.name);
        if header.way == "static" && comment.returns == promise {
            self.makers.push(format!("await {}.{}()", self.name, header.name));
        } else if header.way == "static" && comment.returns == self.name {
            self.makers.push(format!("{}.{}(...)", self.name, header.name));
        }
    }

    /// The function's name in messages. Internal functions have no public name, so the class is named.
    fn called(&self, header: &Header<'_>) -> String {
        match header.name {
            "constructor" => self.name.to_owned(),
            own if own.starts_with('_') => self.name.to_owned(),
            name => format!("{}.{name}", self.name),
        }
    }

    fn check(&self, out: &mut String, header: &Header<'_>) -> Result<()> {
        let called = self.called(header);
        match header.way {
            "" | "get" | "set" if header.name != "constructor" => {
                writeln!(out, "        guard.alive(this, {}, '{called}');", self.name)?;
            }
            _ => writeln!(out, "        guard.ready('{called}');")?,
        }
        Ok(())
    }

    /// A constructor for a class that has none: without it, `new` would make an empty object.
    fn constructor(&self) -> String {
        if self.constructed {
            return String::new();
        }
        let how = match self.makers.as_slice() {
            [] if self.lone => "Its functions are called without new.".to_owned(),
            [] => "The library makes these itself.".to_owned(),
            makers => format!("One is made by {}.", makers.join(" or ")),
        };
        let name = self.name;
        format!(
            "    constructor() {{\n        throw new TypeError('{name}: new {name}() makes none. {how}');\n    }}\n"
        )
    }
}

fn check_params(
    out: &mut String,
    called: &str,
    header: &Header<'_>,
    comment: &Comment,
    classes: &BTreeSet<&str>,
) -> Result<()> {
    ensure!(
        comment.params.len() == header.arguments.len(),
        "{called} has the arguments {:?}, and its comment names {}",
        header.arguments,
        comment.params.len()
    );
    // JavaScript ignores extra arguments silently, such as the dtype in zeros([2], 'int32').
    let (most, names) = (header.arguments.len(), header.arguments.join(", "));
    // `JSON.stringify` passes the key as an argument.
    let called_by_others = header.name == "toJSON";
    if !header.open && !called_by_others && (header.way.is_empty() || header.way == "static") {
        writeln!(
            out,
            "        if (arguments.length > {most}) guard.most('{called}', arguments[{most}], '{names}');"
        )?;
    }
    // Users pass these by mistake in place of options; the wasm has its own message for that.
    let examples = comment.params.iter().any(|param| param.kind == "Examples");
    for (param, argument) in comment.params.iter().zip(&header.arguments) {
        let Param { name, kind, optional } = param;
        ensure!(name == argument, "{called}: the comment names '{name}' where '{argument}' is");
        let (more, test) = match kind.as_str() {
            "number" if WHOLE.contains(&name.as_str()) => (String::new(), "whole"),
            "number" if COUNTS.contains(&name.as_str()) => (String::new(), "count"),
            "number" => (String::new(), "number"),
            "boolean" => (String::new(), "boolean"),
            "string" | "DType" => (String::new(), "string"),
            "Operand" => (String::new(), "operand"),
            "Tensor | Variable" => (String::new(), "array"),
            "Uint8Array | number[]" | "Uint8Array" => (String::new(), "bytes"),
            "Function" => (String::new(), "callback"),
            kind if kind.contains("=>") => (String::new(), "callback"),
            kind if classes.contains(kind) && !examples => (format!(", {kind}"), "instance"),
            // The wasm checks these itself.
            _ => continue,
        };
        writeln!(out, "        guard.{test}('{called}', '{name}', {name}, {optional}{more});")?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const BINDINGS: &str = "\
/**
 * Words.
 */
export class Tensor {
    static __wrap(ptr) {
        return ptr;
    }
    free() {
        wasm.free(this.__wbg_ptr);
    }
    /**
     * @param {number | null} [axis]
     * @param {Tensor} other
     * @returns {Promise<Tensor>}
     */
    both(axis, other) {
        return wasm.both(this.__wbg_ptr, axis, other.__wbg_ptr);
    }
    /**
     * @param {readonly number[]} shape
     * @returns {Tensor}
     */
    static zeros(shape) {
        return wasm.zeros(shape);
    }
    /**
     * @returns {number[]}
     */
    get shape() {
        return wasm.shape(this.__wbg_ptr);
    }
}
if (Symbol.dispose) Tensor.prototype[Symbol.dispose] = Tensor.prototype.free;

/**
 * @param {number} first
 * @param {...Tensor[]} others
 */
export function all(first, ...others) {
    wasm.all(first, others);
}
/**
 * @param {(text: string) => void} f
 */
export function tell(f) {
    wasm.tell(f);
}
function inner(x) {
    return x;
}
";

    const CHECKS: &str = "const p = [/* PROMISING */], c = [/* CLASSES */];\n";

    #[test]
    fn every_call_is_checked() {
        let text = guarded(BINDINGS, CHECKS).unwrap();
        for line in [
            "        guard.alive(this, Tensor, 'Tensor.both');",
            "        guard.whole('Tensor.both', 'axis', axis, true);",
            "        guard.instance('Tensor.both', 'other', other, false, Tensor);",
            "        guard.ready('Tensor.zeros');",
            "        guard.alive(this, Tensor, 'Tensor.shape');",
            "        if (arguments.length > 2) guard.most('Tensor.both', arguments[2], 'axis, other');",
            "        throw new TypeError('Tensor: new Tensor() makes none. One is made by Tensor.zeros(...).');",
            "    guard.ready('tell');",
            "        guard.number('all', 'first', first, false);",
            "        guard.callback('tell', 'f', f, false);",
            "const p = ['Tensor.both'], c = [[Tensor, 'Tensor']];",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let rejecting = "        try {\n        guard.alive(this, Tensor, 'Tensor.both');";
        assert!(text.contains(rejecting), "{text}");
        assert_eq!(text.matches("return Promise.reject(error)").count(), 1);
        // Functions that are not exported stay unchanged.
        assert!(text.contains("function inner(x) {\n    return x;\n}\n"));
        assert!(text.contains("    static __wrap(ptr) {\n        return ptr;\n"));
    }

    #[test]
    fn bindings_of_another_form_are_refused() {
        assert!(guarded("export const x = 1;\n", CHECKS).is_err());
        assert!(
            guarded(&BINDINGS.replace("both(axis, other) {", "both = (axis, other) => {"), CHECKS)
                .is_err()
        );
        assert!(
            guarded(&BINDINGS.replace("@param {Tensor} other", "@param {Tensor} x"), CHECKS)
                .is_err()
        );
        assert!(guarded(BINDINGS, "no place").is_err());
    }
}
