//! Messages for a browser without WebGPU or without an adapter: the browser's name, and what to do
//! there.

use js_sys::Reflect;
use wasm_bindgen::JsValue;
use wgrad::{DeviceFault, Error};

/// A browser, identified by its `navigator`.
struct Browser {
    name: &'static str,
    version: Option<u32>,
    linux: bool,
    android: bool,
}

impl Browser {
    /// `None` where nothing is said.
    fn here() -> Option<Self> {
        let global = js_sys::global();
        let agent = get(&get(&global, "navigator"), "userAgent").as_string();
        // Node.js has a navigator from version 21 on.
        let node = || get(&get(&get(&global, "process"), "versions"), "node").as_string();
        Browser::of(&agent.or_else(|| Some(format!("Node.js/{}", node()?)))?)
    }

    fn of(agent: &str) -> Option<Self> {
        // Newer browsers also claim to be older ones, so the order matters.
        let marks = [
            ("Edg/", "Edge"),
            ("OPR/", "Opera"),
            ("SamsungBrowser/", "Samsung Internet"),
            ("FxiOS/", "Firefox for iOS"),
            ("CriOS/", "Chrome for iOS"),
            ("Firefox/", "Firefox"),
            ("Chrome/", "Chrome"),
            ("Version/", "Safari"),
            ("Node.js/", "Node.js"),
            ("Deno/", "Deno"),
            ("Bun/", "Bun"),
        ];
        let (mark, name) = *marks.iter().find(|(mark, _)| agent.contains(mark))?;
        let behind = agent.split_once(mark)?.1;
        let digits = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
        let android = agent.contains("Android");
        let linux = agent.contains("Linux") && !android;
        Some(Browser { name, version: behind[..digits].parse().ok(), linux, android })
    }

    fn with_version(&self) -> String {
        match self.version {
            Some(version) => format!("{} {version}", self.name),
            None => self.name.to_string(),
        }
    }

    /// What to do without WebGPU.
    fn remedy(&self) -> String {
        let older = |first: u32| self.version.is_none_or(|version| version < first);
        let update = |first: u32| format!("update it to {first} or newer");
        match self.name {
            "Firefox" if older(141) => update(141),
            "Firefox" => "set dom.webgpu.enabled to true in about:config and load the page again, or take Chrome, Edge or \
                          Safari 26"
                .to_string(),
            "Chrome" if self.android && older(121) => update(121),
            "Chrome" | "Edge" if older(113) => update(113),
            "Chrome" | "Edge" | "Opera" if self.linux => format!(
                "turn on \"Unsafe WebGPU Support\" in {}://flags and start the browser again",
                self.name.to_lowercase()
            ),
            "Chrome" | "Edge" | "Opera" => {
                "turn on graphics acceleration in its settings, bring it and the graphics driver up to date, and start it \
                 again"
                    .to_string()
            }
            "Safari" | "Firefox for iOS" | "Chrome for iOS" => {
                "update the system to macOS 26, iOS 26 or newer, or take Chrome or Edge on a computer".to_string()
            }
            "Node.js" | "Deno" | "Bun" => "run it in a browser".to_string(),
            _ => OTHERS.to_string(),
        }
    }

    /// What to do if there is WebGPU but no adapter.
    fn adapter_remedy(&self) -> String {
        match self.name {
            "Firefox" => format!("{DRIVER}, where about:support shows what is blocked"),
            "Chrome" | "Edge" | "Opera" if self.linux => format!(
                "{DRIVER}, or start it with --enable-unsafe-webgpu --enable-features=Vulkan, where {}://gpu shows \
                 what is blocked",
                self.name.to_lowercase()
            ),
            "Chrome" | "Edge" | "Opera" => {
                format!("{DRIVER}, where {}://gpu shows what is blocked", self.name.to_lowercase())
            }
            _ => DRIVER.to_string(),
        }
    }
}

const DRIVER: &str =
    "turn on hardware acceleration in its settings and bring the graphics driver up to date";

const OTHERS: &str = "take Chrome or Edge 113, Safari 26, Firefox 141, or newer";

fn get(object: &JsValue, key: &str) -> JsValue {
    Reflect::get(object, &key.into()).unwrap_or_default()
}

/// The message if `navigator.gpu` is missing; `secure` is the page's `isSecureContext`.
pub(crate) fn without_webgpu(secure: Option<bool>) -> String {
    let browser = Browser::here();
    let name = browser.as_ref().map_or("This browser".to_string(), Browser::with_version);
    if secure == Some(false) {
        return format!(
            "Device.open: {name} has WebGPU only on pages that come over https or from localhost, and this one does not; \
             load it from there."
        );
    }
    let remedy = browser.as_ref().map_or(OTHERS.to_string(), Browser::remedy);
    format!("Device.open: {name} has no WebGPU here (navigator.gpu is missing); {remedy}.")
}

/// The error of `Device.open` if there is no adapter, with advice for this browser.
pub(crate) fn named(error: Error) -> Error {
    let Error::Device(DeviceFault::NoAdapter, _) = &error else { return error };
    let browser = Browser::here();
    let name = browser.as_ref().map_or("this browser".to_string(), Browser::with_version);
    let remedy = browser.map_or(DRIVER.to_string(), |browser| browser.adapter_remedy());
    let text = format!("Device.open: {name} has WebGPU and offers no adapter; {remedy}.");
    Error::Device(DeviceFault::NoAdapter, text.into())
}
