//! The resources of a GPU's core that a running kernel uses, estimated from its text: registers of a thread, and memory
//! of a workgroup.
//!
//! The actual numbers depend on the driver's compiler and are not available: it unrolls loops, recomputes values for
//! which it has no registers, and stores addresses and constants. Over 152 kernels of the catalog AMD's compiler for
//! RDNA2 (Mesa 22.3.6) took 0.8 to 1.3 times the estimate for one half of them, and 0.5 to 2 times for nine of ten.

use std::collections::HashMap;

/// About how many registers of 32 bits a thread of the kernel needs: the sizes of the variables that are alive at its busiest
/// point, scaled to what AMD's compiler makes of them.
pub(crate) fn registers(wgsl: &str) -> u32 {
    let text = Text::read(wgsl);
    let alive =
        text.functions.get("main").map_or(0, |main| text.busiest(main, &mut HashMap::new()));
    (alive.saturating_mul(9) / 10).saturating_sub(7).max(FEWEST)
}

/// The bytes that the threads of a workgroup share.
pub(crate) fn shared_bytes(wgsl: &str) -> u64 {
    Text::read(wgsl).shared
}

/// The registers for indices and addresses.
const FEWEST: u32 = 8;

/// A type's size in words, the size of its elements, and how many bytes it takes in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    words: u32,
    element: u32,
    bytes: u64,
}

const SCALAR: Size = Size { words: 1, element: 1, bytes: 4 };

struct Text<'a> {
    tokens: Vec<&'a str>,
    constants: HashMap<&'a str, u64>,
    aliases: HashMap<&'a str, Size>,
    /// Sizes of global variables.
    globals: HashMap<&'a str, Size>,
    functions: HashMap<&'a str, Function>,
    shared: u64,
}

struct Function {
    /// Positions of the body's braces.
    from: usize,
    to: usize,
    result: Size,
}

/// Words and signs, without comments.
fn tokens(wgsl: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in wgsl.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let end = match is_word(c) {
                true => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()),
                false => c.len_utf8(),
            };
            if !c.is_whitespace() {
                found.push(&rest[..end]);
            }
            rest = &rest[end..];
        }
    }
    found
}

impl<'a> Text<'a> {
    fn read(wgsl: &'a str) -> Self {
        let mut text = Text {
            tokens: tokens(wgsl),
            constants: HashMap::new(),
            aliases: HashMap::new(),
            globals: HashMap::new(),
            functions: HashMap::new(),
            shared: 0,
        };
        // Names may be used before they are declared.
        for at in 0..text.tokens.len() {
            match text.tokens[at] {
                "const" => text.constant(at),
                "alias" => {
                    let size = text.type_at(at + 3);
                    text.aliases.insert(text.token(at + 1), size);
                }
                _ => {}
            }
        }
        let mut at = 0;
        while at < text.tokens.len() {
            at = match text.tokens[at] {
                "var" => text.global(at),
                "fn" => text.function(at),
                "struct" => text.matching(at, "{", "}"),
                _ => at,
            } + 1;
        }
        text
    }

    fn token(&self, at: usize) -> &'a str {
        self.tokens.get(at).copied().unwrap_or_default()
    }

    /// The position at which the first `open` from `at` on is closed.
    fn matching(&self, at: usize, open: &str, close: &str) -> usize {
        let mut depth = 0_usize;
        for (place, token) in self.tokens.iter().enumerate().skip(at) {
            if *token == open {
                depth += 1;
            } else if *token == close {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return place;
                }
            }
        }
        self.tokens.len()
    }

    fn end_of_statement(&self, at: usize) -> usize {
        let end = self.tokens.iter().enumerate().skip(at).find(|(_, token)| **token == ";");
        end.map_or(self.tokens.len(), |(place, _)| place)
    }

    /// `const NAME: u32 = 4u * OTHER;`
    fn constant(&mut self, at: usize) {
        let end = self.end_of_statement(at);
        if let Some(equals) = (at..end).find(|place| self.token(*place) == "=") {
            let value = self.value(equals + 1, end);
            self.constants.extend(value.map(|value| (self.token(at + 1), value)));
        }
    }

    /// `var<workgroup> name: array<f32, 64>;`
    fn global(&mut self, at: usize) -> usize {
        let end = self.end_of_statement(at);
        if let Some(colon) = (at..end).find(|place| self.token(*place) == ":") {
            let (size, name) = (self.type_at(colon + 1), self.token(colon - 1));
            self.globals.insert(name, size);
            if (at..colon).any(|place| self.token(place) == "workgroup") {
                // As wgpu counts them.
                let whole = size.bytes.saturating_add(15) / 16 * 16;
                self.shared = self.shared.saturating_add(whole);
            }
        }
        end
    }

    fn function(&mut self, at: usize) -> usize {
        let arguments = self.matching(at, "(", ")");
        let from = (arguments..self.tokens.len()).find(|place| self.token(*place) == "{");
        let from = from.unwrap_or(self.tokens.len());
        let to = self.matching(from, "{", "}");
        let arrow = (arguments..from).find(|place| self.token(*place) == ">");
        let result = arrow.map_or(SCALAR, |place| self.type_at(place + 1));
        self.functions.insert(self.token(at + 1), Function { from: at + 2, to, result });
        to
    }

    /// The value of a sum of products of whole numbers; `None` for other expressions.
    fn value(&self, from: usize, to: usize) -> Option<u64> {
        let (mut sum, mut product) = (0_u64, 1_u64);
        let mut operator = "*";
        for place in from..to {
            let token = self.token(place);
            if matches!(token, "*" | "+" | "/" | "-") {
                if matches!(token, "+" | "-") {
                    sum = sum.checked_add(product)?;
                    product = 1;
                }
                operator = token;
                continue;
            }
            let digits = token.trim_end_matches(['u', 'i']);
            let value = match digits.parse() {
                Ok(value) => value,
                Err(_) => *self.constants.get(token)?,
            };
            match operator {
                "/" => product = product.checked_div(value)?,
                "-" => {
                    sum = sum.checked_sub(value)?;
                    product = 0;
                }
                "+" => product = value,
                _ => product = product.checked_mul(value)?,
            }
        }
        sum.checked_add(product)
    }

    /// The size of the type that begins at `at`. A struct counts as a scalar: kernels have none but their parameters.
    fn type_at(&self, at: usize) -> Size {
        let name = self.token(at);
        let lanes = match name {
            "vec2" | "vec2f" | "vec2u" | "vec2i" | "vec2h" => 2,
            "vec3" | "vec3f" | "vec3u" | "vec3i" | "vec3h" => 3,
            "vec4" | "vec4f" | "vec4u" | "vec4i" | "vec4h" => 4,
            "array" => {
                let end = self.matching(at, "<", ">");
                let element = self.type_at(at + 2);
                let comma = (at..end).rev().find(|place| self.token(*place) == ",");
                let count = comma.and_then(|comma| self.value(comma + 1, end));
                // An array without a size is a buffer.
                let count = count.unwrap_or(0);
                return Size {
                    words: element.words.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX)),
                    element: element.words,
                    bytes: element.bytes.saturating_mul(count),
                };
            }
            "atomic" => return self.type_at(at + 2),
            "f16" => return Size { bytes: 2, ..SCALAR },
            _ if self.aliases.contains_key(name) => return self.aliases[name],
            _ => 1,
        };
        let half = name.ends_with('h') || (lanes > 1 && self.token(at + 2) == "f16");
        let aligned = if lanes == 3 { 4 } else { u64::from(lanes) };
        Size { words: lanes, element: 1, bytes: aligned * if half { 2 } else { 4 } }
    }

    /// The words of an expression's value: those of its largest part.
    fn words(&self, from: usize, to: usize, sizes: &HashMap<&str, Size>) -> u32 {
        let mut most = 1;
        let mut place = from;
        while place < to {
            let (token, next) = (self.token(place), self.token(place + 1));
            let mut size = sizes.get(token).or_else(|| self.globals.get(token)).copied();
            if let Some(function) = self.functions.get(token).filter(|_| next == "(") {
                size = Some(function.result);
                place = self.matching(place, "(", ")");
            } else if token.starts_with("vec") || token == "array" {
                size = Some(self.type_at(place));
                let open = (place..to).find(|place| self.token(*place) == "(");
                place = open.map_or(to, |open| self.matching(open, "(", ")"));
            } else if matches!(token, "dot" | "length" | "all" | "any" | "arrayLength") {
                place = self.matching(place, "(", ")");
            }
            if let Some(mut size) = size {
                if self.token(place + 1) == "[" {
                    place = self.matching(place + 1, "[", "]");
                    size = Size { words: size.element, element: 1, ..size };
                }
                let words = match self.token(place + 1) {
                    "." => self.token(place + 2).len() as u32,
                    _ => size.words,
                };
                most = most.max(words.min(16));
            }
            place += 1;
        }
        most
    }

    /// The most words that are alive at once in a function and those that it calls. `known` has the results of
    /// functions by their positions, so that each is analysed once.
    fn busiest(&self, function: &Function, known: &mut HashMap<usize, u32>) -> u32 {
        let (from, to) = (function.from, function.to);
        if let Some(words) = known.get(&from) {
            return *words;
        }
        // WGSL has no recursion; the analysis of a text with recursion must still end.
        known.insert(from, 0);
        let mut sizes: HashMap<&str, Size> = HashMap::new();
        // The declaration, the size, and the last use of each name.
        let mut lives: Vec<(usize, usize, u32)> = Vec::new();
        let mut latest: HashMap<&str, usize> = HashMap::new();
        // The loops around a place, outermost first.
        let mut loops: Vec<(usize, usize)> = Vec::new();
        let mut calls: Vec<(usize, u32)> = Vec::new();
        for place in from..to {
            loops.retain(|(_, end)| place < *end);
            let token = self.token(place);
            match token {
                "for" => {
                    let head = self.matching(place, "(", ")");
                    loops.push((place, self.matching(head, "{", "}")));
                }
                "let" | "var" => {
                    let (name, end) = (self.token(place + 1), self.end_of_statement(place));
                    let colon = self.token(place + 2) == ":";
                    let size = match colon {
                        true => self.type_at(place + 3),
                        false => {
                            let words = self.words(place + 3, end, &sizes);
                            Size { words, element: 1, bytes: 0 }
                        }
                    };
                    sizes.insert(name, size);
                    // A loop counter is alive until the loop ends.
                    let counts = loops.last().filter(|(begin, _)| place == begin + 2);
                    latest.insert(name, lives.len());
                    lives.push((place, counts.map_or(place, |(_, end)| *end), size.words));
                }
                _ => {
                    if let Some(life) = latest.get(token).map(|at| &mut lives[*at]) {
                        // A variable from outside that is used in a loop is alive until the loop ends.
                        let around = loops.iter().find(|(begin, _)| *begin > life.0);
                        life.1 = life.1.max(around.map_or(place, |(_, end)| *end));
                    }
                    let called = self.functions.get(token).filter(|_| self.token(place + 1) == "(");
                    calls.extend(called.map(|called| (place, self.busiest(called, known))));
                }
            }
        }
        let mut changes: Vec<(usize, i64)> = Vec::new();
        for (from, to, words) in lives {
            changes.extend([(from, i64::from(words)), (to + 1, -i64::from(words))]);
        }
        for (place, words) in calls {
            changes.extend([(place, i64::from(words)), (place + 1, -i64::from(words))]);
        }
        changes.sort_unstable();
        let (mut alive, mut most) = (0, 0);
        for (_, change) in changes {
            alive += change;
            most = most.max(alive);
        }
        known.insert(from, most as u32);
        most as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alive(wgsl: &str) -> u32 {
        let text = Text::read(wgsl);
        text.busiest(&text.functions["main"], &mut HashMap::new())
    }

    #[test]
    fn variables_count_while_they_are_mentioned() {
        // `a` is dead when `c` is declared.
        let body = "let a = 1.0; let b = a + 1.0; let c = b; let d = b + c; out[0] = d;";
        assert_eq!(alive(&format!("fn main() {{ {body} }}")), 3);
        assert_eq!(
            alive("fn main() { let a: vec4<f32> = x; var b: array<vec3f, 5>; b[0] = a.xyz; }"),
            19
        );
    }

    #[test]
    fn what_a_loop_uses_is_there_until_its_end() {
        let of = |body: &str| alive(&format!("fn main() {{ let a = 1.0; {body} }}"));
        let straight = of("sum += a; let b: vec4f = c; let d = b.x;");
        let around =
            of("for (var i = 0u; i < 4u; i++) { sum += a; let b: vec4f = c; let d = b.x; }");
        // The counter and `a`.
        assert_eq!(around, straight + 2);
    }

    #[test]
    fn functions_count_where_they_are_called() {
        let called =
            "fn twice(x: f32) -> vec2<f32> { let y: vec4<f32> = v; let z = y.x; return y.xy; }";
        assert_eq!(alive(&format!("{called} fn main() {{ let a = twice(b); out[0] = a.x; }}")), 7);
        // WGSL has no recursion, but the analysis of such a text must still end. Each function is analysed once,
        // however many paths lead to it.
        let ladder: String = (0..60)
            .map(|i| {
                format!("fn f{i}() {{ f{}(); g{i}(); }} fn g{i}() {{ f{}(); }} ", i + 1, i + 1)
            })
            .collect();
        assert_eq!(
            alive(&format!("{ladder} fn f60() {{ let a: vec4f = b; }} fn main() {{ f0(); }}")),
            4
        );
        assert!(alive("fn f() { f(); g(); } fn g() { f(); } fn main() { let a = 1; f(); }") >= 1);
    }

    #[test]
    fn shared_memory_is_what_the_text_declares() {
        let text = "var<workgroup> tile: array<V, ROWS * 4u + 2u>; var<workgroup> flag: atomic<u32>;\n\
            alias V = vec4<f16>; const ROWS: u32 = 8u; // const ROWS: u32 = 9u;\n\
            fn main() { var<private> no = 1; }";
        assert_eq!(shared_bytes(text), 34 * 8 + 16);
        assert_eq!(shared_bytes("fn main() {}"), 0);
        assert_eq!(registers("fn main() {}"), FEWEST);
    }

    #[test]
    fn what_is_no_kernel_ends_too() {
        for text in [
            "",
            "fn",
            "var<workgroup> a: array<",
            "const A = ;",
            "fn main( { for (",
            "let var",
            "alias = ;",
            "alias",
            "var<workgroup> a: array<vec4<f32>, 18446744073709551615>;",
        ] {
            assert!(registers(text) >= FEWEST, "{text}");
        }
    }
}
