//! Cleans the declarations and the script that wasm-bindgen writes: removes what concerns the wasm alone.
//!
//! Each removed part must be exactly as expected. If another version of wasm-bindgen writes something else, the build fails
//! instead of publishing an incomplete result.

use anyhow::{Context, Result, bail, ensure};

/// The beginning of the last part of the declarations, which is the same for every crate except for the wasm's raw exports.
const LOADING: &str = "export type InitInput =";

/// The declarations in that part.
const LOADED: [&str; 5] = [
    "export type InitInput = RequestInfo | URL | Response | BufferSource | WebAssembly.Module;",
    "export interface InitOutput {",
    "export type SyncInitInput = BufferSource | WebAssembly.Module;",
    "export function initSync(module: { module: SyncInitInput } | SyncInitInput): InitOutput;",
    "export default function __wbg_init (module_or_path?: { module_or_path: InitInput | Promise<InitInput> } | InitInput | \
     Promise<InitInput>): Promise<InitOutput>;",
];

/// Its replacement.
const LOADING_OURS: &str = include_str!("init.d.ts");

/// Classes that have static methods only, so there are no instances to free.
const NAMESPACES: [&str; 1] = ["layers"];

/// The warnings of `init` and `initSync` about arguments that are supported here, such as a plain address.
const WARNINGS: [&str; 2] = [
    "console.warn('using deprecated parameters for the initialization function; pass a single object instead')",
    "console.warn('using deprecated parameters for `initSync()`; pass a single object instead')",
];

/// Cleans the declarations of a `.d.ts`.
pub fn types(text: &str) -> Result<String> {
    let at = text.find(LOADING).with_context(|| format!("the types have no `{LOADING}`"))?;
    let (api, loading) = text.split_at(at);
    let declared: Vec<&str> = loading.lines().filter(|line| line.starts_with("export ")).collect();
    ensure!(
        declared == LOADED,
        "wasm-bindgen declares in another way how the wasm is loaded; write init.d.ts again. Found: {declared:#?}"
    );
    let mut clean = String::from(
        // Classes have `[Symbol.dispose]`, independent of the `lib` setting of the user's project.
        "/// <reference lib=\"esnext.disposable\" />\n/* eslint-disable */\n",
    );
    let (mut namespace, mut blank) = (false, true);
    for line in comments(api)?.lines() {
        if let Some(name) = line.strip_prefix("export class ") {
            namespace = NAMESPACES.contains(&name.trim_end_matches(" {"));
        }
        let freed = ["free(): void;", "[Symbol.dispose](): void;"].contains(&line.trim());
        let disabled = ["/* tslint:disable */", "/* eslint-disable */"].contains(&line);
        if disabled || freed && namespace || line.trim().is_empty() && blank {
            continue;
        }
        blank = line.trim().is_empty();
        clean += line.trim_end();
        clean.push('\n');
    }
    for word in ["InitOutput", "__wb", "any;"] {
        ensure!(!clean.contains(word), "the types name `{word}`, which is the wasm's own");
    }
    // wasm-bindgen writes this for an `Option` before a parameter of a custom type.
    let must = clean.lines().find(|line| line.contains(" | undefined, ") && line.contains("?: "));
    if let Some(must) = must {
        bail!(
            "the types ask for a parameter that may be left out: `{}`. It needs `unchecked_optional_param_type`.",
            must.trim()
        );
    }
    let hidden = clean
        .lines()
        .find(|line| line.trim_start().trim_start_matches("readonly ").starts_with('_'));
    if let Some(hidden) = hidden {
        bail!("the types declare what is hidden: `{}`. It needs `skip_typescript`.", hidden.trim());
    }
    Ok(clean + LOADING_OURS)
}

/// Cleans the script.
pub fn script(text: &str) -> Result<String> {
    let mut clean = comments(text)?;
    for warning in WARNINGS {
        ensure!(
            clean.matches(warning).count() == 1,
            "wasm-bindgen warns in another way, not once by `{warning}`"
        );
        clean = clean.replace(warning, "// Anything else is the wasm itself, or its place.");
    }
    Ok(clean)
}

/// Doc comments that pass through a macro arrive as raw string literals: `r" The sine.`
fn comments(text: &str) -> Result<String> {
    let mut clean = String::with_capacity(text.len());
    for line in text.lines() {
        let comment = line.trim_start().strip_prefix("* ").map(str::trim_start);
        match comment.and_then(|comment| comment.strip_prefix("r\"")) {
            Some(words) => {
                clean += &line[..line.len() - line.trim_start().len()];
                clean += "* ";
                clean += words.trim_start();
            }
            None => clean += line,
        }
        clean.push('\n');
        if comment.is_some_and(|comment| comment.starts_with("r#")) {
            bail!("a comment is a raw string of a kind that is not known: `{}`", line.trim());
        }
    }
    Ok(clean)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn written(api: &str) -> String {
        let [input, output, sync, init_sync, init] = LOADED;
        format!(
            "/* tslint:disable */\n/* eslint-disable */\n{api}\n{input}\n\n{output}\n    readonly a: (a: any) => any;\n}}\n\n\
             {sync}\n\n/**\n * @returns {{InitOutput}}\n */\n{init_sync}\n\n{init}\n"
        )
    }

    #[test]
    fn comments_are_words() {
        let clean = types(&written(
            "export class Tensor {\n    free(): void;\n    /**\n     * r\" The sine of \"x\".\n     *\n     * r\" In radians.\n     */\n    \
             sin(): Tensor;\n}",
        ))
        .unwrap();
        assert!(
            clean.contains("     * The sine of \"x\".\n     *\n     * In radians.\n"),
            "{clean}"
        );
        assert!(clean.contains("    free(): void;\n"), "{clean}");
        assert!(types(&written("/**\n * r#\" Odd.\n */")).is_err());
    }

    #[test]
    fn the_raw_exports_are_gone() {
        let clean = types(&written("export function tidy<T>(f: () => T): T;")).unwrap();
        assert!(clean.starts_with("/// <reference lib=\"esnext.disposable\" />\n"), "{clean}");
        assert!(clean.contains("export default function init("), "{clean}");
        for raw in ["InitOutput", "__wbg", "=> any", "tslint"] {
            assert!(!clean.contains(raw), "{raw}\n{clean}");
        }
    }

    #[test]
    fn a_namespace_has_nothing_to_free() {
        let class = |name: &str| {
            format!("export class {name} {{\n    free(): void;\n    [Symbol.dispose](): void;\n}}")
        };
        let clean = types(&written(&format!("{}\n{}", class("layers"), class("Plan")))).unwrap();
        assert_eq!((clean.matches("free()").count(), clean.matches("dispose]").count()), (1, 1));
    }

    #[test]
    fn another_wasm_bindgen_is_noticed() {
        assert!(types("export class Tensor {}\n").is_err());
        let other = written("").replace("initSync(module:", "initSync(input:");
        assert!(types(&other).unwrap_err().to_string().contains("init.d.ts"));
        assert!(types(&written("export class Tensor {\n    _keep(): void;\n}")).is_err());
        assert!(types(&written("export type Raw = InitOutput;")).is_err());
        let asked = "export function sort(axis: number | null | undefined, options?: {}): void;";
        assert!(types(&written(asked)).unwrap_err().to_string().contains("sort(axis"));
        assert!(script("console.log(1)").is_err());
        let warns = format!("{}\n{}\n", WARNINGS[0], WARNINGS[1]);
        assert!(!script(&warns).unwrap().contains("deprecated"));
    }
}
