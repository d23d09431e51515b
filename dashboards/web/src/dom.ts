// Elements. Whatever comes from a log reaches the page as a text node or as an
// attribute that cannot run: nothing here parses HTML.

type Props = { [name: string]: string | number | boolean | undefined | ((e: Event) => void) };
export type Child = Node | string | null | undefined | false;

const given = (children: Child[]): (Node | string)[] => children.filter((c) => c !== null && c !== undefined && c !== false);

/** h makes an element: functions become listeners, all else attributes. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [name, v] of Object.entries(props)) {
    if (v === undefined || v === false) continue;
    if (typeof v === "function") e.addEventListener(name, v);
    else e.setAttribute(name, v === true ? "" : String(v));
  }
  e.append(...given(children));
  return e;
}

/**
 * fill replaces what an element holds. The focus stays at the new element of the
 * same data-key, so that who reads by keyboard is not thrown out by each refresh.
 */
export function fill(parent: Element, ...children: Child[]): void {
  const active = document.activeElement;
  const key = active instanceof HTMLElement && parent.contains(active) ? active.dataset.key : undefined;
  parent.replaceChildren(...given(children));
  if (key === undefined) return;
  for (const e of parent.querySelectorAll<HTMLElement>("[data-key]")) {
    if (e.dataset.key === key) {
      e.focus({ preventScroll: true });
      return;
    }
  }
}

/** say sets a text, and touches nothing if it is there. */
export function say(e: Element, text: string): void {
  if (e.textContent !== text) e.textContent = text;
}
