// Two recordings below each other. Each is a page of its own in a frame; this one makes both show the same time,
// and has the verdicts of `ctrace diff`.

import * as data from './data.js';
import { byId, count, duration, element } from './format.js';

const NAMES = /** @type {const} */ (['old', 'new']);

/** @typedef {typeof NAMES[number]} Name */

/** @param {Name} name @returns {Name} */
const other = (name) => name === 'old' ? 'new' : 'old';

/** The words of an error, which may be of a frame. @param {unknown} error */
const words = (error) => /** @type {{ message?: string } | null} */ (error)?.message ?? String(error);

export class Comparison {
  constructor() {
    /** @type {Partial<Record<Name, import('./main.js').Page>>} */
    this.pages = {};
    /** Nanoseconds from a time of the old recording to that of the new one below it. */
    this.offset = 0;
    this.isFollowing = false;
    /** The newest question for an offset. */
    this.aligning = new AbortController();
  }

  start() {
    const frames = NAMES.map((name) => {
      const frame = /** @type {HTMLIFrameElement} */ (element('iframe'));
      [frame.id, frame.title, frame.src] = [name, `the ${name} recording`, `${name}/`];
      return frame;
    });
    window.addEventListener('lane', (event) => {
      const { detail: page } = /** @type {CustomEvent<import('./main.js').Page>} */ (event);
      const name = NAMES.find((_, n) => frames[n].contentDocument === page.stage.ownerDocument);
      if (name) this.join(name, page);
    });
    byId('lanes').append(...frames);
    for (const id of ['align', 'nth', 'of']) byId(id).addEventListener('change', () => this.align());
    byId('verdicts').addEventListener('click', () => {
      byId('panel').hidden = !byId('panel').hidden;
    });
    this.tell();
  }

  /** @param {Name} name @param {import('./main.js').Page} page */
  join(name, page) {
    this.pages[name] = page;
    page.moved = () => this.follow(name);
    const both = this.both();
    if (!both) return;
    // Both can show as much as the longer one.
    const longest = 1.2 * Math.max(...both.map(({ about }) => about.length_ns));
    both.forEach(({ view }) => { view.least = longest; });
    const longer = both[0].about.length_ns > both[1].about.length_ns ? 'old' : 'new';
    this.follow(longer);
    // It may have been asked for before.
    this.align();
  }

  /** The pages of both recordings, the old one's first, once they are there. */
  both() {
    const { old, new: newer } = this.pages;
    return old && newer ? [old, newer] : null;
  }

  /** Makes the other recording show the same. @param {Name} name the one that moved */
  follow(name) {
    const [page, follower] = [this.pages[name], this.pages[other(name)]];
    if (!page || !follower || this.isFollowing) return;
    const by = name === 'old' ? this.offset : -this.offset;
    const [from, to] = [page.view.from + by, page.view.to + by];
    if (follower.view.from === from && follower.view.to === to) return;
    this.isFollowing = true;
    follower.view.put(from, to);
    follower.change();
    this.isFollowing = false;
  }

  async align() {
    const both = this.both();
    const { value } = /** @type {HTMLSelectElement} */ (byId('align'));
    byId('by').hidden = value !== 'call';
    const text = /** @type {HTMLInputElement} */ (byId('of')).value.trim();
    const n = Math.max(1, Number.parseInt(/** @type {HTMLInputElement} */ (byId('nth')).value, 10) || 1);
    this.aligning.abort();
    this.aligning = new AbortController();
    const { signal } = this.aligning;
    const status = byId('status');
    status.textContent = both || value !== 'call' ? '' : 'not aligned: both recordings are not there yet';
    if (!both || value === 'call' && !text) return;
    try {
      const times = value === 'call' ? await Promise.all(both.map((page) => page.nth(text, n, signal))) : [0, 0];
      if (signal.aborted) return;
      this.offset = times[1] - times[0];
      status.textContent = value === 'call' ? `the new one is moved by ${duration(-this.offset)}` : '';
      const { view } = both[1];
      const length = view.to - view.from;
      if (value === 'call') view.show(times[1] - length / 10, times[1] + length * 0.9);
      both[1].change();
      this.follow('new');
    } catch (error) {
      if (!signal.aborted) status.textContent = `aligned as before: ${words(error)}`;
    }
  }

  async tell() {
    const panel = byId('panel');
    panel.replaceChildren(element('h2', 'comparing …'));
    try {
      this.show(await data.verdicts());
    } catch (error) {
      panel.replaceChildren(element('p', words(error), 'warning'));
    }
  }

  /** @param {data.Verdicts} verdicts */
  show({ metric, headings, rows, left_out: leftOut, remarks }) {
    const table = element('table', '', 'functions');
    const head = element('tr');
    head.append(...['function', 'verdict'].map((name) => element('th', name)), ...headings.map((name) => element('th', name, 'number')));
    table.append(head);
    for (const row of rows) {
      const line = element('tr', '', 'call');
      const kind = row.is_worse ? 'warning' : row.is_significant ? '' : 'dim';
      line.append(element('td', row.name), element('td', row.verdict, `verdict ${kind}`), ...row.numbers.map((number) => element('td', number, 'number')));
      line.addEventListener('click', () => this.choose(row));
      table.append(line);
    }
    const more = leftOut ? [element('p', `${count(leftOut)} more functions are not shown`, 'dim')] : [];
    byId('panel').replaceChildren(element('h2', `verdicts, by ${metric}`), table, ...more,
      ...remarks.map((remark) => element('p', remark, 'dim')));
  }

  /** Shows the longest calls of a function on both sides. @param {data.Verdict} row */
  choose(row) {
    for (const name of NAMES) {
      // On a side without it, nothing is found.
      this.pages[name]?.seek({ functions: row[name] }, row.name);
    }
  }
}

new Comparison().start();
