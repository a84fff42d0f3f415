// Where each row is: threads one below the other, each with a line for its name and a row a depth. Pinned threads are
// first, then those of each process.

export const ROW = 18;
export const NAME = 18;
const GAP = 6;

/**
 * @typedef {{ id: number, pid: number, tid: number, name: string, depths: number, calls: number,
 *   first_ns: number, last_ns: number }} Thread
 * @typedef {{ thread: Thread, top: number, rows: number, bottom: number, isPinned: boolean }} Track
 * @typedef {{ pid: number, name: string, top: number }} Process
 * @typedef {{ thread: number, depth: number, y: number }} Row
 */

export class Rows {
  /** @param {Thread[]} threads */
  constructor(threads) {
    this.threads = threads;
    this.pattern = '';
    /** @type {number | null} */
    this.depth = null;
    /** The ids of threads that are not shown. @type {Set<number>} */
    this.hidden = new Set();
    /** How many of the threads these are. */
    this.hiddenCount = 0;
    /** The ids of those above all others, in this order. @type {Set<number>} */
    this.pinned = new Set();
    /** Where the names of processes are, if there are several. @type {Process[]} */
    this.processes = [];
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

  /** Puts the threads that are chosen below each other. */
  place() {
    const fits = matcher(this.pattern);
    const shown = this.threads.filter((thread) => fits(thread) && !this.hidden.has(thread.id));
    this.hiddenCount = this.hidden.size && this.threads.filter(({ id }) => this.hidden.has(id)).length;
    const byId = new Map(shown.map((thread) => [thread.id, thread]));
    const pinned = [...this.pinned].flatMap((id) => byId.get(id) ?? []);
    // Processes keep their order, whichever of their threads are shown.
    const byProcess = new Map(this.threads.map(({ pid }) => [pid, /** @type {Thread[]} */ ([])]));
    for (const thread of shown) {
      if (!this.pinned.has(thread.id)) byProcess.get(thread.pid)?.push(thread);
    }
    const hasSeveral = byProcess.size > 1;
    let top = this.above;
    this.tracks = [];
    this.processes = [];
    const put = (/** @type {Thread} */ thread, /** @type {boolean} */ isPinned) => {
      const rows = Math.min(thread.depths, this.depth ?? thread.depths);
      const bottom = top + NAME + rows * ROW;
      this.tracks.push({ thread, top, rows, bottom, isPinned });
      top = bottom + GAP;
    };
    for (const thread of pinned) put(thread, true);
    const first = hasSeveral ? new Map(this.threads.map((thread) => [thread.tid, thread])) : new Map();
    for (const [pid, threads] of byProcess) {
      if (hasSeveral && threads.length) {
        // Its first thread has the id of the process.
        this.processes.push({ pid, name: first.get(pid)?.name ?? '', top });
        top += NAME;
      }
      for (const thread of threads) put(thread, false);
    }
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

  /** The track at a height, without scrolling. @param {number} y */
  at(y) {
    return this.tracks.find((track) => y >= track.top && y < track.bottom);
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
