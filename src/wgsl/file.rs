//! Removes comments and blank lines from shader files.

/// The text of a file under `shaders/` without its comments. With comments a page would load 6 kB more, and the
/// planner, which joins, searches and compares texts, would take an eighth longer on native targets too (the catalog:
/// 1.64 instead of 1.45 s of CPU time). Readers of a plan's WGSL find the comments in the file.
macro_rules! shader {
    ($file:expr) => {{
        const FILE: &str = $file;
        const BYTES: [u8; $crate::wgsl::code::<0>(FILE).1] = $crate::wgsl::code(FILE).0;
        const CODE: &str = match std::str::from_utf8(&BYTES) {
            Ok(code) => code,
            Err(_) => panic!("comments begin and end between characters"),
        };
        CODE
    }};
}
pub(crate) use shader;

/// The first `N` bytes of the code, and its length. `//` without a space is not a comment but a line for `template.rs`.
/// Of several consecutive empty lines one remains.
pub(crate) const fn code<const N: usize>(file: &str) -> ([u8; N], usize) {
    let file = file.as_bytes();
    let (mut code, mut len) = ([0; N], 0);
    let (mut start, mut after_empty) = (0, true);
    while start < file.len() {
        let (mut end, mut comment) = (start, file.len());
        while end < file.len() && file[end] != b'\n' {
            if comment > end && is_comment(file, end) {
                comment = end;
            }
            end += 1;
        }
        let commented = comment < end;
        let mut last = if commented { comment } else { end };
        while last > start && file[last - 1] == b' ' {
            last -= 1;
        }
        let empty = last == start;
        if !(empty && (commented || after_empty)) {
            let mut at = start;
            while at <= last {
                if len < N {
                    code[len] = if at < last { file[at] } else { b'\n' };
                }
                len += 1;
                at += 1;
            }
            after_empty = empty;
        }
        start = end + 1;
    }
    (code, len)
}

const fn is_comment(file: &[u8], at: usize) -> bool {
    let slashes = file[at] == b'/' && at + 1 < file.len() && file[at + 1] == b'/';
    slashes && (at + 2 >= file.len() || file[at + 2] == b' ' || file[at + 2] == b'\n')
}

#[cfg(test)]
mod tests {
    #[test]
    fn comments_go_and_code_stays() {
        let code = shader!(
            "// What it does: µ.\n//\n// Grid: one.\n\n// a\nfn f() {  // b\n    //for i in N\n    x / y;\n    // c\n    //end\n\
             }\n\n// d\n\nfn g() {}"
        );
        assert_eq!(code, "fn f() {\n    //for i in N\n    x / y;\n    //end\n}\n\nfn g() {}\n");
        assert_eq!(shader!("// nothing"), "");
        assert_eq!(shader!(""), "");
    }
}
