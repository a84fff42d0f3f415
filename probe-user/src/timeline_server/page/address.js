// The part of the page's state that is in its address, so a bookmark or a reload comes back to it.

import { byId } from './format.js';

/** The fields whose texts are in the address. */
const FIELDS = ['find', 'threads', 'depth'];

export class Address {
  /** @param {import('./main.js').Page} page */
  constructor(page) {
    this.page = page;
    /** @type {number | undefined} */
    this.waiting = undefined;
  }

  /** Writes it once nothing has moved for a while: browsers limit how often an address changes. */
  later() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      this.write();
      this.page.rest();
    }, 200);
  }

  write() {
    const { view, range } = this.page;
    /** @type {Record<string, string>} */
    const state = { from: String(Math.floor(view.from)), to: String(Math.ceil(view.to)) };
    if (view.scroll) state.y = String(Math.round(view.scroll));
    for (const id of FIELDS) {
      const { value } = /** @type {HTMLInputElement} */ (byId(id));
      if (value) state[id] = value;
    }
    this.page.threads.write(state);
    this.page.colours.write(state);
    if (range) state.range = `${range.from}..${range.to}`;
    history.replaceState(null, '', `#${new URLSearchParams(state)}`);
  }

  /** Shows what the address says. */
  read() {
    const { page } = this;
    const state = new URLSearchParams(location.hash.slice(1));
    const number = (/** @type {string} */ name) => Number.parseFloat(state.get(name) ?? '');
    for (const id of FIELDS) {
      /** @type {HTMLInputElement} */ (byId(id)).value = state.get(id) ?? '';
    }
    page.threads.read(state);
    page.colours.read(state);
    if (number('to') > number('from')) page.view.show(number('from'), number('to'));
    page.view.scroll = number('y') || 0;
    const [from, to] = (state.get('range') ?? '').split('..').map(Number);
    if (to > from) page.chooseRange(from, to);
    if (state.get('find')) page.find();
  }
}
