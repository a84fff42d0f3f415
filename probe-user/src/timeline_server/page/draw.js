// Draws a picture. Spans wide enough to see are rectangles; all that is narrower is a line of pixels
// for each row, which is stretched to the height of the row.

import { TIMED } from './data.js';
import { css, ink, time } from './format.js';
import { ROW } from './rows.js';

/** Spans narrower than this are part of the line of pixels. */
const NARROW = 3;
const TEXT = 24;
/** The colour of the line over what was not read yet. */
const ESTIMATED = '#8a8f98';
const FONT = '11px system-ui, sans-serif';

/**
 * @typedef {{ ground: number[], text: string, dim: string, line: string }} Theme
 */

/** The colours of the style sheet. @returns {Theme} */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const hex = of('--ground').replace('#', '');
  const wide = hex.length === 3 ? [...hex].map((digit) => digit + digit).join('') : hex;
  const ground = [0, 2, 4].map((at) => Number.parseInt(wide.slice(at, at + 2), 16));
  return { ground, text: of('--text'), dim: of('--dim'), line: of('--line') };
}

/**
 * Where stretches of cells are, in pixels.
 * @param {import('./view.js').View} view
 * @param {import('./data.js').Picture} picture
 * @param {Uint32Array} cells the first of each, and the one behind the last
 */
export function placed(view, picture, cells) {
  const at = (/** @type {number} */ cell) => view.xAt(picture.first + cell * picture.cell);
  return Array.from({ length: cells.length / 2 }, (_, n) => {
    const left = at(cells[2 * n]);
    return { left, right: Math.max(at(cells[2 * n + 1]), left + 2) };
  });
}

/**
 * Where something is missing, in pixels, and what.
 * @param {import('./view.js').View} view
 * @param {import('./data.js').Picture} picture
 * @param {number} keptFrom the time from which calls are kept
 */
export function missing(view, picture, keptFrom) {
  const stretches = placed(view, picture, picture.lost).map((place) => ({ ...place, what: 'events were lost here' }));
  if (keptFrom > 0) stretches.push({ left: view.xAt(0), right: view.xAt(keptFrom), what: 'calls from here are not kept any more' });
  return stretches;
}

/**
 * A name as it is, without parameters, and without what is around it.
 * @param {string} name
 * @param {string} short
 */
function forms(name, short) {
  const last = short.slice(short.lastIndexOf('::') + 1).replace(/^:/, '');
  return [...new Set([name, short, last || short].map((form) => form.slice(0, 400)))];
}

export class Painter {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {import('./data.js').About} about
   * @param {number[][]} colours
   */
  constructor(canvas, about, colours) {
    this.canvas = canvas;
    const context = canvas.getContext('2d', { alpha: false });
    if (!context) throw new Error('this browser cannot draw');
    this.context = context;
    /** @type {number[][]} */
    this.colours = [];
    /** @type {string[][]} */
    this.names = [];
    /** The widths of names in pixels. @type {Map<string, number>} */
    this.widths = new Map();
    /** @type {string[]} */
    this.css = [];
    /** @type {string[]} */
    this.inks = [];
    /** The colours of pixels by function, as far as they were needed, and the theme that they are of. @type {Uint32Array[]} */
    this.shades = [];
    /** @type {Theme | null} */
    this.shadesOf = null;
    this.know(about, colours);
    this.lines = document.createElement('canvas');
    /** Functions that are not dimmed; null if none is. @type {Set<number> | null} */
    this.chosen = null;
    /** A picture of lit calls, over all others, which are dimmed. @type {import('./data.js').Picture | null} */
    this.lit = null;
    this.theme = theme();
  }

  /**
   * Learns the functions, and their colours: an array of others if there are more, or other colours.
   * @param {import('./data.js').About} about
   * @param {number[][]} colours
   */
  know({ functions, short }, colours) {
    if (colours === this.colours) return;
    this.colours = colours;
    this.shades = [];
    this.names = functions.map(({ name }, id) => forms(name, short[id] ?? name));
    this.css = colours.map((colour) => css(colour));
    this.inks = colours.map(ink);
  }

  /**
   * @param {import('./view.js').View} view
   * @param {import('./rows.js').Row[]} rows
   * @param {import('./data.js').Picture | null} picture
   * @param {number} keptFrom the time from which calls are kept
   */
  draw(view, rows, picture, keptFrom) {
    const { context, canvas } = this;
    const ratio = canvas.width / view.width;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = css(this.theme.ground);
    context.fillRect(0, 0, canvas.width, canvas.height);
    if (!picture) return;
    this.#calls(view, rows, picture);
    if (this.lit) {
      this.chosen = null;
      this.#calls(view, rows, this.lit);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const { left, right } of missing(view, picture, keptFrom)) this.#hatch(left, right, view.width);
    context.fillStyle = ESTIMATED;
    for (const { left, right } of placed(view, picture, picture.unread)) context.fillRect(left, 0, right - left, 3);
  }

  /**
   * @param {import('./view.js').View} view
   * @param {import('./rows.js').Row[]} rows
   * @param {import('./data.js').Picture} picture
   */
  #calls(view, rows, picture) {
    const { context, canvas } = this;
    const ratio = canvas.width / view.width;
    const found = rows.flatMap((row) => {
      const drawn = picture.byRow.get(`${row.thread}.${row.depth}`);
      return drawn ? [{ drawn, y: row.y }] : [];
    });
    context.setTransform(1, 0, 0, 1, 0, 0);
    this.#lines(view, canvas.width / (view.to - view.from), picture, found, ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    found.forEach(({ drawn, y }) => this.#spans(view, drawn, y));
  }

  /**
   * @param {import('./view.js').View} view
   * @param {number} scale device pixels a nanosecond
   * @param {import('./data.js').Picture} picture
   * @param {{ drawn: import('./data.js').PictureRow, y: number }[]} found
   * @param {number} ratio
   */
  #lines(view, scale, picture, found, ratio) {
    const width = this.canvas.width;
    if (!found.length || !width) return;
    if (this.shadesOf !== this.theme) [this.shades, this.shadesOf] = [[], this.theme];
    const image = new ImageData(width, found.length);
    const pixels = new Uint32Array(image.data.buffer);
    const shares = new Uint8Array(width);
    found.forEach(({ drawn }, place) => {
      shares.fill(0);
      const line = pixels.subarray(place * width, (place + 1) * width);
      const put = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ share,
        /** @type {number} */ colour) => {
        const last = Math.min(width, Math.max(Math.floor(from) + 1, Math.round(to)));
        for (let x = Math.max(0, Math.floor(from)); x < last; x++) {
          if (share >= shares[x]) {
            shares[x] = share;
            line[x] = colour;
          }
        }
      };
      const base = (picture.first - view.from) * scale;
      const step = picture.cell * scale;
      for (let n = 0; n < drawn.cells.length; n++) {
        const cell = drawn.cells[n];
        const share = Math.max(1, cell >>> 16 & 255);
        const x = base + (cell & 0xffff) * step;
        put(x, x + step, share, this.#shade(drawn.cellFunctions[n], share, cell >>> 24 & TIMED));
      }
      for (let n = 0; n < drawn.starts.length; n++) {
        const wide = drawn.durations[n] * scale;
        if (wide >= NARROW * ratio) continue;
        const x = (drawn.starts[n] - view.from) * scale;
        put(x, x + wide, 255, this.#shade(drawn.functions[n], 255, drawn.ends[n] === 0 ? 1 : 0));
      }
    });
    this.lines.width = width;
    this.lines.height = found.length;
    this.lines.getContext('2d')?.putImageData(image, 0, 0);
    this.context.imageSmoothingEnabled = false;
    found.forEach(({ y }, place) => {
      this.context.drawImage(this.lines, 0, place, width, 1, 0, Math.round(y * ratio), width, Math.round((ROW - 2) * ratio));
    });
  }

  /**
   * The colour of a pixel, as ImageData has it.
   * @param {number} id
   * @param {number} share of 255
   * @param {number} timed
   */
  #shade(id, share, timed) {
    const isDim = this.chosen !== null && !this.chosen.has(id);
    const known = this.shades[id] ??= new Uint32Array(1024);
    return known[share << 2 | (timed ? 2 : 0) | (isDim ? 1 : 0)] ||= this.#mixed(id, share, timed, isDim);
  }

  /**
   * @param {number} id
   * @param {number} share of 255
   * @param {number} timed
   * @param {boolean} isDim
   */
  #mixed(id, share, timed, isDim) {
    const [r, g, b] = this.colours[id] ?? [128, 128, 128];
    const [R, G, B] = this.theme.ground;
    let part = 0.3 + 0.7 * share / 255;
    if (!timed) part *= 0.45;
    if (isDim) part *= 0.2;
    const mix = (/** @type {number} */ colour, /** @type {number} */ ground) =>
      Math.round(ground + (colour - ground) * part);
    return (255 << 24 | mix(b, B) << 16 | mix(g, G) << 8 | mix(r, R)) >>> 0;
  }

  /**
   * @param {import('./view.js').View} view
   * @param {import('./data.js').PictureRow} row
   * @param {number} y
   */
  #spans(view, row, y) {
    const { context } = this;
    context.font = FONT;
    context.textBaseline = 'middle';
    const height = ROW - 2;
    for (let n = 0; n < row.starts.length; n++) {
      const left = view.xAt(row.starts[n]);
      const right = view.xAt(row.starts[n] + row.durations[n]);
      if (right - left < NARROW || right < 0 || left > view.width) continue;
      const x = Math.max(left, -2);
      const wide = Math.min(right, view.width + 2) - x;
      const id = row.functions[n];
      context.globalAlpha = (row.ends[n] === 0 ? 1 : 0.45) * (this.chosen && !this.chosen.has(id) ? 0.2 : 1);
      context.fillStyle = this.css[id] ?? '#808080';
      context.fillRect(x, y, Math.max(wide - 0.5, 1), height);
      const from = Math.max(left, 0) + 4;
      const room = Math.min(right, view.width) - from - 2;
      if (room > TEXT) {
        // On a faded call the ground shows through.
        context.fillStyle = context.globalAlpha < 1 ? this.theme.dim : this.inks[id] ?? '#000';
        context.globalAlpha = 1;
        context.fillText(this.#fitting(this.names[id] ?? ['?'], room), from, y + height / 2 + 1);
      }
    }
    context.globalAlpha = 1;
  }

  /**
   * The longest form of a name that fits, or the beginning of the shortest.
   * @param {string[]} names
   * @param {number} room
   */
  #fitting(names, room) {
    const found = names.find((name) => this.#width(name) <= room);
    if (found) return found;
    const shortest = names[names.length - 1] ?? '';
    let text = shortest.slice(0, Math.floor(room / 5));
    while (text && this.context.measureText(`${text}…`).width > room) text = text.slice(0, -1);
    return text && `${text}…`;
  }

  /** @param {string} name */
  #width(name) {
    let width = this.widths.get(name);
    if (width === undefined) {
      width = this.context.measureText(name).width;
      this.widths.set(name, width);
    }
    return width;
  }

  /**
   * Marks where something is missing.
   * @param {number} from
   * @param {number} to
   * @param {number} width of the picture
   */
  #hatch(from, to, width) {
    const [left, right] = [Math.max(from, 0), Math.min(to, width)];
    if (right <= left) return;
    const { context } = this;
    const height = this.canvas.height;
    context.save();
    context.strokeStyle = '#d9480f';
    context.fillStyle = '#d9480f22';
    context.lineWidth = 1;
    context.beginPath();
    context.rect(left, 0, right - left, height);
    context.fill();
    context.clip();
    context.beginPath();
    for (let x = left - height - (left % 8); x < right; x += 8) {
      context.moveTo(x, height);
      context.lineTo(x + height, 0);
    }
    context.globalAlpha = 0.35;
    context.stroke();
    context.restore();
  }
}

/**
 * Draws the times above, and the strip of what was found.
 * @param {HTMLCanvasElement} canvas
 * @param {import('./view.js').View} view
 * @param {{ from: number, to: number, columns: number[] } | null} strip
 * @param {Theme} theme
 */
export function ruler(canvas, view, strip, theme) {
  const context = canvas.getContext('2d', { alpha: false });
  if (!context) return;
  const ratio = canvas.width / view.width;
  const height = canvas.height / ratio;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = css(theme.ground);
  context.fillRect(0, 0, view.width, height);
  if (strip) {
    const most = Math.max(1, ...strip.columns);
    const wide = (strip.to - strip.from) / strip.columns.length;
    context.fillStyle = '#d9600b';
    strip.columns.forEach((count, place) => {
      if (!count) return;
      const left = view.xAt(strip.from + place * wide);
      const right = view.xAt(strip.from + (place + 1) * wide);
      const tall = Math.max(2, 12 * Math.log1p(count) / Math.log1p(most));
      context.fillRect(left, height - tall, Math.max(1, right - left), tall);
    });
  }
  const target = 110 * view.pixel;
  const power = 10 ** Math.floor(Math.log10(target));
  const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((step) => step >= target) ?? target);
  context.font = FONT;
  context.textBaseline = 'top';
  context.strokeStyle = theme.line;
  context.fillStyle = theme.dim;
  context.beginPath();
  for (let at = Math.ceil(view.from / step) * step; at < view.to; at += step) {
    const x = Math.round(view.xAt(at)) + 0.5;
    context.moveTo(x, 0);
    context.lineTo(x, height);
    const label = time(at, step);
    if (x + 3 + context.measureText(label).width < view.width) context.fillText(label, x + 3, 3);
  }
  context.stroke();
}
