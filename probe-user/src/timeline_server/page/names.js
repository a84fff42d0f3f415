// The names of the threads that are on the screen, with what can be done with each, and of processes if there are
// several. They stay as they are while only the time moves: to make them anew, the browser would lay out the page in
// each frame.

import { calls, element, idBesideName } from './format.js';
import { RULER } from './view.js';

/**
 * @typedef {{ key: string, thread: number | null, isPinned: boolean, name: string, more: string, top: number }} Label
 */

export class Names {
  /**
   * @param {HTMLElement} box
   * @param {{ hide: (thread: number) => void, pin: (thread: number) => void }} threads
   */
  constructor(box, threads) {
    this.box = box;
    this.threads = threads;
    /** What is shown. @type {Label[]} */
    this.shown = [];
    this.text = '';
    /** The element of each label. A button that is pressed stays while others change. @type {Map<string, HTMLElement>} */
    this.made = new Map();
  }

  /**
   * @param {import('./rows.js').Rows} rows
   * @param {number} scroll
   * @param {number} height
   * @param {boolean} isEstimated
   */
  draw(rows, scroll, height, isEstimated) {
    const processes = rows.processes.filter(({ top }) => top + 16 > scroll && top < scroll + height);
    const labels = [
      ...processes.map(({ pid, name, top }) => ({
        key: `process ${pid}`, thread: null, isPinned: false, name: `process ${pid}`, more: name && ` ${name}`, top: RULER + top - scroll,
      })),
      ...rows.visibleTracks(scroll, height).map(({ thread, isPinned, top, bottom }) => ({
        key: String(thread.id),
        thread: thread.id,
        isPinned,
        name: thread.name || 'thread',
        more: `${idBesideName(thread)} · ${isEstimated ? 'about ' : ''}${calls(thread.calls)}`
          + (isPinned && rows.processes.length ? ` · process ${thread.pid}` : ''),
        top: RULER + Math.min(Math.max(top - scroll, 0), bottom - scroll - 16),
      })),
    ].sort((a, b) => a.top - b.top);
    const text = JSON.stringify(labels);
    if (text === this.text) return;
    [this.shown, this.text] = [labels, text];
    const before = this.made;
    this.made = new Map(labels.map((label) => [label.key, before.get(label.key) ?? this.#make(label)]));
    const all = labels.map((label) => this.#put(label));
    if (all.length !== this.box.children.length || all.some((made, n) => made !== this.box.children[n])) {
      this.box.replaceChildren(...all);
    }
  }

  /** @param {Label} label */
  #make({ thread }) {
    const made = element('div', '', thread === null ? 'process' : 'thread');
    made.append(element('b'), element('span'));
    if (thread === null) return made;
    const button = (/** @type {string} */ text, /** @type {string} */ name, /** @type {() => void} */ action) => {
      const part = element('button', text, name);
      part.addEventListener('click', action);
      // The mouse does nothing else there.
      for (const what of ['pointerdown', 'pointerup']) part.addEventListener(what, (event) => event.stopPropagation());
      made.append(part);
      return part;
    };
    button('', 'pin', () => this.threads.pin(thread));
    button('hide', 'hide', () => this.threads.hide(thread)).title = 'Hide this thread (H)';
    return made;
  }

  /** @param {Label} label */
  #put({ key, name, more, top, isPinned }) {
    const made = /** @type {HTMLElement} */ (this.made.get(key));
    const [first, second, pin] = made.children;
    if (first.textContent !== name) first.textContent = name;
    if (second.textContent !== more) second.textContent = more;
    if (pin) {
      pin.textContent = isPinned ? 'unpin' : 'pin';
      /** @type {HTMLElement} */ (pin).title = isPinned ? 'Put this thread back to its process (T)' : 'Show this thread above the others (T)';
    }
    made.style.top = `${top}px`;
    return made;
  }
}
