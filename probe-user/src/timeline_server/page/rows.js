// Where each row is: threads one below the other, each with a line for its name and a row a depth.

export const ROW = 18;
export const NAME = 18;
const GAP = 6;

/**
 * @typedef {{ id: number, pid: number, tid: number, name: string, depths: number, calls: number,
 *   first_ns: number, last_ns: number }} Thread
 * @typedef {{ thread: Thread, top: number, rows: number, bottom: number }} Track
 * @typedef {{ thread: number, depth: number, y: number }} Row
 */

export class Rows {
  /** @param {Thread[]} threads */
  constructor(threads) {
    this.threads = threads;
    this.pattern = '';
    /** @type {number | null} */
    this.depth = null;
    /** @type {Track[]} */
    this.tracks = [];
    this.height = 0;
    /** The room above the first thread. */
    this.above = 0;
    this.place();
  }

  /** @param {number} above pixels above the first thread */
  leaveRoom(above) {
    this.above = above;
    this.place();
  }

  /** Puts the threads that the pattern chooses below each other. */
  place() {
    const fits = matcher(this.pattern);
    let top = this.above;
    this.tracks = this.threads.filter((thread) => fits(thread)).map((thread) => {
      const rows = Math.min(thread.depths, this.depth ?? thread.depths);
      const bottom = top + NAME + rows * ROW;
      const track = { thread, top, rows, bottom };
      top = bottom + GAP;
      return track;
    });
    this.height = top;
  }

  /**
   * The tracks that are on the screen.
   * @param {number} scroll
   * @param {number} height
   */
  visibleTracks(scroll, height) {
    return this.tracks.filter((track) => track.bottom > scroll && track.top < scroll + height);
  }

  /**
   * The rows that are on the screen, with their places on it.
   * @param {number} scroll
   * @param {number} height
   * @returns {Row[]}
   */
  visible(scroll, height) {
    return this.visibleTracks(scroll, height).flatMap((track) => {
      const first = Math.max(0, Math.floor((scroll - track.top - NAME) / ROW));
      const last = Math.min(track.rows, Math.ceil((scroll + height - track.top - NAME) / ROW));
      return Array.from({ length: Math.max(0, last - first) }, (_, n) => ({
        thread: track.thread.id,
        depth: first + n,
        y: track.top + NAME + (first + n) * ROW - scroll,
      }));
    });
  }

  /**
   * Where a row begins, without scrolling. Undefined if it is not shown.
   * @param {number} thread
   * @param {number} depth
   */
  top(thread, depth) {
    const track = this.tracks.find((track) => track.thread.id === thread && depth < track.rows);
    return track && track.top + NAME + depth * ROW;
  }
}

/**
 * A thread fits by a part of its name, by a glob, or by its id.
 * @param {string} pattern
 */
function matcher(pattern) {
  const text = pattern.trim();
  if (!text) return () => true;
  const glob = text.includes('*') || text.includes('?') ? text : `*${text}*`;
  const source = glob.replace(/[.+^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '.*').replace(/\?/g, '.');
  const regex = new RegExp(`^${source}$`, 'i');
  return (/** @type {Thread} */ thread) => regex.test(thread.name) || String(thread.tid) === text;
}
