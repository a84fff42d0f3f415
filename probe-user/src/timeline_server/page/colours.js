// What the colours of calls stand for: functions, or the programs and libraries that contain them.

import { byId, count, css, element } from './format.js';

const GREY = [128, 128, 128];
/** Objects in the legend. */
const LISTED = 100;

export class Colours {
  /** @param {import('./main.js').Page} page */
  constructor(page) {
    this.page = page;
    this.choice = /** @type {HTMLSelectElement} */ (byId('colour'));
    /** The colours by function. The painter knows by the array whether they are others. @type {number[][]} */
    this.all = [];
    this.made = '';
    this.know();
  }

  listen() {
    this.choice.addEventListener('change', () => {
      this.know();
      this.page.change();
      this.page.address.later();
    });
  }

  get isByObject() {
    return this.choice.value === 'object';
  }

  /** Makes the colours anew, if there are more functions or another choice was made. */
  know() {
    const { about } = this.page;
    const made = `${this.choice.value} ${about.colours.length}`;
    if (made === this.made) return;
    this.made = made;
    const objects = new Map(Object.entries(about.object_colours));
    this.all = this.isByObject ? about.functions.map(({ object }) => objects.get(object) ?? GREY) : about.colours;
    this.#legend(objects);
  }

  /** @param {number} id of the function */
  of(id) {
    return this.all[id] ?? GREY;
  }

  /** @param {Map<string, number[]>} objects */
  #legend(objects) {
    byId('colours-of').textContent = this.isByObject
      ? 'a call; each program and library has a colour of its own:'
      : 'a call; each function has a colour of its own';
    const rows = this.isByObject ? [...objects].slice(0, LISTED) : [];
    byId('objects').replaceChildren(...rows.map(([name, colour]) => {
      const line = element('div');
      const swatch = element('i', '', 'swatch');
      swatch.style.background = css(colour);
      line.append(swatch, ` ${name || 'unknown'}`);
      return line;
    }));
    if (rows.length < objects.size && this.isByObject) byId('objects').append(element('div', `and ${count(objects.size - rows.length)} more`));
  }

  /** Adds to the state that is in the address. @param {Record<string, string>} state */
  write(state) {
    if (this.isByObject) state.colour = this.choice.value;
  }

  /** @param {URLSearchParams} state */
  read(state) {
    this.choice.value = state.get('colour') === 'object' ? 'object' : 'function';
    this.know();
  }
}
