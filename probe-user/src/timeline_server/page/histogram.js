// How long calls took, as bars. Dragging over bars lights the calls that are in them.

import { count, css, duration } from './format.js';
import { theme } from './draw.js';

/** The height of the bars, in pixels. */
const TALL = 120;

export class Histogram {
  /**
   * @param {import('./data.js').Durations} durations
   * @param {number[]} colour
   * @param {(least: number, most: number | null) => void} light
   */
  constructor({ bars }, colour, light) {
    this.bars = bars;
    this.colour = css(colour);
    this.light = light;
    this.canvas = document.createElement('canvas');
    this.canvas.className = 'histogram';
    /** The first and the last chosen bar. @type {[number, number] | null} */
    this.chosen = null;
    this.first = -1;
    this.canvas.addEventListener('pointerdown', (event) => this.#down(event));
    this.canvas.addEventListener('pointermove', (event) => this.#moved(event));
    this.canvas.addEventListener('pointerup', () => this.#up());
  }

  /** The number of the bar at the mouse. @param {PointerEvent} event */
  #at(event) {
    const box = this.canvas.getBoundingClientRect();
    const place = Math.floor((event.clientX - box.left) / box.width * this.bars.length);
    return Math.min(this.bars.length - 1, Math.max(0, place));
  }

  /** @param {PointerEvent} event */
  #down(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.first = this.#at(event);
    this.#choose(this.first);
  }

  /** @param {PointerEvent} event */
  #moved(event) {
    const place = this.#at(event);
    const { from_ns: from, to_ns: to, count: calls } = this.bars[place];
    this.canvas.title = `${duration(from)} to ${duration(to)}: ${count(calls)}`;
    if (this.first >= 0) this.#choose(place);
  }

  #up() {
    if (this.first < 0 || !this.chosen) return;
    this.first = -1;
    const [first, last] = this.chosen;
    const most = this.bars[last].to_ns;
    // Longer ones than numbers of a page can tell are all in the last bar.
    this.light(this.bars[first].from_ns, Number.isSafeInteger(most) ? most : null);
  }

  /** @param {number} place */
  #choose(place) {
    this.chosen = [Math.min(this.first, place), Math.max(this.first, place)];
    this.draw();
  }

  /** Draws the bars. Their heights are logarithmic, so that a single call is seen beside a million. */
  draw() {
    const { canvas, bars } = this;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    canvas.height = Math.round(TALL * ratio);
    const context = canvas.getContext('2d');
    if (!context) return;
    context.fillStyle = css(theme().ground);
    context.fillRect(0, 0, canvas.width, canvas.height);
    const wide = canvas.width / bars.length;
    const most = Math.log1p(bars.reduce((most, bar) => Math.max(most, bar.count), 1));
    bars.forEach(({ count: calls }, place) => {
      const isIn = !this.chosen || this.chosen[0] <= place && place <= this.chosen[1];
      context.globalAlpha = isIn ? 1 : 0.25;
      context.fillStyle = this.colour;
      const tall = calls && Math.max(2 * ratio, Math.log1p(calls) / most * (canvas.height - 4));
      context.fillRect(place * wide, canvas.height - tall, Math.max(1, wide - 1), tall);
    });
  }
}
