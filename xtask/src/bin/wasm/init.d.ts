/** Where `init` finds the wasm: its address, a response with it, its bytes, or the compiled module. */
export type InitInput = RequestInfo | URL | Response | BufferSource | WebAssembly.Module;

/** The wasm where it is at hand: its bytes, or the compiled module. */
export type SyncInitInput = BufferSource | WebAssembly.Module;

/** As `init`, with the wasm at hand, such as a module that a page has sent to its worker. */
export function initSync(module: { module: SyncInitInput } | SyncInitInput): void;

/**
 * Loads the wasm, from `wgrad_bg.wasm` beside this module unless another place is given, and starts it. Everything else
 * is called after it has resolved. Another call does nothing more.
 */
export default function init(
    module_or_path?: { module_or_path: InitInput | Promise<InitInput> } | InitInput | Promise<InitInput>,
): Promise<void>;
