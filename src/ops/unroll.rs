//! Writes out the repeated lines of a shader, so that what it keeps in registers are plain variables: not every
//! driver unrolls a loop over an array.

/// Repeats the lines between `//for x in N` and `//end` N times with the number for `$x`, and replaces the names
/// of `counts` by their values, there and wherever they stand with a `u` behind them.
pub(super) fn unroll(template: &str, counts: &[(&str, usize)]) -> String {
    let lines: Vec<&str> = template.lines().collect();
    let mut words: Vec<(String, String)> =
        counts.iter().map(|(name, count)| (format!("{name}u"), format!("{count}u"))).collect();
    let mut text = String::new();
    expand(&lines, counts, &mut words, &mut text);
    text
}

/// `words` are replaced by what stands beside them.
fn expand(
    lines: &[&str],
    counts: &[(&str, usize)],
    words: &mut Vec<(String, String)>,
    text: &mut String,
) {
    let mut i = 0;
    while i < lines.len() {
        let Some((name, count)) =
            lines[i].trim().strip_prefix("//for ").and_then(|l| l.split_once(" in "))
        else {
            let mut line = lines[i].to_string();
            for (word, number) in words.iter() {
                line = line.replace(word.as_str(), number);
            }
            text.push_str(&line);
            text.push('\n');
            i += 1;
            continue;
        };
        let end = i + matching_end(&lines[i..]);
        let known = counts.iter().find(|(name, _)| *name == count).map(|(_, count)| *count);
        let count = known
            .or_else(|| count.parse().ok())
            .expect("the host gives every count that a shader names");
        for number in 0..count {
            words.push((format!("${name}"), number.to_string()));
            expand(&lines[i + 1..end], counts, words, text);
            words.pop();
        }
        i = end + 1;
    }
}

/// The line of the `//end` that belongs to the first line.
fn matching_end(lines: &[&str]) -> usize {
    let mut depth = 0;
    lines
        .iter()
        .position(|line| {
            match line.trim() {
                "//end" => depth -= 1,
                line if line.starts_with("//for ") => depth += 1,
                _ => {}
            }
            depth == 0
        })
        .expect("every //for has an //end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_repeated_with_their_numbers() {
        let template = "a\n//for i in N\nx$i = Nu;\n//for j in 2\ny_$i_$j;\n//end\n//end\n//for t in NONE\nz\n//end\nb";
        let text = unroll(template, &[("N", 2), ("NONE", 0)]);
        assert_eq!(text, "a\nx0 = 2u;\ny_0_0;\ny_0_1;\nx1 = 2u;\ny_1_0;\ny_1_1;\nb\n");
    }
}
