// The part of the timeline that is on the screen: from one time to another, and from a row on.

/** The height of the ruler, in pixels. */
export const RULER = 34;
/** The shortest time across the screen, in nanoseconds. */
const SHORTEST = 20;

export class View {
  /** @param {number} length of the recording, in nanoseconds */
  constructor(length) {
    this.length = Math.max(length, 1);
    this.from = 0;
    this.to = this.length;
    this.scroll = 0;
    this.width = 1;
    /** The longest time across the screen, if the recording is shorter: a live one grows. */
    this.least = 0;
    /** True while the end of a live recording is shown. */
    this.follows = false;
  }

  /** @param {number} x */
  timeAt(x) {
    return this.from + (this.to - this.from) * x / this.width;
  }

  /** @param {number} time */
  xAt(time) {
    return (time - this.from) / (this.to - this.from) * this.width;
  }

  /** The part of the recording that is on the screen. */
  get part() {
    const from = Math.min(Math.max(0, Math.floor(this.from)), this.length - 1);
    return { from, to: Math.max(from + 1, Math.min(Math.ceil(this.to), this.length)) };
  }

  /** Nanoseconds of a pixel. */
  get pixel() {
    return (this.to - this.from) / this.width;
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  show(from, to) {
    this.follows = false;
    const most = Math.max(this.length * 1.2, this.least);
    const middle = (from + to) / 2;
    const length = Math.min(Math.max(to - from, SHORTEST), Math.max(most, SHORTEST));
    const first = Math.min(Math.max(middle - length / 2, -0.1 * this.length - SHORTEST), 1.1 * this.length - length + SHORTEST);
    this.from = length >= most ? this.length / 2 - length / 2 : first;
    this.to = this.from + length;
  }

  /**
   * Shows a stretch of time as it is, also beyond the recording.
   * @param {number} from
   * @param {number} to
   */
  put(from, to) {
    [this.from, this.to, this.follows] = [from, to, false];
  }

  /**
   * Shows this much before an end that moves.
   * @param {number} end
   * @param {number} length
   */
  follow(end, length) {
    [this.from, this.to, this.follows] = [end - length, end, true];
  }

  /** @param {number} margin part of the length at either side */
  showAround(/** @type {number} */ from, /** @type {number} */ to, margin = 0.1) {
    const extra = Math.max(to - from, 1) * margin;
    this.show(from - extra, to + extra);
  }

  /**
   * Makes the time across the screen `factor` times as long; what is at x stays there.
   * @param {number} x
   * @param {number} factor
   */
  zoom(x, factor) {
    const at = this.timeAt(x);
    const length = Math.max((this.to - this.from) * factor, SHORTEST);
    const from = at - length * x / this.width;
    const { follows } = this;
    this.show(from, from + length);
    this.follows = follows;
  }

  /** @param {number} pixels */
  move(pixels) {
    const by = pixels * this.pixel;
    this.show(this.from + by, this.to + by);
  }
}
