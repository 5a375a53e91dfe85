// Advice about WebGPU for the visitor's browser. Loaded only if it is needed.

import { byId, make } from './dom';

type Browser = 'Chrome' | 'Edge' | 'Opera' | 'Firefox' | 'Safari' | 'Samsung Internet' | 'this browser';
type System = 'Windows' | 'macOS' | 'Linux' | 'ChromeOS' | 'Android' | 'iOS' | '';

export interface Place {
  browser: Browser;
  version: number;
  system: System;
}

/** Derived from the user agent. All browsers on iOS are Safari inside, and iPads claim to be Macs. */
export function placeOf(agent: string, touches: number): Place {
  const version = (pattern: RegExp) => Number(pattern.exec(agent)?.[1] ?? 0);
  const system: System = /Android/.test(agent) ? 'Android' : /iPhone|iPad|iPod/.test(agent) || (/Macintosh/.test(agent) && touches > 1) ? 'iOS'
    : /Windows/.test(agent) ? 'Windows' : /CrOS/.test(agent) ? 'ChromeOS' : /Mac OS X/.test(agent) ? 'macOS' : /Linux|X11/.test(agent) ? 'Linux' : '';
  if (system === 'iOS') return { browser: 'Safari', version: version(/(?:Version\/| OS )(\d+)/), system };
  const patterns: [Browser, RegExp][] = [
    ['Edge', /Edg(?:A|e)?\/(\d+)/], ['Opera', /OPR\/(\d+)/], ['Samsung Internet', /SamsungBrowser\/(\d+)/], ['Firefox', /Firefox\/(\d+)/],
    ['Chrome', /Chrom(?:e|ium)\/(\d+)/], ['Safari', /Version\/(\d+).*Safari/],
  ];
  const [browser, pattern] = patterns.find(([, pattern]) => pattern.test(agent)) ?? ['this browser' as const, /$^/];
  return { browser, version: version(pattern), system };
}

/** The first versions with WebGPU enabled. */
function since({ browser, system }: Place): number {
  if (browser === 'Firefox') return system === 'Windows' ? 141 : system === 'macOS' ? 145 : Infinity;
  if (browser === 'Chrome' || browser === 'Edge') return system === 'Android' ? 121 : 113;
  return browser === 'Safari' ? 26 : browser === 'Opera' ? 99 : browser === 'Samsung Internet' ? 24 : Infinity;
}

const flags = ({ browser }: Place) => (browser === 'Edge' ? 'edge' : browser === 'Opera' ? 'opera' : 'chrome');

/** How to enable WebGPU if the browser supports it but has it disabled. */
function turnOn(place: Place): string {
  const { browser, system } = place;
  if (browser === 'Firefox') return 'open about:config in a new tab, set dom.webgpu.enabled to true, and start Firefox again';
  if (browser === 'Safari') {
    return system === 'iOS' ? 'switch on WebGPU in the Settings app, under Apps, Safari, Advanced, Feature Flags'
      : 'switch on WebGPU in Safari’s settings, under Feature Flags';
  }
  return `open ${flags(place)}://flags/#enable-unsafe-webgpu in a new tab, choose Enabled, and start the browser again`;
}

/** Advice if `navigator.gpu` is missing. */
export function withoutWebGpu(place: Place, secure: boolean): string {
  if (!secure) return 'Browsers offer WebGPU only to secure pages. Open this one by https, or from localhost.';
  const { browser, version, system } = place;
  const from = since(place);
  const here = `${browser === 'this browser' ? 'This browser' : `${browser}${version > 0 ? ` ${version}` : ''}`}${system ? ` on ${system}` : ''}`;
  if (browser === 'this browser') return `${here} does not offer WebGPU. Chrome and Edge have it from version 113 on, Safari from 26, Firefox from 141 on Windows and 145 on macOS.`;
  if (browser === 'Safari' && system === 'iOS' && version < from) return `${here} does not offer WebGPU. Update to iOS 26 in the Settings app, under General.`;
  if (version < from && Number.isFinite(from)) return `${here} does not offer WebGPU; version ${from} does. Update it, and load this page again.`;
  const instead = browser === 'Firefox' && system !== 'Android' ? ' Or use Chrome.' : '';
  return `${here} has WebGPU switched off. To switch it on, ${turnOn(place)}.${instead}`;
}

/** Advice if there is WebGPU but no adapter. */
export function withoutAdapter(place: Place): string {
  const { browser, system } = place;
  const driver = system === 'macOS' || system === 'iOS' ? '' : ' Bring the graphics driver up to date.';
  if (browser === 'Firefox') {
    return `Firefox has WebGPU, but found no GPU for it. Switch on “Use hardware acceleration” in its settings, under Performance.${driver} about:support tells the reason, under Graphics.`;
  }
  if (browser === 'Safari') return `Safari has WebGPU, but found no GPU for it. Start Safari again, and bring ${system || 'the system'} up to date.`;
  const scheme = flags(place);
  const linux = system === 'Linux' ? ` If that is not enough, open ${scheme}://flags/#enable-vulkan and choose Enabled.` : '';
  return `The browser has WebGPU, but found no GPU for it. Switch on graphics acceleration in ${scheme}://settings/system.${driver}${linux} ${scheme}://gpu tells the reason.`;
}

/** Advice for a software adapter. */
export function onSoftware(place: Place, name: string): string {
  const { browser } = place;
  const how = browser === 'Firefox' ? 'about:support tells why, under Graphics; “Use hardware acceleration” is in the settings, under Performance'
    : browser === 'Safari' ? 'bring the system up to date' : `${flags(place)}://gpu tells why; graphics acceleration is switched on in ${flags(place)}://settings/system`;
  return `This browser gives the page no GPU: the processor computes in its place${name ? ` (${name})` : ''}, ten to a hundred times slower. To use the GPU: ${how}.`;
}

export const here = (): Place => placeOf(navigator.userAgent, navigator.maxTouchPoints);

/** Pages cannot link to addresses of the browser's own pages, but visitors can copy them. */
const ADDRESS = /((?:chrome|edge|opera):\/\/[\w/#-]+[\w-]|about:\w+|dom\.webgpu\.enabled)/;

/** Shows advice in its own place, where it stays. */
export function advise(id: string, title: string, text: string): void {
  const place = byId(id);
  place.replaceChildren(make('p', {}, make('strong', {}, title), ' ',
    ...text.split(ADDRESS).map((part, i) => (i % 2 === 1 ? make('code', {}, part) : part))));
  place.hidden = false;
}
