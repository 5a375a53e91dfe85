//! Simulates a strict driver, for tests: it ends the loops of an invocation after slightly more than the iterations
//! that the kernel states, as Mesa's llvmpipe does after 65,535. A kernel that states too few computes wrong results.

/// `wgsl` with loops that end after `iterations`, and a few more for the ends of loops and joins. Loops with barriers
/// count, but are not ended.
pub(super) fn end_loops(wgsl: &str, iterations: usize) -> String {
    let most = iterations + 64;
    let mut text = String::new();
    let mut rest = wgsl;
    while let Some((before, after)) = rest.split_once("for (") {
        let (head, body) = after.split_once('{').unwrap_or((after, ""));
        let mut depth = 1;
        let end = body.find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0
        });
        let together = body[..end.unwrap_or(0)].contains("workgroupBarrier");
        let check =
            if together { String::new() } else { format!("if (s_rounds > {most}u) {{ break; }}") };
        text.push_str(&format!("{before}for ({head}{{ s_rounds += 1u; {check}"));
        rest = body;
    }
    format!("{text}{rest}\nvar<private> s_rounds: u32;\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_given_an_end() {
        let text = end_loops("fn f() { for (var i = 0; i < 9; i++) { x; for (; y;) { z; } } }", 10);
        let check = "{ s_rounds += 1u; if (s_rounds > 74u) { break; }";
        assert_eq!(
            text,
            format!(
                "fn f() {{ for (var i = 0; i < 9; i++) {check} x; for (; y;) {check} z; }} }} }}\nvar<private> s_rounds: u32;\n"
            )
        );
        let text = end_loops("for (;;) { for (;;) { a; } workgroupBarrier(); }", 0);
        assert_eq!(text.matches("break").count(), 1);
    }
}
