/** The source of the wasm: its address, a response with it, its bytes, or the compiled module. */
export type InitInput = RequestInfo | URL | Response | BufferSource | WebAssembly.Module;

/** The wasm when it is already loaded: its bytes, or the compiled module. */
export type SyncInitInput = BufferSource | WebAssembly.Module;

/** Like `init`, for a wasm that is already loaded, such as a module that a page has sent to its worker. */
export function initSync(module: { module: SyncInitInput } | SyncInitInput): void;

/**
 * Loads the wasm, by default from `wgrad_bg.wasm` next to this module, and starts it. Call everything else after it has
 * resolved. Further calls have no effect.
 */
export default function init(
    module_or_path?: { module_or_path: InitInput | Promise<InitInput> } | InitInput | Promise<InitInput>,
): Promise<void>;
