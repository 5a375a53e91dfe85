//! Parses formulas and functions: which functions they call, where they name the type `V`, how many iterations their
//! loops make, and whether they are a name, an expression or statements.

/// The facts of a piece of WGSL.
#[derive(Default)]
pub(super) struct Read<'a> {
    /// The names before an opening parenthesis, with repetitions.
    pub(super) calls: Vec<&'a str>,
    /// Where the word `V` begins.
    pub(super) vectors: Vec<usize>,
    /// The most iterations of its loops and of those in functions that it calls.
    pub(super) iterations: usize,
    /// The text is one name.
    pub(super) name: bool,
    /// The text has a `return`.
    pub(super) returns: bool,
}

/// A loop whose body is being read.
struct Loop {
    /// The count of open braces around it.
    depth: usize,
    /// A bound on its iterations: the largest number in its head. A loop counts in steps of one or more from a number
    /// to a number.
    rounds: usize,
    /// The iterations before it.
    before: usize,
}

/// Reads `text`, without its comments. `iterations_of` returns the iterations of a function's loops.
pub(super) fn read<'a>(text: &'a str, iterations_of: &dyn Fn(&str) -> usize) -> Read<'a> {
    let bytes = text.as_bytes();
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let mut read = Read::default();
    let mut loops: Vec<Loop> = Vec::new();
    // The largest number so far in a loop's head, while the reader is in one.
    let mut head: Option<usize> = None;
    let (mut made, mut depth, mut words, mut others) = (0, 0, 0, 0);
    let mut declares = false;
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = text[at..].find('\n').map_or(bytes.len(), |end| at + end);
                continue;
            }
            b'{' => {
                depth += 1;
                if let Some(rounds) = head.take() {
                    loops.push(Loop { depth, rounds, before: std::mem::take(&mut made) });
                }
            }
            b'}' => {
                if let Some(inner) = loops.pop_if(|inner| inner.depth == depth) {
                    made = inner.before + inner.rounds * (1 + made);
                }
                depth -= 1;
            }
            b if is_word(b) => {
                while at < bytes.len() && is_word(bytes[at]) {
                    at += 1;
                }
                let word = &text[start..at];
                words += 1;
                match word {
                    "V" => read.vectors.push(start),
                    "return" => read.returns = true,
                    "for" => head = Some(0),
                    _ => {}
                }
                if b.is_ascii_digit() {
                    let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
                    head = head.map(|most| most.max(digits.parse().unwrap_or(0)));
                } else if bytes.get(at) == Some(&b'(') && !declares {
                    made += iterations_of(word);
                    read.calls.push(word);
                }
                declares = word == "fn";
                continue;
            }
            b if b.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            _ => {}
        }
        others += 1;
        at += 1;
    }
    read.iterations = made;
    read.name = words == 1 && others == 0;
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_alone(text: &str) -> Read<'_> {
        read(text, &|name| if name == "seven" { 7 } else { 0 })
    }

    #[test]
    fn a_text_is_a_name_an_expression_or_statements() {
        let kind = |text| {
            let read = read_alone(text);
            (read.name, read.returns)
        };
        assert_eq!(kind("x"), (true, false));
        assert_eq!(kind(" in_a \n"), (true, false));
        assert_eq!(kind("-x"), (false, false));
        assert_eq!(kind("f(x)"), (false, false));
        assert_eq!(kind("let y = x;\nreturn y;"), (false, true));
        assert_eq!(kind("returned(x) // return"), (false, false));
    }

    #[test]
    fn calls_and_types_are_whole_words() {
        let read = read_alone("select(V(1), my_V(0), x < V(0)) * (Vx + exp_4(x)) // sin_4(x)");
        assert_eq!(read.calls[..], ["select", "V", "my_V", "V", "exp_4"]);
        assert_eq!(read.vectors[..], [7, 26]);
        assert!(read_alone("fn f(x: f32) -> f32 { return g(x); }").calls[..] == ["g"]);
    }

    #[test]
    fn loops_are_counted_with_what_they_call() {
        let made = |text| read_alone(text).iterations;
        assert_eq!(made("x + max_4(a, b)"), 0);
        assert_eq!(made("for (var i = 0; i < 32; i++) { y = f(y); } return y;"), 32);
        assert_eq!(
            made("for (var i = 0; i < 32; i++) { y = seven(y); } return seven(y);"),
            32 * 8 + 7
        );
        let nested =
            "for (var i = 5u; i > 1u; i--) { if (a) { b; } for (var j = 0; j < 3; j++) { c; } }";
        assert_eq!(made(&format!("{nested} {nested}")), 2 * 5 * (1 + 3));
    }
}
