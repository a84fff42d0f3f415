// The page: what is on the screen, what the mouse and the keys do, and when to ask and to draw.

import { Address } from './address.js';
import { Colours } from './colours.js';
import * as data from './data.js';
import { Painter, ruler, theme } from './draw.js';
import { byId, calls, count, duration, element } from './format.js';
import { Frames } from './frames.js';
import { save } from './image.js';
import { Lit } from './lit.js';
import { Keys } from './keys.js';
import { FIRST, Live } from './live.js';
import { Names } from './names.js';
import { Pointer } from './pointer.js';
import { renewKeep, showCall, showDurations, showHits, showKeep, showLit, showMessages, showRange, showText } from './panel.js';
import { Points } from './points.js';
import { follow, isOld, told } from './reading.js';
import { ROW, Rows } from './rows.js';
import { Search } from './search.js';
import { Threads } from './threads.js';
import { RULER, View } from './view.js';

/** How long a picture of another place may take, in milliseconds, before it is not waited for. */
const PATIENCE = 1000;

export class Page {
  /** @param {data.About} about */
  constructor(about) {
    this.about = about;
    this.view = new View(about.length_ns);
    this.rows = new Rows(about.threads);
    this.search = new Search();
    /** @type {data.Picture | null} */
    this.picture = null;
    /** @type {{ from: number, to: number } | null} */
    this.range = null;
    /** @type {data.Call | null} */
    this.call = null;
    this.pointer = new Pointer(this);
    this.stage = byId('stage');
    this.panel = byId('panel');
    this.threads = new Threads(this);
    this.colours = new Colours(this);
    this.names = new Names(byId('names'), this.threads);
    this.ruler = /** @type {HTMLCanvasElement} */ (byId('ruler'));
    this.canvas = /** @type {HTMLCanvasElement} */ (byId('picture'));
    this.painter = new Painter(this.canvas, about, this.colours.all);
    this.around = {
      about,
      colour: (/** @type {number} */ id) => this.colours.of(id),
      goTo: (/** @type {data.Call} */ call) => this.goTo(call),
      close: () => this.close(),
      histogram: (/** @type {number[]} */ functions) => this.histogram(functions),
      frames: (/** @type {number} */ id) => this.frames.show(id),
    };
    this.frames = new Frames(this);
    /** @type {Lit | null} */
    this.lit = null;
    /** The picture on its way. @type {AbortController | null} */
    this.asking = null;
    this.askedAt = 0;
    this.asked = '';
    /** @type {number | undefined} */
    this.hurry = undefined;
    /** What the panel waits for. */
    this.choosing = new AbortController();
    this.isDrawing = false;
    this.address = new Address(this);
    this.live = about.live ? new Live(this) : null;
    this.points = about.has_points ? new Points(this) : null;
    if (about.live) this.view.least = 1.2 * FIRST;
  }

  start() {
    this.listen();
    this.resize();
    this.address.read();
    this.live?.start();
    this.change();
    follow(this);
  }

  /**
   * A live recording has grown, or more of one was read.
   * @param {data.About} about
   */
  grow(about) {
    const before = this.about.length_ns;
    this.about = about;
    this.around.about = about;
    this.view.length = Math.max(about.length_ns, 1);
    this.rows.threads = about.threads;
    this.rows.place();
    this.colours.know();
    this.frames.know();
    if (about.has_points) this.points ??= new Points(this);
    showNotes(about.notes.map((note) => element('p', note)));
    // Its picture was right until now, or more exact by now.
    if (this.view.to > before || (this.picture?.unread.length && !this.asking) || isOld(this)) {
      this.asked = '';
      this.lit?.renew();
    }
    this.change();
  }

  get height() {
    return this.stage.clientHeight - RULER;
  }

  // Drawing.

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight } = this.stage;
    this.view.width = Math.max(width, 1);
    for (const [canvas, top, height] of /** @type {const} */ ([[this.ruler, 0, RULER], [this.canvas, RULER, clientHeight - RULER]])) {
      canvas.width = Math.max(1, Math.round(width * ratio));
      canvas.height = Math.max(1, Math.round(height * ratio));
      canvas.style.cssText = `top:${top}px;width:${width}px;height:${Math.max(height, 0)}px`;
    }
  }

  /** Something moved: draws what is known, and asks for the rest. */
  change() {
    this.view.scroll = Math.min(Math.max(0, this.view.scroll), Math.max(0, this.rows.height - this.height + 40));
    const { dataset } = document.documentElement;
    if (dataset.ready === 'true') dataset.ready = 'false';
    if (!this.isDrawing) {
      this.isDrawing = true;
      requestAnimationFrame(() => {
        this.isDrawing = false;
        this.draw();
      });
    }
    this.ask();
    this.points?.ask();
    this.moved();
  }

  /** A page around this one may follow what it shows. */
  moved() {}

  /**
   * The beginning of the n-th call of the functions that a text fits.
   * @param {string} text
   * @param {number} n
   * @param {AbortSignal} signal
   */
  async nth(text, n, signal) {
    return (await data.nth(text, n, signal)).start_ns;
  }

  /** The time from which calls are kept. */
  keptFrom() {
    return this.about.live?.kept_from_ns ?? 0;
  }

  draw() {
    const rows = this.rows.visible(this.view.scroll, this.height);
    this.painter.know(this.about, this.colours.all);
    this.painter.chosen = this.lit ? new Set() : this.search.functions;
    this.painter.lit = this.lit?.picture ?? null;
    this.painter.draw(this.view, rows, this.picture, this.keptFrom());
    this.points?.draw(this.painter.context, this.painter.theme);
    ruler(this.ruler, this.view, this.lit ? this.lit.strip : this.search.found, this.painter.theme);
    this.frames.draw(this.painter.theme);
    this.names.draw(this.rows, this.view.scroll, this.height, Boolean(this.about.reading));
    this.threads.tell();
    this.pointer.draw();
    document.documentElement.dataset.ready = String(!this.asking && !this.points?.isAsking && !this.lit?.asking && !this.about.reading);
  }

  // Asking.

  /** Asks for the picture of now. While one is on its way, its end asks again; one that takes long is stopped. */
  ask() {
    const rows = this.rows.visible(this.view.scroll, this.height);
    const pixels = Math.min(8192, Math.max(1, this.canvas.width));
    const key = [this.view.from, this.view.to, pixels, ...rows.map((row) => `${row.thread}.${row.depth}`)].join(' ');
    this.lit?.ask(key, pixels, rows);
    if (key === this.asked) return;
    clearTimeout(this.hurry);
    if (this.asking) {
      const left = this.askedAt + PATIENCE - performance.now();
      if (left > 0) this.hurry = setTimeout(() => this.ask(), left);
      else this.asking.abort();
      return;
    }
    this.asked = key;
    this.askedAt = performance.now();
    this.asking = new AbortController();
    data.pictures(this.view.from, this.view.to, pixels, rows, this.asking.signal, (picture) => {
      this.picture = picture;
      this.status();
      if (isOld(this)) this.asked = '';
      if (!picture.isCoarse) return;
      // The finer one is not waited for as soon as another place is looked at.
      this.askedAt = -PATIENCE;
      this.change();
    })
      .catch((error) => {
        // The view may come back to the place whose picture was not waited for.
        if (data.isAborted(error)) this.asked = '';
        else if (this.picture?.isDraft && !(error instanceof data.Refused)) {
          setTimeout(() => {
            this.asked = '';
            this.change();
          }, PATIENCE);
        }
        this.say(error);
      })
      .finally(() => {
        this.asking = null;
        this.change();
      });
    this.address.later();
  }

  status() {
    const { from, to } = this.view;
    const rows = [this.picture, this.lit?.picture].flatMap((picture) => picture?.rows ?? []);
    const leftOut = rows.reduce((sum, row) => sum + row.leftOut, 0);
    const shown = Math.min(to - from, this.about.length_ns);
    const text = `${duration(shown)} of ${duration(this.about.length_ns)} · ${calls(this.about.calls)}`;
    const missing = leftOut ? [`${count(leftOut)} overlapping calls are not drawn`] : [];
    missing.push(...told(this.about));
    if (this.picture?.isCoarse) missing.push('coarse: a finer picture is on its way');
    byId('status').textContent = [text, ...missing, ...(this.points?.missing() ?? [])].join(' · ');
  }

  /** @param {unknown} error */
  say(error) {
    if (!data.isAborted(error)) byId('status').textContent = data.why(error);
  }

  // Choosing.

  /** Stops what the panel waited for. */
  nextChoice() {
    this.choosing.abort();
    this.choosing = new AbortController();
    return this.choosing.signal;
  }

  /** @param {number} thread @param {number} depth @param {number} when @param {number} slack */
  async choose(thread, depth, when, slack) {
    const signal = this.nextChoice();
    try {
      const near = await data.call(thread, depth, when, slack, signal);
      if (!near || signal.aborted) return;
      this.call = near.call;
      showCall(this.panel, this.around, near);
      this.resized();
    } catch (error) {
      this.say(error);
    }
  }

  /** @param {number} thread @param {number} from @param {number} to */
  async chooseMessages(thread, from, to) {
    const signal = this.nextChoice();
    try {
      const messages = await data.messages(thread, from, to, signal);
      if (signal.aborted) return;
      showMessages(this.panel, this.around, messages);
      this.resized();
    } catch (error) {
      this.say(error);
    }
  }

  /** @param {data.Call} call */
  goTo(call) {
    const top = this.rows.top(call.thread, call.depth);
    if (top !== undefined && (top < this.view.scroll || top > this.view.scroll + this.height - ROW)) {
      this.view.scroll = top - this.height / 2;
    }
    this.view.showAround(call.start_ns, call.start_ns + call.duration_ns, 1);
    this.change();
    return this.choose(call.thread, call.depth, call.start_ns, 0);
  }

  /** @param {number} from @param {number} to */
  async chooseRange(from, to) {
    const range = { from: Math.max(0, Math.round(from)), to: Math.round(Math.min(to, this.about.length_ns)) };
    if (range.to <= range.from) return;
    this.range = range;
    showText(this.panel, this.around, `range of ${duration(range.to - range.from)}`, 'counting …');
    this.resized();
    const signal = this.nextChoice();
    try {
      const report = await data.report(range.from, range.to, signal);
      if (!signal.aborted) showRange(this.panel, this.around, range, report);
    } catch (error) {
      if (!data.isAborted(error)) showText(this.panel, this.around, 'no report', data.why(error));
    }
  }

  /** Finds the functions that the field names. */
  find() {
    const text = /** @type {HTMLInputElement} */ (byId('find')).value.trim();
    return this.seek(text ? { text } : null, text);
  }

  /**
   * Shows where calls are, and the longest of them; null ends it.
   * @param {data.Choice | null} choice
   * @param {string} title
   */
  async seek(choice, title) {
    this.nextChoice();
    this.light(null);
    try {
      if (!await this.search.start(choice, this.about.length_ns)) return;
      if (this.search.found) showHits(this.panel, this.around, title, this.search.found.hits);
      this.status();
    } catch (error) {
      if (data.isAborted(error)) return;
      this.search.found = null;
      this.say(error);
    }
    this.resized();
    this.address.later();
  }

  /** Shows how long calls of these functions took. @param {number[]} functions */
  async histogram(functions) {
    const signal = this.nextChoice();
    this.light(null);
    try {
      const durations = await data.durations({ functions }, 0, Math.max(1, this.about.length_ns), signal);
      if (signal.aborted) return;
      const light = (/** @type {number} */ least, /** @type {number | null} */ most) =>
        this.light({ functions, least, ...(most === null ? {} : { most }) });
      showDurations(this.panel, this.around, functions, durations, light);
      this.resized();
    } catch (error) {
      this.say(error);
    }
  }

  /** Lights calls; null ends it. @param {data.OfFunctions | null} choice */
  async light(choice) {
    this.lit?.end();
    const lit = choice && new Lit(this, choice);
    this.lit = lit;
    this.change();
    if (!lit) return;
    try {
      const hits = await lit.count();
      if (this.lit !== lit) return;
      showLit(this.panel, this.around, lit.choice, hits);
      this.change();
    } catch (error) {
      this.say(error);
    }
  }

  close() {
    this.nextChoice();
    this.light(null);
    this.panel.hidden = true;
    [this.range, this.call] = [null, null];
    this.resized();
    this.address.later();
  }

  resized() {
    this.resize();
    this.change();
    // A canvas of another size is black until it is drawn.
    this.draw();
  }

  /** Nothing has moved for a while. */
  rest() {
    renewKeep(this.panel, this.around, this.view.part);
    this.search.refine(this.view).then((isNew) => isNew && this.change(), (error) => this.say(error));
  }

  /** Shows how to keep what is on the screen. */
  keep() {
    this.nextChoice();
    showKeep(this.panel, this.around, this.view.part, () => save(this).catch((error) => this.say(error)));
    this.resized();
  }

  // The mouse and the keys.

  listen() {
    window.addEventListener('resize', () => this.resized());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.painter.theme = theme();
      this.change();
    });
    this.pointer.listen();
    new Keys(this).listen();
    byId('all').addEventListener('click', () => this.all());
    byId('keys').addEventListener('click', () => this.help());
    byId('find').addEventListener('change', () => this.find());
    byId('keep').addEventListener('click', () => this.keep());
    this.threads.listen();
    this.colours.listen();
  }

  help() {
    /** @type {HTMLDialogElement} */ (byId('help')).showModal();
  }

  all() {
    this.view.show(0, this.about.length_ns);
    this.change();
  }

  /** @param {1 | -1} by */
  step(by) {
    const call = this.search.step(by);
    if (call) this.goTo(call);
  }
}

/** @param {HTMLElement[]} paragraphs */
export function showNotes(paragraphs) {
  byId('notes').hidden = !paragraphs.length;
  byId('notes').replaceChildren(...paragraphs);
}

async function start() {
  const status = byId('status');
  try {
    const about = await data.about((part) => { status.textContent = `reading ${Math.round(part * 100)} %`; });
    document.title = `${about.program} · ctrace`;
    byId('program').textContent = about.program;
    showNotes(about.notes.map((note) => element('p', note)));
    if (!about.threads.length && !about.live && !about.reading) status.textContent = 'there is no call in this recording';
    else {
      const page = new Page(about);
      page.start();
      // A page that compares two recordings has this one in a frame.
      document.documentElement.classList.toggle('lane', window.parent !== window);
      if (window.parent !== window) window.parent.dispatchEvent(new CustomEvent('lane', { detail: page }));
    }
  } catch (error) {
    status.textContent = '';
    showNotes([element('p', data.why(error), 'warning')]);
    document.documentElement.dataset.ready = 'failed';
  }
}

start();
