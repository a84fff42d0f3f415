// The mouse: what it is at, and what it does.

import { missing, placed } from './draw.js';
import { byId, count, duration, time } from './format.js';
import { ROW } from './rows.js';
import { RULER } from './view.js';

/** Pixels around the mouse in which a call is found. */
const NEAR = 3;

/**
 * @typedef {{ x: number, y: number, far: boolean, first: number,
 *   range: { from: number, to: number } | null }} Drag
 */

export class Pointer {
  /** @param {import('./main.js').Page} page */
  constructor(page) {
    this.page = page;
    this.x = 0;
    this.y = 0;
    /** @type {Drag | null} */
    this.drag = null;
  }

  listen() {
    const { stage } = this.page;
    stage.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    stage.addEventListener('pointerdown', (event) => this.down(event));
    stage.addEventListener('pointermove', (event) => this.moved(event));
    stage.addEventListener('pointerup', (event) => this.up(event));
    stage.addEventListener('pointerleave', () => { byId('tip').hidden = true; });
  }

  /**
   * The row and the function at a place of the stage.
   * @param {number} x
   * @param {number} y
   */
  at(x, y) {
    const below = y - RULER;
    const row = this.page.rows.visible(this.page.view.scroll, this.page.height).find((row) => below >= row.y && below < row.y + ROW);
    const drawn = row && this.page.picture?.byRow.get(`${row.thread}.${row.depth}`);
    if (!row || !drawn || !this.page.picture) return null;
    const when = this.page.view.timeAt(x);
    const slack = NEAR * this.page.view.pixel;
    let best = -1;
    for (let n = 0; n < drawn.starts.length; n++) {
      const end = drawn.starts[n] + drawn.durations[n];
      if (drawn.starts[n] <= when + slack && end >= when - slack && (best < 0 || drawn.starts[n] <= when)) best = n;
    }
    if (best >= 0) {
      const { starts, durations, functions, ends } = drawn;
      return { row, when, span: { start: starts[best], duration: durations[best], function: functions[best], ended: ends[best] } };
    }
    const place = (when - this.page.picture.first) / this.page.picture.cell;
    const most = NEAR * Math.max(1, this.page.view.pixel / this.page.picture.cell);
    let near = -1;
    let least = most;
    for (let n = 0; n < drawn.cells.length; n++) {
      const distance = Math.abs((drawn.cells[n] & 0xffff) + 0.5 - place);
      if (distance < least) [near, least] = [n, distance];
    }
    if (near < 0) return null;
    return { row, when, cell: { function: drawn.cellFunctions[near], count: drawn.counts[near], share: (drawn.cells[near] >>> 16 & 255) / 255 } };
  }

  /** What is missing where the mouse is. @returns {string[]} */
  missing() {
    const { picture, view } = this.page;
    const estimated = picture ? placed(view, picture, picture.unread) : [];
    const around = picture ? missing(view, picture, this.page.keptFrom()) : [];
    around.push(...estimated.map((place) => ({ ...place, what: 'not read yet: estimated from calls near by' })));
    return around.filter(({ left, right }) => left <= this.x && this.x <= right).slice(0, 1).map(({ what }) => what);
  }

  /** The range that is chosen, or being chosen. */
  get shown() {
    return this.drag?.range ?? this.page.range;
  }

  /** Draws that range. */
  draw() {
    const { shown } = this;
    const box = byId('range');
    box.hidden = !shown;
    if (!shown) return;
    const { view } = this.page;
    const left = view.xAt(shown.from);
    box.style.left = `${left}px`;
    box.style.width = `${Math.max(1, view.xAt(shown.to) - left)}px`;
  }

  hover() {
    const tip = byId('tip');
    const point = this.drag ? null : this.page.points?.tip(this.x, this.y - RULER);
    const found = this.drag || point ? null : this.at(this.x, this.y);
    const own = [...(found ? [this.words(found)] : []), ...(this.drag ? [] : this.missing())];
    const lines = [...(point ?? []), ...own.map((line) => [line])];
    tip.hidden = !lines.length;
    if (!lines.length) return;
    tip.replaceChildren(...lines.flatMap((line, n) => n ? ['\n', ...line] : line));
    const { x, y } = this;
    tip.style.left = `${Math.min(x + 14, this.page.view.width - tip.offsetWidth - 4)}px`;
    tip.style.top = `${Math.min(y + 14, this.page.stage.clientHeight - tip.offsetHeight - 4)}px`;
  }

  /**
   * What is said of the call or the cell under the mouse.
   * @param {NonNullable<ReturnType<Pointer['at']>>} found
   */
  words(found) {
    const name = (/** @type {number} */ id) => this.page.about.functions[id]?.name ?? '?';
    if (found.span) {
      const { start, duration: length, function: id, ended } = found.span;
      const open = this.page.picture?.isDraft ? ' or longer: its end was not read yet' : ' so far: still running';
      const end = ['', ' or longer: ended unseen', open][ended];
      const object = this.page.colours.isByObject ? ` of ${this.page.about.functions[id]?.object || 'unknown'}` : '';
      return `${name(id)}${object}\n${duration(length)}${end}\nat ${time(start, this.page.view.pixel)}`;
    }
    const { function: id, count: begun, share } = found.cell;
    const about = this.page.picture?.isDraft ? 'about ' : '';
    return `${name(id)} is the longest here\n${about}${count(begun)} ${begun === 1 ? 'call begins' : 'calls begin'} in ${duration(this.page.picture?.cell ?? 0)}, `
      + `${about}${Math.round(share * 100)} % covered`;
  }

  /** @param {MouseEvent} event */
  place(event) {
    const box = this.page.stage.getBoundingClientRect();
    [this.x, this.y] = [event.clientX - box.left, event.clientY - box.top];
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    event.preventDefault();
    this.place(event);
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey) this.page.view.scroll += (event.deltaY || event.deltaX) * lines;
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.page.view.move(event.deltaX * lines);
    else this.page.view.zoom(this.x, Math.exp(Math.max(-400, Math.min(400, event.deltaY * lines)) / 300));
    this.page.change();
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (event.button !== 0) return;
    this.place(event);
    this.page.stage.setPointerCapture(event.pointerId);
    this.page.stage.focus();
    const { x, y } = this;
    const when = this.page.view.timeAt(x);
    this.drag = { x, y, far: false, first: when, range: event.shiftKey ? { from: when, to: when } : null };
  }

  /** @param {PointerEvent} event */
  moved(event) {
    const before = { x: this.x, y: this.y };
    this.place(event);
    if (!this.drag) return this.hover();
    byId('tip').hidden = true;
    this.drag.far ||= Math.hypot(this.x - this.drag.x, this.y - this.drag.y) > 4;
    if (!this.drag.far) return;
    if (this.drag.range) {
      const when = this.page.view.timeAt(this.x);
      this.drag.range = { from: Math.min(when, this.drag.first), to: Math.max(when, this.drag.first) };
    } else {
      this.page.view.move(before.x - this.x);
      this.page.view.scroll += before.y - this.y;
    }
    this.page.change();
  }

  /** @param {PointerEvent} event */
  up(event) {
    const { drag } = this;
    this.drag = null;
    if (!drag) return;
    this.place(event);
    if (drag.far) {
      if (drag.range) this.page.chooseRange(drag.range.from, drag.range.to);
      return;
    }
    const said = this.page.points?.clicked(this.x, this.y - RULER);
    if (said) {
      this.page.chooseMessages(said.thread, said.from, said.to);
      return;
    }
    const found = this.at(this.x, this.y);
    if (found) this.page.choose(found.row.thread, found.row.depth, found.when, NEAR * this.page.view.pixel);
  }
}
