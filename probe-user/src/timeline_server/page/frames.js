// The frames of the whole recording, a bar for each pixel that has any: the longest that begins there, and in
// it the median. A click goes to that frame.

import * as data from './data.js';
import { byId, count, css, duration, time } from './format.js';
import { showFrames } from './panel.js';

/** The height of the bars, in pixels. */
const TALL = 84;
/** Room above the longest. */
const ABOVE = 1.08;

export class Frames {
  /** @param {import('./main.js').Page} page */
  constructor(page) {
    this.page = page;
    this.strip = byId('frames');
    this.canvas = /** @type {HTMLCanvasElement} */ (byId('frame-bars'));
    this.budget = /** @type {HTMLInputElement} */ (byId('frame-budget'));
    this.told = byId('frame-told');
    /** The function whose calls are frames, or the mark between them. @type {number | null} */
    this.function = null;
    /** @type {(data.Frames & { columns_asked: number, length: number, budget: number | null }) | null} */
    this.found = null;
    this.asking = new AbortController();
    const marks = byId('frame-marks');
    marks.addEventListener('click', () => this.show(page.about.frame_marks[0]));
    byId('frames-close').addEventListener('click', () => this.close());
    this.budget.addEventListener('change', () => this.ask());
    this.canvas.addEventListener('pointermove', (event) => this.#moved(event));
    this.canvas.addEventListener('click', (event) => this.#clicked(event));
    this.know();
  }

  /** Frame marks have a button, once there are any. */
  know() {
    byId('frame-marks').hidden = !this.page.about.frame_marks.length;
  }

  /** Shows the calls of a function, or the times between marks. @param {number} id */
  show(id) {
    this.function = id;
    this.found = null;
    this.strip.hidden = false;
    this.page.resized();
    return this.ask();
  }

  close() {
    this.asking.abort();
    this.function = null;
    this.found = null;
    this.strip.hidden = true;
    this.page.resized();
  }

  async ask() {
    if (this.function === null) return;
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    // What was chosen later keeps the panel.
    const choice = this.page.nextChoice();
    const columns = Math.min(8192, Math.max(1, this.canvas.clientWidth));
    const milliseconds = Number.parseFloat(this.budget.value);
    const budget = milliseconds > 0 ? Math.round(milliseconds * 1e6) : null;
    const { length_ns: length } = this.page.about;
    this.told.textContent = 'counting …';
    try {
      const found = await data.frames(this.function, columns, budget, signal);
      this.found = { ...found, columns_asked: columns, length, budget };
      this.told.textContent = '';
      if (!choice.aborted) showFrames(this.page.panel, this.page.around, this.function, found, (frame) => this.goTo(frame));
      this.page.resized();
    } catch (error) {
      if (data.isAborted(error)) return;
      this.told.textContent = data.why(error);
      this.page.say(error);
    }
  }

  /** Shows a frame on the timeline. @param {data.Frame} frame */
  goTo({ start_ns: from, duration_ns: length }) {
    this.page.range = { from, to: from + length };
    this.page.call = null;
    this.page.view.showAround(from, from + length);
    this.page.change();
  }

  /** The column nearest to the mouse. @param {MouseEvent} event */
  #at(event) {
    const { found } = this;
    if (!found) return null;
    const box = this.canvas.getBoundingClientRect();
    const place = (event.clientX - box.left) / box.width * found.columns_asked - 0.5;
    let [best, least] = [/** @type {data.FrameColumn | null} */ (null), Infinity];
    for (const column of found.columns) {
      const distance = Math.abs(column.place - place);
      if (distance < least) [best, least] = [column, distance];
    }
    return best;
  }

  /** @param {MouseEvent} event */
  #moved(event) {
    const column = this.#at(event);
    if (!column) return;
    const { worst, median_ns: median, count: frames } = column;
    const all = frames > 1 ? ` · ${count(frames)} frames, median ${duration(median)}` : '';
    this.told.textContent = `longest ${duration(worst.duration_ns)} at ${time(worst.start_ns, this.page.about.length_ns / 1e5)}${all}`;
  }

  /** @param {MouseEvent} event */
  #clicked(event) {
    const column = this.#at(event);
    if (column) this.goTo(column.worst);
  }

  /** @param {import('./draw.js').Theme} theme */
  draw(theme) {
    const { canvas, found } = this;
    if (this.strip.hidden) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    canvas.height = Math.round(TALL * ratio);
    const context = canvas.getContext('2d');
    if (!context) return;
    context.fillStyle = css(theme.ground);
    context.fillRect(0, 0, canvas.width, canvas.height);
    if (!found) return;
    const { view, about } = this.page;
    const x = (/** @type {number} */ at) => at / Math.max(1, found.length) * canvas.width;
    context.fillStyle = theme.line;
    context.fillRect(x(view.from), 0, Math.max(ratio, x(view.to) - x(view.from)), canvas.height);
    const most = ABOVE * Math.max(1, found.budget ?? 0, found.worst[0]?.duration_ns ?? 0);
    const tall = (/** @type {number} */ ns) => Math.max(1, ns / most * canvas.height);
    const bar = canvas.width / found.columns_asked;
    const colour = css(about.colours[this.function ?? -1] ?? [128, 128, 128]);
    for (const { place, median_ns: median, worst } of found.columns) {
      const isOver = found.budget !== null && worst.duration_ns > found.budget;
      const [left, wide] = [place * bar, Math.max(1, bar)];
      context.globalAlpha = 0.5;
      context.fillStyle = isOver ? '#e03131' : colour;
      context.fillRect(left, canvas.height - tall(worst.duration_ns), wide, tall(worst.duration_ns));
      context.globalAlpha = 1;
      context.fillRect(left, canvas.height - tall(median), wide, tall(median));
    }
    if (found.budget !== null) {
      context.fillStyle = '#e03131';
      context.fillRect(0, canvas.height - tall(found.budget), canvas.width, Math.max(1, ratio));
    }
  }
}
