// Which threads are shown, and in which order: chosen by name, hidden, or pinned to the top.

import { byId, count } from './format.js';
import { RULER } from './view.js';

export class Threads {
  /** @param {import('./main.js').Page} page */
  constructor(page) {
    this.page = page;
    this.button = byId('hidden');
    /** How many hidden threads the button tells of. */
    this.told = 0;
  }

  listen() {
    for (const id of ['threads', 'depth']) {
      byId(id).addEventListener('input', () => {
        this.filter();
        this.page.change();
      });
    }
    this.button.addEventListener('click', () => this.showAll());
  }

  filter() {
    const { rows } = this.page;
    rows.pattern = /** @type {HTMLInputElement} */ (byId('threads')).value;
    rows.depth = Math.max(1, Number.parseInt(/** @type {HTMLInputElement} */ (byId('depth')).value, 10)) || null;
    rows.place();
  }

  /** @param {number} id */
  hide(id) {
    this.page.rows.hidden.add(id);
    this.#changed();
  }

  showAll() {
    this.page.rows.hidden.clear();
    this.#changed();
  }

  /** Pins a thread below those that are pinned, or unpins it. @param {number} id */
  pin(id) {
    const { pinned } = this.page.rows;
    if (!pinned.delete(id)) pinned.add(id);
    this.#changed();
  }

  /** The thread at the mouse. */
  atMouse() {
    const { rows, view, pointer } = this.page;
    return rows.at(view.scroll + pointer.y - RULER)?.thread.id;
  }

  #changed() {
    this.page.rows.place();
    this.page.change();
    this.page.address.later();
  }

  /** Says how many are hidden. */
  tell() {
    const { hiddenCount: hidden } = this.page.rows;
    if (hidden === this.told) return;
    this.told = hidden;
    this.button.hidden = !hidden;
    this.button.textContent = `show ${count(hidden)} hidden`;
  }

  /** Adds to the state that is in the address. @param {Record<string, string>} state */
  write(state) {
    const { hidden, pinned } = this.page.rows;
    if (hidden.size) state.hide = [...hidden].join('.');
    if (pinned.size) state.pin = [...pinned].join('.');
  }

  /** @param {URLSearchParams} state */
  read(state) {
    const ids = (/** @type {string} */ name) => new Set((state.get(name)?.split('.') ?? []).map(Number));
    this.page.rows.hidden = ids('hide');
    this.page.rows.pinned = ids('pin');
    this.filter();
  }
}
