// Messages, plots and frame marks: what the server counts in each pixel, and how it is drawn.

import * as data from './data.js';
import { count, css, time } from './format.js';
import { markColour, said } from './levels.js';
import { losses } from './lost.js';
import { NAME } from './rows.js';

/** The height of a plot, with the gap below it. */
export const PLOT = 46;
const GAP = 8;
/** Plots that have room above the threads. */
const MOST_PLOTS = 64;
/** Milliseconds between two questions, and from moving the mouse to asking for texts. */
const PAUSE = 150;
/** Milliseconds after which an answer about another place is not waited for. */
const PATIENCE = 1000;
/** Milliseconds after a question without an answer. */
const LONG_PAUSE = 1000;
/** Pixels around the mouse in which a message or a mark is found. */
const NEAR = 4;
/** Texts in a tip, and letters of each. */
const TOLD = 5;
const LETTERS = 300;

export class Points {
  /** @param {import('./main.js').Page} page */
  constructor(page) {
    this.page = page;
    /** @type {(data.Points & { from: number, to: number, columns: number }) | null} */
    this.found = null;
    /** The plots that are shown, from above: the first ones that were seen. @type {number[]} */
    this.plots = [];
    /** The columns of each plot that was found. @type {Map<number, data.Plot>} */
    this.byPlot = new Map();
    this.asked = '';
    /** The time from which the next question may be asked. */
    this.notBefore = 0;
    this.askedAt = 0;
    this.isAsking = false;
    this.asking = new AbortController();
    /** @type {number | undefined} */
    this.later = undefined;
    /** The texts at the mouse. @type {{ key: string, messages: data.Messages | null }} */
    this.texts = { key: '', messages: null };
    this.reading = new AbortController();
    /** @type {number | undefined} */
    this.waiting = undefined;
  }

  /** Asks for what is on the screen, one question at a time. */
  ask() {
    const { view, rows, height, canvas } = this.page;
    const threads = rows.visibleTracks(view.scroll, height).slice(0, 512).map((track) => track.thread.id);
    const [from, to] = [Math.floor(view.from), Math.ceil(view.to)];
    const columns = Math.min(8192, Math.max(1, canvas.width));
    const key = [from, to, columns, this.page.about.length_ns, ...threads].join(' ');
    if (key === this.asked) return;
    if (this.isAsking) {
      if (performance.now() - this.askedAt > PATIENCE) this.asking.abort();
      return;
    }
    clearTimeout(this.later);
    const left = this.notBefore - performance.now();
    if (left > 0) {
      this.later = setTimeout(() => this.ask(), left);
      return;
    }
    [this.asked, this.isAsking, this.askedAt] = [key, true, performance.now()];
    this.asking = new AbortController();
    let pause = PAUSE;
    data.points(from, to, columns, threads, this.asking.signal).then((found) => {
      this.found = { ...found, from, to, columns };
      this.#know(found.plots);
      this.page.status();
    }, (error) => {
      // The same question may be asked again, unless the server refuses it.
      if (!(error instanceof data.Refused)) this.asked = '';
      if (!data.isAborted(error)) pause = LONG_PAUSE;
      this.page.say(error);
    }).finally(() => {
      this.isAsking = false;
      this.notBefore = performance.now() + pause;
      this.page.change();
    });
  }

  /** Makes room for plots that were not seen before. @param {data.Plot[]} plots */
  #know(plots) {
    this.byPlot = new Map(plots.map((plot) => [plot.function, plot]));
    const shown = new Set(this.plots);
    const added = plots.map((plot) => plot.function).filter((id) => !shown.has(id)).slice(0, MOST_PLOTS - shown.size);
    this.plots.push(...added);
    if (added.length) this.page.rows.leaveRoom(this.plots.length * PLOT);
  }

  /** Sentences on things that are not on the screen. @returns {string[]} */
  missing() {
    if (!this.found) return [];
    const { left_out: beyond, lost, plots } = this.found;
    const hidden = plots.length - this.plots.filter((id) => this.byPlot.has(id)).length;
    return [
      ...(beyond ? [`${count(beyond)} messages, values or marks are not drawn`] : []),
      ...(hidden ? [`${count(hidden)} more plots are not shown`] : []),
      ...losses(lost),
    ];
  }

  /** The place of a column on the screen. @param {number} column */
  #x(column) {
    const { from, to, columns } = /** @type {NonNullable<Points['found']>} */ (this.found);
    return this.page.view.xAt(from + (column + 0.5) * (to - from) / columns);
  }

  /**
   * Draws over the calls.
   * @param {CanvasRenderingContext2D} context
   * @param {import('./draw.js').Theme} theme
   */
  draw(context, theme) {
    if (!this.found) return;
    const { view, rows, height, about, canvas } = this.page;
    const ratio = canvas.width / view.width;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const { function: id, columns } of this.found.marks) {
      context.globalAlpha = columns.length > view.width / 4 ? 0.12 : 0.55;
      context.fillStyle = css(about.colours[id] ?? [128, 128, 128]);
      for (const [column] of columns) context.fillRect(Math.floor(this.#x(column)), 0, 1, height);
    }
    context.globalAlpha = 1;
    const tracks = new Map(rows.visibleTracks(view.scroll, height).map((track) => [track.thread.id, track]));
    for (const { thread, columns } of this.found.messages) {
      const track = tracks.get(thread);
      if (!track) continue;
      const y = track.top - view.scroll + NAME - 8;
      for (const [column, , level] of columns) {
        context.fillStyle = markColour(level);
        context.fillRect(this.#x(column) - 1, y, 3, 7);
      }
    }
    const first = Math.max(0, Math.floor(view.scroll / PLOT));
    this.plots.slice(first, Math.ceil((view.scroll + height) / PLOT))
      .forEach((id, n) => this.#plot(context, theme, id, (first + n) * PLOT - view.scroll));
  }

  /**
   * A bar from the least to the greatest number of each pixel, and a line from its latest to the next pixel.
   * @param {CanvasRenderingContext2D} context
   * @param {import('./draw.js').Theme} theme
   * @param {number} id
   * @param {number} top
   */
  #plot(context, theme, id, top) {
    const { width } = this.page.view;
    const tall = PLOT - GAP;
    const columns = this.byPlot.get(id)?.columns ?? [];
    const least = Math.min(...columns.map((column) => column[2]));
    const most = Math.max(...columns.map((column) => column[3]));
    const y = (/** @type {number} */ value) =>
      top + tall - (most > least ? (value / 2 - least / 2) / (most / 2 - least / 2) : 0.5) * (tall - 2) - 1;
    context.fillStyle = css(this.page.about.colours[id] ?? [128, 128, 128]);
    columns.forEach(([column, , min, max, last], n) => {
      const x = this.#x(column);
      context.fillRect(x, y(max), 1, Math.max(1, y(min) - y(max)));
      const next = columns[n + 1];
      if (next) context.fillRect(x, y(last), this.#x(next[0]) - x, 1);
    });
    context.fillStyle = theme.line;
    context.fillRect(0, top + tall, width, 1);
    context.fillStyle = theme.dim;
    context.textBaseline = 'top';
    const range = columns.length ? ` ${number(least)} … ${number(most)}${this.#unit(id)}` : '';
    context.fillText(`${this.#name(id)}${range}`.slice(0, LETTERS), 6, top + 2);
  }

  /** @param {number} id */
  #name(id) {
    return this.page.about.functions[id]?.name ?? '?';
  }

  /** @param {number} id */
  #unit(id) {
    const unit = this.byPlot.get(id)?.unit;
    return unit ? ` ${unit}` : '';
  }

  /**
   * The column nearest to a place of the screen, if it is near.
   * @template {[number, ...unknown[]]} T
   * @param {T[]} columns
   * @param {number} x
   */
  #near(columns, x) {
    let [best, least] = [/** @type {T | null} */ (null), NEAR];
    for (const column of columns) {
      const distance = Math.abs(this.#x(column[0]) - x);
      if (distance < least) [best, least] = [column, distance];
    }
    return best;
  }

  /** The thread whose name is at this height. @param {number} y below the ruler */
  #track(y) {
    const { view, rows, height } = this.page;
    return rows.visibleTracks(view.scroll, height).find(({ top }) => y >= top - view.scroll && y < top - view.scroll + NAME);
  }

  /**
   * The lines of a tip about a place of the screen; null if there is nothing. Texts come later.
   * @param {number} x
   * @param {number} y below the ruler
   * @returns {(string | HTMLElement)[][] | null}
   */
  tip(x, y) {
    if (!this.found) return null;
    const plot = this.plots[Math.floor((y + this.page.view.scroll) / PLOT)];
    if (plot !== undefined) {
      const column = this.#near(this.byPlot.get(plot)?.columns ?? [], x);
      if (!column) return [[this.#name(plot)]];
      const [, n, min, max] = column;
      const range = min === max ? number(min) : `${number(min)} to ${number(max)}`;
      return [[this.#name(plot)], [`${range}${this.#unit(plot)}`], [`${count(n)} ${n === 1 ? 'value' : 'values'}`]];
    }
    const place = this.#messages(x, y);
    if (place) {
      this.#read(place);
      return [[`${count(place.count)} ${place.count === 1 ? 'message' : 'messages'}`], ...this.#told(place.key)];
    }
    const mark = this.#track(y) && this.found.marks.find(({ columns }) => this.#near(columns, x));
    return mark ? [[`frame ${this.#name(mark.function)}`]] : null;
  }

  /** The messages at a place of the screen. @param {number} x @param {number} y */
  #messages(x, y) {
    const track = this.#track(y);
    const of = track && this.found?.messages.find(({ thread }) => thread === track.thread.id);
    const column = of && this.#near(of.columns, x);
    if (!of || !column || !this.found) return null;
    const { from, to, columns } = this.found;
    const edge = (/** @type {number} */ place) => Math.ceil(from + place * (to - from) / columns);
    const stretch = { thread: of.thread, from: edge(column[0]), to: Math.max(edge(column[0] + 1), edge(column[0]) + 1) };
    return { ...stretch, count: column[1], key: `${of.thread} ${stretch.from} ${stretch.to}` };
  }

  /** @param {string} key @returns {(string | HTMLElement)[][]} */
  #told(key) {
    const { messages } = this.texts;
    if (this.texts.key !== key || !messages) return [['…']];
    const lines = messages.first.slice(0, TOLD).map((message) => [`${time(message.time_ns)} `, ...said(message, LETTERS)]);
    const more = messages.count - lines.length;
    // Of a long stretch only the first part is read.
    const rest = messages.is_partial ? [`and ${more ? `${count(more)} or more` : 'perhaps more'}`] : more ? [`and ${count(more)} more`] : [];
    return [...lines, ...[...rest, ...losses(messages.lost)].map((line) => [line])];
  }

  /** Asks for the texts of a place, once the mouse stays. @param {{ key: string, thread: number, from: number, to: number }} place */
  #read(place) {
    if (this.texts.key === place.key) return;
    this.texts = { key: place.key, messages: null };
    clearTimeout(this.waiting);
    this.reading.abort();
    this.reading = new AbortController();
    const { signal } = this.reading;
    this.waiting = setTimeout(() => {
      data.messages(place.thread, place.from, place.to, signal).then((messages) => {
        if (this.texts.key !== place.key) return;
        this.texts.messages = messages;
        this.page.pointer.hover();
      }, (error) => this.page.say(error));
    }, PAUSE);
  }

  /**
   * Returns the stretch of the messages at a place of the screen.
   * @param {number} x
   * @param {number} y below the ruler
   */
  clicked(x, y) {
    return this.found && this.#messages(x, y);
  }
}

/** @param {number} value */
function number(value) {
  return Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(6)));
}
