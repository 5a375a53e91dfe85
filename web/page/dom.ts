// Short functions for the document.

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no element “${id}”.`);
  return found as T;
}

type Content = Node | string;

/** An element with attributes (`class`, `aria-label`, ...) and content. Attributes that are undefined are left out. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, string | undefined> = {}, ...content: Content[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) element.setAttribute(name, value);
  element.append(...content);
  return element;
}

export function button(text: string, onClick: () => void, attributes: Record<string, string> = {}): HTMLButtonElement {
  const element = make('button', { type: 'button', ...attributes }, text);
  element.addEventListener('click', onClick);
  return element;
}

/** Sets a text only if it differs, so that nothing is drawn or announced again. */
export function say(id: string, text: string): void {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
}

/** Gives the parent `count` children; `fill` updates the i-th. */
export function fill<T extends HTMLElement>(parent: HTMLElement, count: number, create: (i: number) => T, update: (child: T, i: number) => void): void {
  while (parent.children.length > count) parent.lastElementChild?.remove();
  while (parent.children.length < count) parent.append(create(parent.children.length));
  for (let i = 0; i < count; i++) update(parent.children[i] as T, i);
}

/** Runs one call at a time, and after it only the newest of those that arrived meanwhile. */
export function latest<T>(work: (value: T) => Promise<void>): (value: T) => void {
  let busy = false;
  let next: { value: T } | undefined;
  return (value) => {
    next = { value };
    if (busy) return;
    busy = true;
    void (async () => {
      try {
        while (next) {
          const { value } = next;
          next = undefined;
          await work(value);
        }
      } finally {
        busy = false;
      }
    })();
  };
}

/** Lets the page draw and handle events, between pieces of work that can wait. */
export const pause = () => new Promise<void>((resolve) => setTimeout(resolve));
