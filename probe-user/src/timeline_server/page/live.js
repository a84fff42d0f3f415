// A live page: asks for new calls, and follows them until somebody looks back.

import * as data from './data.js';
import { byId } from './format.js';

/** The pause between two questions, in milliseconds. */
const PAUSE = 250;
/** The pause after one that was not answered. */
const LONG_PAUSE = 1000;
/** The time across the screen at first, in nanoseconds. */
export const FIRST = 10e9;

export class Live {
  /** @param {import('./main.js').Page} page */
  constructor(page) {
    this.page = page;
    /** What is known lags behind the clock by this much at most, in nanoseconds. */
    this.lag = 0;
    this.isDrawing = false;
    /** True while questions get no answer. */
    this.isAlone = false;
    this.button = byId('live');
  }

  start() {
    this.button.hidden = false;
    this.button.addEventListener('click', () => this.toggle());
    this.lag = clock() - this.page.about.length_ns;
    const { view } = this.page;
    if (!location.hash.includes('from=')) {
      view.from = view.to - FIRST;
      this.follow();
    }
    this.ask();
    this.state();
  }

  get hasEnded() {
    return this.page.about.live?.has_ended ?? true;
  }

  async ask() {
    let pause = PAUSE;
    while (!this.hasEnded) {
      await new Promise((done) => setTimeout(done, pause));
      try {
        const about = await data.about(() => {});
        [this.isAlone, pause] = [false, PAUSE];
        this.take(about);
      } catch (error) {
        // The next answer may be a good one.
        [this.isAlone, pause] = [true, LONG_PAUSE];
        this.page.say(error);
        this.state();
      }
    }
  }

  /** @param {data.About} about */
  take(about) {
    // The most that a picture lags is just before the next one is known. It shrinks slowly.
    const lag = clock() - this.page.about.length_ns;
    this.lag = Math.max(lag, this.lag - 0.02 * Math.abs(this.lag - lag));
    this.page.grow(about);
    this.state();
  }

  /** Shows the newest calls, and those that come. */
  follow() {
    const { view } = this.page;
    view.follow(this.end, view.to - view.from);
    this.frame();
  }

  toggle() {
    if (this.page.view.follows) this.page.view.follows = false;
    else this.follow();
    this.state();
    this.page.change();
  }

  /** The end of what is shown while it is followed: it moves as the clock does. */
  get end() {
    const { length_ns: length } = this.page.about;
    return this.hasEnded ? length : Math.min(length, clock() - this.lag);
  }

  frame() {
    if (this.isDrawing) return;
    this.isDrawing = true;
    requestAnimationFrame(() => {
      this.isDrawing = false;
      const { view } = this.page;
      if (!view.follows) return this.state();
      view.follow(this.end, view.to - view.from);
      this.page.change();
      if (!this.hasEnded) this.frame();
    });
  }

  state() {
    const isLive = !this.hasEnded && !this.isAlone;
    this.button.textContent = isLive ? 'live' : this.hasEnded ? 'ended' : 'no answer';
    this.button.classList.toggle('on', this.page.view.follows && isLive);
  }
}

/** Nanoseconds of a clock that only goes on. */
function clock() {
  return performance.now() * 1e6;
}
