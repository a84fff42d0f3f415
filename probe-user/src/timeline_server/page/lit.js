// Calls that are lit: those of some functions that took as long as asked for. The server draws a picture of
// these alone, which lies over the dimmed one of all.

import * as data from './data.js';

/** Columns of the strip above. */
const COLUMNS = 1000;
/** How long a picture of another place may take, in milliseconds, before it is not waited for. */
const PATIENCE = 1000;

export class Lit {
  /**
   * @param {import('./main.js').Page} page
   * @param {data.OfFunctions} choice
   */
  constructor(page, choice) {
    this.page = page;
    this.choice = choice;
    /** @type {data.Picture | null} */
    this.picture = null;
    /** Where they begin. @type {{ from: number, to: number, columns: number[] } | null} */
    this.strip = null;
    this.asked = '';
    this.askedAt = 0;
    /** The picture on its way. @type {AbortController | null} */
    this.asking = null;
    this.counting = new AbortController();
    /** @type {number | undefined} */
    this.hurry = undefined;
  }

  /** Calls were added, so the picture is asked for again. */
  renew() {
    this.asked = '';
  }

  /** Counts them in the whole recording. */
  async count() {
    const to = Math.max(1, this.page.about.length_ns);
    const hits = await data.find(this.choice, 0, to, COLUMNS, this.counting.signal);
    this.strip = { from: 0, to, columns: hits.columns };
    return hits;
  }

  /**
   * Asks for the picture of what is on the screen. The end of one on its way asks again.
   * @param {string} key of what is on the screen
   * @param {number} pixels
   * @param {import('./rows.js').Row[]} rows
   */
  ask(key, pixels, rows) {
    if (key === this.asked) return;
    clearTimeout(this.hurry);
    if (this.asking) {
      const left = this.askedAt + PATIENCE - performance.now();
      if (left > 0) this.hurry = setTimeout(() => this.page.change(), left);
      else this.asking.abort();
      return;
    }
    [this.asked, this.askedAt, this.asking] = [key, performance.now(), new AbortController()];
    const { from, to } = this.page.view;
    data.lit(this.choice, from, to, pixels, rows, this.asking.signal).then((picture) => {
      this.picture = picture;
      if (this.page.lit === this) this.page.status();
    }, (error) => {
      // The view may come back to the place whose picture was not waited for.
      if (data.isAborted(error)) this.asked = '';
      this.page.say(error);
    }).finally(() => {
      this.asking = null;
      if (this.page.lit === this) this.page.change();
    });
  }

  /** Nobody looks at it any more. */
  end() {
    clearTimeout(this.hurry);
    this.counting.abort();
    this.asking?.abort();
  }
}
