// What was found, and the way from one call to the next.

import * as data from './data.js';

/** Columns of the strip. */
const COLUMNS = 1000;

export class Search {
  constructor() {
    /** @type {{ choice: data.Choice, hits: data.Hits, functions: Set<number>, length: number, from: number, to: number, columns: number[] } | null} */
    this.found = null;
    this.place = -1;
    /** The newest question. */
    this.asking = new AbortController();
  }

  /** Stops the question before. */
  next() {
    this.asking.abort();
    this.asking = new AbortController();
    return this.asking.signal;
  }

  /**
   * Counts the calls in the whole recording. Only the newest search matters.
   * @param {data.Choice | null} choice
   * @param {number} length
   */
  async start(choice, length) {
    const signal = this.next();
    const hits = choice && await data.find(choice, 0, Math.max(length, 1), COLUMNS, signal);
    if (signal.aborted) return false;
    this.place = -1;
    const to = Math.max(length, 1);
    const functions = new Set(hits?.functions);
    this.found = choice && hits && { choice, hits, functions, length: to, from: 0, to, columns: hits.columns };
    return true;
  }

  /**
   * Counts again for what is on the screen, as far as the strip is too coarse for it.
   * @param {import('./view.js').View} view
   */
  async refine(view) {
    const { found } = this;
    if (!found) return false;
    const [from, to] = [Math.max(0, view.from), Math.min(view.to, found.length)];
    const isFine = found.from <= from && to <= found.to && (found.to - found.from) < 3 * (to - from);
    if (isFine || to <= from) return false;
    const margin = (to - from) / 2;
    const first = Math.max(0, Math.floor(from - margin));
    const last = Math.min(found.length, Math.ceil(to + margin));
    const signal = this.next();
    const { columns } = await data.find(found.choice, first, last, COLUMNS, signal);
    if (signal.aborted || this.found !== found) return false;
    Object.assign(found, { from: first, to: last, columns });
    return true;
  }

  /** The functions that were found, or null. */
  get functions() {
    return this.found?.functions ?? null;
  }

  /**
   * The next or the previous of the longest calls, in order of their lengths.
   * @param {1 | -1} by
   */
  step(by) {
    const longest = this.found?.hits.longest ?? [];
    if (!longest.length) return null;
    this.place = (this.place + by + longest.length) % longest.length;
    return longest[this.place];
  }
}
