//! Adds the dtype to the types of tensors: `Tensor<'float32'>`, whose `data()` resolves with a `Float32Array`.
//!
//! wasm-bindgen cannot write classes with type parameters, so they are added here. A tensor's method returns a tensor of the
//! same dtype, except for those listed below.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

/// Types that the parameters need.
const TYPES: &str = "
/** The array type that the elements of a dtype are read into. */
export interface Arrays {
    float32: Float32Array; float16: Float32Array; int32: Int32Array; uint32: Uint32Array; uint8: Uint8Array; bool: Uint8Array;
}

/** The floating-point dtypes, which training uses. */
export type Float = 'float32' | 'float16';

/** The dtype of a quotient or a mean. */
export type Real<D extends DType> = D extends Float ? D : 'float32';

/** Numbers in nested lists of equal lengths. */
export type Numbers = number | readonly Numbers[];

/** Booleans in nested lists of equal lengths. */
export type Truths = boolean | readonly Truths[];

/** The values that tensors are made from. */
export type Values = TypedArray | Float64Array | Int8Array | Int16Array | Uint16Array | Uint8ClampedArray | Nested;

/** The dtype of a tensor of these values. */
export type DTypeOf<V> =
    V extends Float32Array | Float64Array ? 'float32'
    : V extends Int32Array | Int8Array | Int16Array | Uint16Array ? 'int32'
    : V extends Uint32Array ? 'uint32'
    : V extends Uint8Array | Uint8ClampedArray ? 'uint8'
    : V extends Numbers ? 'float32'
    : V extends Truths ? 'bool'
    : DType;

/** The JSON of a tensor or a variable, without its values. */
export interface TensorJson { type: string; name?: string; dtype?: DType; shape?: number[]; values?: string; disposed?: boolean; }
";

/// A variable has the methods of its value.
const VARIABLE: &str = "
/** A variable has the methods of its value. */
export interface Variable<D extends DType = DType> extends Omit<Tensor<D>, 'dispose'> {}
";

/// Methods of tensors that return booleans.
const TRUTHS: [&str; 20] = [
    "all",
    "and",
    "any",
    "equal",
    "greater",
    "greaterEqual",
    "isFinite",
    "isInf",
    "isNaN",
    "less",
    "lessEqual",
    "logicalAnd",
    "logicalNot",
    "logicalOr",
    "logicalXor",
    "not",
    "notEqual",
    "or",
    "toBool",
    "xor",
];

/// Methods that return indices or other integers.
const PLACES: [&str; 6] = ["argMax", "argMin", "argmax", "argmin", "argsort", "toInt"];

/// Methods that return `float32`.
const FLOATS: [&str; 7] = ["eye", "full", "linspace", "oneHot", "ones", "toFloat", "zeros"];

/// Methods that return floats also for integers and booleans.
const REALS: [&str; 2] = ["div", "mean"];

/// Methods whose result has no statically known dtype.
const ANY: [&str; 2] = ["populationCount", "select"];

/// Lines to replace, found by their beginnings.
const WRITTEN: [(&str, &str); 11] = [
    ("export class Tensor {", "export class Tensor<D extends DType = DType> {"),
    ("    data(): Promise<TypedArray>;", "    data(): Promise<Arrays[D]>;"),
    (
        "    static from(values: ",
        "    static from<V extends Values>(values: V, shape?: readonly number[] | null, dtype?: undefined): Tensor<DTypeOf<V>>;\n    \
             static from<T extends DType>(values: Values, shape: readonly number[] | null | undefined, dtype: T): Tensor<T>;\n    \
             static from(values: Values, shape?: readonly number[] | null, dtype?: DType): Tensor;",
    ),
    (
        "    static where(condition: ",
        "    static where<T extends DType>(condition: Tensor | Variable | boolean, a: Tensor<T> | Variable<T> | number | boolean, \
         b: Tensor<T> | Variable<T> | number | boolean): Tensor<T>;",
    ),
    ("    cast(dtype: DType): Tensor;", "    cast<T extends DType>(dtype: T): Tensor<T>;"),
    ("export class Variable {", "export class Variable<D extends DType = DType> {"),
    (
        "    constructor(start: Tensor, name",
        "    constructor(start: Tensor<D>, name?: string | null);",
    ),
    ("    read(): Tensor;", "    read(): Tensor<D>;"),
    (
        "    predict(x: Examples, options",
        "    predict(x: Examples, options?: { batchSize?: number }): Promise<Tensor<Float>>;",
    ),
    (
        "    trainStep(x: Tensor, y: Tensor): { loss: Tensor; accuracy?: Tensor };",
        "    trainStep(x: Tensor, y: Tensor): { loss: Tensor<Float>; accuracy?: Tensor<Float> };",
    ),
    (
        "export function valueAndGradients(f: () => Tensor, sources: readonly (Tensor | Variable)[]): ",
        "export function valueAndGradients<T extends Tensor = Tensor<Float>>(f: () => T, sources: readonly (Tensor | Variable)[]): \
         { value: T; gradients: (Tensor<Float> | undefined)[] };",
    ),
];

/// Ends of lines in other classes and functions, and their replacements.
const ENDS: [(&str, &str); 6] = [
    ("    call(x: Tensor, training?: boolean | null): Tensor;", "Tensor<Float>;"),
    (": (Tensor | undefined)[];", "(Tensor<Float> | undefined)[];"),
    ("    readonly variables: Variable[];", "Variable<Float>[];"),
    ("export function randomNormal(", "Tensor<'float32'>;"),
    ("export function randomUniform(", "Tensor<'float32'>;"),
    ("    batch(beginOrIndices", "{ x: Tensor<'float32'>; y: Tensor<'int32'> };"),
];

/// Those of these lines that the module for models of other programs declares itself, as its models may have several inputs and
/// outputs; and how its declarations are recognized.
const OF_ONE_TENSOR: [&str; 3] = [
    "    predict(x: Examples, options",
    "    trainStep(x: Tensor, y: Tensor): { loss: Tensor; accuracy?: Tensor };",
    "    call(x: Tensor, training?: boolean | null): Tensor;",
];
const OF_SEVERAL: &str = "export class GraphModel {";

/// Parts of lines, and their replacements anywhere.
const PARTS: [(&str, &str); 11] = [
    ("{ mean: Tensor; variance: Tensor }", "{ mean: Tensor<D>; variance: Tensor<D> }"),
    ("{ values: Tensor; indices: Tensor }", "{ values: Tensor<D>; indices: Tensor<'int32'> }"),
    (
        "    booleanMask(mask: Tensor, axis?: number | null): Promise<Tensor>;",
        "    booleanMask(mask: Tensor, axis?: number | null): Promise<Tensor<D>>;",
    ),
    ("    whereAsync(): Promise<Tensor>;", "    whereAsync(): Promise<Tensor<'int32'>>;"),
    (
        "{ x: Tensor; y: Tensor } | undefined",
        "{ x: Tensor<'float32'>; y: Tensor<'int32'> } | undefined",
    ),
    ("(f: (x: Tensor) => Tensor)", "(f: (x: Tensor<Float>) => Tensor)"),
    ("(f: (...xs: Tensor[]) => Tensor)", "(f: (...xs: Tensor<Float>[]) => Tensor)"),
    ("dy?: Tensor) => Tensor", "dy?: Tensor) => Tensor<Float>"),
    ("{ value: Tensor; grad: Tensor }", "{ value: Tensor<Float>; grad: Tensor<Float> }"),
    ("{ value: Tensor; grads: Tensor[] }", "{ value: Tensor<Float>; grads: Tensor<Float>[] }"),
    (
        "{ value: Tensor; grads: Record<string, Tensor> }",
        "{ value: Tensor<Float>; grads: Record<string, Tensor<Float>> }",
    ),
];

/// Joins tensors of one dtype.
const JOINED: (&str, &str) =
    ("values: readonly (Tensor | Variable)[]", "values: readonly (Tensor<T> | Variable<T>)[]");

/// A last argument that determines the dtype.
const CHOSEN: (&str, &str) = ("dtype?: DType): Tensor;", "dtype?: T): Tensor<T>;");

/// A static method with the parameter `T`.
fn with_parameter(line: &str) -> Option<String> {
    let head = line.strip_prefix("    static ")?;
    let (name, rest) = head.split_once('(')?;
    if rest.starts_with(JOINED.0) && rest.ends_with("): Tensor;") {
        let rest = rest.replace(JOINED.0, JOINED.1).replace("): Tensor;", "): Tensor<T>;");
        return Some(format!("    static {name}<T extends DType>({rest}"));
    }
    let rest = rest.strip_suffix(CHOSEN.0)?;
    Some(format!("    static {name}<T extends DType = 'float32'>({rest}{}", CHOSEN.1))
}

/// The declarations with type parameters. The declarations of the page's own build, whose tensors have few methods, stay
/// unchanged.
pub fn typed(text: &str) -> Result<String> {
    if !text.contains("    matmul(") {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len() * 5 / 4);
    let mut class = "";
    let (mut done, mut named) = (BTreeSet::new(), BTreeSet::new());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("export class ") {
            class = name.trim_end_matches(" {");
        }
        if let Some((from, to)) = WRITTEN.iter().find(|(from, _)| line.starts_with(from)) {
            done.insert(*from);
            out += to;
        } else if let Some((from, to)) = ENDS.iter().find(|(from, _)| {
            line.starts_with(from) || from.starts_with(": ") && line.ends_with(from)
        }) {
            done.insert(*from);
            let (head, _) = line
                .rsplit_once(": ")
                .filter(|_| !to.starts_with('{'))
                .or_else(|| line.rsplit_once("): "))
                .with_context(|| format!("'{line}' gives nothing"))?;
            let bracket = if to.starts_with('{') { ")" } else { "" };
            out += &format!("{head}{bracket}: {to}");
        } else if ["Tensor", "Variable"].contains(&class) && line == "    readonly dtype: DType;" {
            out += "    readonly dtype: D;\n    /** Dtype and shape, and how to read the values. */\n    toJSON(): TensorJson;";
        } else if let Some(line) = with_parameter(line).filter(|_| class == "Tensor") {
            out += &line;
        } else if let Some((head, many)) = method(line).filter(|_| class == "Tensor") {
            let fixed = head.trim_start().starts_with("static ");
            let name = head.trim_start().trim_start_matches("static ");
            let name = name.split(['(', '<']).next().unwrap_or_default();
            let dtype = match name {
                name if TRUTHS.contains(&name) => "<'bool'>",
                name if PLACES.contains(&name) => "<'int32'>",
                name if FLOATS.contains(&name) => "<'float32'>",
                name if REALS.contains(&name) => "<Real<D>>",
                name if ANY.contains(&name) || fixed => "",
                _ => "<D>",
            };
            named.insert(name);
            out += &format!("{head}): Tensor{dtype}{many};");
        } else {
            let words =
                PARTS.iter().fold(line.to_owned(), |line, (from, to)| line.replace(from, to));
            out += &words;
        }
        out.push('\n');
        if line == "}" {
            class = "";
        }
    }
    let several = text.contains(OF_SEVERAL);
    for (from, _) in WRITTEN.iter().chain(&ENDS) {
        ensure!(
            done.contains(from) || (several && OF_ONE_TENSOR.contains(from)),
            "the types have no line '{from}'; dtypes.rs has to be reported of the new one"
        );
    }
    for name in TRUTHS.iter().chain(&PLACES).chain(&FLOATS).chain(&REALS).chain(&ANY) {
        ensure!(
            named.contains(name),
            "the types have no method '{name}' of a tensor that gives a Tensor"
        );
    }
    Ok(out + TYPES + VARIABLE)
}

/// The text before `): Tensor`, and the brackets after it.
fn method(line: &str) -> Option<(&str, &str)> {
    let (head, given) = line.rsplit_once("): Tensor")?;
    let many = given.strip_suffix(';')?;
    ["", "[]"].contains(&many).then_some((head, many))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Everything that is expected, and one more method.
    fn declared() -> String {
        let mut text = String::from(
            "export class Tensor {\n    matmul(other: Operand): Tensor;\n    split(n: number): Tensor[];\n    static einsum(n: \
             number): Tensor;\n    static stack(values: readonly (Tensor | Variable)[], axis?: number): Tensor;\n    static \
             fill(shape: number[], dtype?: DType): Tensor;\n    topk(k: number): { values: Tensor; indices: Tensor };\n",
        );
        for name in TRUTHS.iter().chain(&PLACES).chain(&FLOATS).chain(&REALS).chain(&ANY) {
            text += &format!("    {name}(x?: number): Tensor;\n");
        }
        for (from, _) in WRITTEN.iter().chain(&ENDS).filter(|(from, _)| !from.contains("class")) {
            text += match *from {
                ": (Tensor | undefined)[];" => "    gradient(x: Operand): (Tensor | undefined)[];",
                "    batch(beginOrIndices" => {
                    "    batch(beginOrIndices?: number): { x: Tensor; y: Tensor };"
                }
                "export function randomNormal(" => "export function randomNormal(): Tensor;",
                "export function randomUniform(" => "export function randomUniform(): Tensor;",
                other => other,
            };
            text.push('\n');
        }
        text + "    readonly dtype: DType;\n}\nexport class Variable {\n    readonly dtype: DType;\n}\n"
    }

    #[test]
    fn tensors_have_their_dtypes() {
        let text = typed(&declared()).unwrap();
        for line in [
            "export class Tensor<D extends DType = DType> {",
            "    matmul(other: Operand): Tensor<D>;",
            "    split(n: number): Tensor<D>[];",
            "    static einsum(n: number): Tensor;",
            "    static stack<T extends DType>(values: readonly (Tensor<T> | Variable<T>)[], axis?: number): Tensor<T>;",
            "    static fill<T extends DType = 'float32'>(shape: number[], dtype?: T): Tensor<T>;",
            "    topk(k: number): { values: Tensor<D>; indices: Tensor<'int32'> };",
            "    equal(x?: number): Tensor<'bool'>;",
            "    argmax(x?: number): Tensor<'int32'>;",
            "    select(x?: number): Tensor;",
            "    data(): Promise<Arrays[D]>;",
            "    readonly dtype: D;",
            "    gradient(x: Operand): (Tensor<Float> | undefined)[];",
            "    batch(beginOrIndices?: number): { x: Tensor<'float32'>; y: Tensor<'int32'> };",
            "    call(x: Tensor, training?: boolean | null): Tensor<Float>;",
            "export class Variable<D extends DType = DType> {",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn removed_parts_are_reported() {
        let without =
            declared().replace("    data(): Promise<TypedArray>;", "    data(): Promise<unknown>;");
        assert!(typed(&without).unwrap_err().to_string().contains("data()"));
        for line in OF_ONE_TENSOR {
            let without = declared().replace(line, "    other(");
            assert!(typed(&without).is_err());
            typed(&(without + OF_SEVERAL)).unwrap();
        }
        let without = declared().replace("    argmin(", "    smallest(");
        assert!(typed(&without).unwrap_err().to_string().contains("argmin"));
        // The page's own build.
        assert_eq!(typed("export class Tensor {\n}\n").unwrap(), "export class Tensor {\n}\n");
    }
}
