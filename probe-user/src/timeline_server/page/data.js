// Asks the server. All addresses are relative, so they have the token of the page's own.

/**
 * @typedef {{ name: string, object: string }} TracedFunction
 * @typedef {{ program: string, length_ns: number, calls: number, functions: TracedFunction[],
 *   threads: import('./rows.js').Thread[], notes: string[], colours: number[][],
 *   object_colours: Record<string, number[]>, short: string[], files: string, has_points: boolean, frame_marks: number[],
 *   reading?: { read: number, calls: number }, live?: { has_ended: boolean, kept_from_ns: number } }} About
 * @typedef {{ thread: number, depth: number, function: number, start_ns: number,
 *   duration_ns: number, ended: 'timed' | 'untimed' | 'open' }} Call
 * @typedef {{ call: Call, parents: Call[], missing_parents: number, is_other: boolean, inside: Call[],
 *   inside_calls: number, inside_ns: number, self_ns: number | null, inside_is_partial: boolean,
 *   doubts: string[], values: Record<string, unknown> | null }} Near
 * @typedef {{ calls: number, warnings: string[], headings: string[],
 *   rows: { name: string, marks: string, numbers: string[] }[], left_out: number, remarks: string[],
 *   notes: string[], loss: string, is_damaged: boolean }} RangeReport
 * @typedef {{ functions: number[], count: number, columns: number[], longest: Call[] }} Hits
 * @typedef {{ function: number, unit: string | null, columns: [number, number, number, number, number][] }} Plot
 * @typedef {{ messages: { thread: number, columns: [number, number, number][] }[],
 *   plots: Plot[], marks: { function: number, columns: [number, number][] }[], left_out: number,
 *   lost: import('./lost.js').Lost }} Points
 * @typedef {{ time_ns: number, function: number, level: string | null, text: string | null }} Message
 * @typedef {{ first: Message[], count: number, is_partial: boolean, lost: import('./lost.js').Lost }} Messages
 * @typedef {{ functions: number[], least?: number, most?: number }} OfFunctions
 * @typedef {{ text: string } | OfFunctions} Choice
 * @typedef {{ bars: { from_ns: number, to_ns: number, count: number }[], count: number, untimed: number }} Durations
 * @typedef {{ start_ns: number, duration_ns: number, thread: number }} Frame
 * @typedef {{ place: number, count: number, median_ns: number, worst: Frame }} FrameColumn
 * @typedef {{ frames: number, unknown: number, over_budget: number | null, median_ns: number | null,
 *   columns: FrameColumn[], worst: Frame[] }} Frames
 * @typedef {{ name: string, verdict: string, is_worse: boolean, is_significant: boolean, numbers: string[],
 *   old: number[], new: number[] }} Verdict
 * @typedef {{ metric: string, headings: string[], rows: Verdict[], left_out: number, remarks: string[] }} Verdicts
 * @typedef {{ thread: number, depth: number, cells: Uint32Array, cellFunctions: Uint32Array,
 *   counts: Uint32Array, starts: Float64Array, durations: Float64Array, functions: Uint32Array,
 *   ends: Uint32Array, leftOut: number }} PictureRow
 * `isCoarse`: a finer one can be asked for. `isDraft`: not all calls were read yet, and what `unread` has is estimated.
 * @typedef {{ cell: number, first: number, cells: number, lost: Uint32Array, unread: Uint32Array, rows: PictureRow[],
 *   byRow: Map<string, PictureRow>, isCoarse: boolean, isDraft: boolean }} Picture
 */

export const TIMED = 1;

/** The pause between two questions to a server that still reads, in milliseconds. */
const PAUSE = 100;

/** What the server says instead of an answer. */
export class Refused extends Error {}

/** The words for an answer that did not come. @param {unknown} error */
export const why = (error) => error instanceof Refused ? error.message : 'ctrace has ended, or cannot be reached';

/**
 * True if an answer is not waited for any more. The server stops the work on it.
 * @param {unknown} error
 */
export const isAborted = (error) => error instanceof DOMException && error.name === 'AbortError';

/**
 * @param {string} name
 * @param {Record<string, string | number>} params
 * @param {AbortSignal} [signal]
 */
async function ask(name, params, signal) {
  const query = new URLSearchParams(Object.entries(params).map(([key, value]) => [key, String(value)]));
  const answer = await fetch(`api/${name}?${query}`, { signal });
  if (answer.status === 400) throw new Refused((await answer.text()).trim());
  return answer;
}

/**
 * Asks until all calls were read, if the answer needs that. `progress` is told how far that is.
 * @param {string} name
 * @param {Record<string, string | number>} params
 * @param {AbortSignal} [signal]
 * @param {(part: number) => void} [progress]
 */
async function answered(name, params, signal, progress = () => {}) {
  for (;;) {
    const answer = await ask(name, params, signal);
    if (answer.ok) return answer;
    if (answer.status !== 503) throw new Refused(`the server answers ${answer.status}`);
    const { read, calls } = /** @type {{ read: number, calls: number }} */ (await answer.json());
    progress(calls ? read / calls : 0);
    await new Promise((done) => setTimeout(done, PAUSE));
  }
}

/**
 * @param {string} name
 * @param {Record<string, string | number>} params
 * @param {AbortSignal} [signal]
 * @param {(part: number) => void} [progress]
 */
const json = async (name, params, signal, progress) => (await answered(name, params, signal, progress)).json();

/**
 * Describes the recording. Until all calls were read, `progress` is told how far that is.
 * @param {(part: number) => void} progress
 * @returns {Promise<About>}
 */
export const about = (progress) => json('about', {}, undefined, progress);

/**
 * Asks for a picture, and shows a coarser one before if it takes long.
 * @param {number} from
 * @param {number} to
 * @param {number} pixels
 * @param {{ thread: number, depth: number }[]} rows
 * @param {AbortSignal} signal
 * @param {(picture: Picture) => void} show
 */
export async function pictures(from, to, pixels, rows, signal, show) {
  const asked = { ...stretch(from, to), pixels };
  const first = await drawn('picture', { ...asked, quick: 1 }, rows, signal);
  show(first);
  if (first.isCoarse) show(await drawn('picture', asked, rows, signal));
}

/**
 * The picture of chosen calls alone.
 * @param {Choice} choice
 * @param {number} from
 * @param {number} to
 * @param {number} pixels
 * @param {{ thread: number, depth: number }[]} rows
 * @param {AbortSignal} signal
 */
export const lit = (choice, from, to, pixels, rows, signal) =>
  drawn('lit', { ...stretch(from, to), pixels, ...params(choice) }, rows, signal);

/**
 * @param {string} name
 * @param {Record<string, string | number>} params
 * @param {{ thread: number, depth: number }[]} rows
 * @param {AbortSignal} signal
 * @returns {Promise<Picture>}
 */
async function drawn(name, params, rows, signal) {
  const answer = await answered(name, { ...params, rows: inRanges(rows) }, signal);
  return decode(await answer.arrayBuffer(), rows);
}

/** @param {number} from @param {number} to */
const stretch = (from, to) => ({ from: Math.floor(from), to: Math.ceil(to) });

/** @param {Choice} choice @returns {Record<string, string | number>} */
function params(choice) {
  if ('text' in choice) return choice;
  const { functions, ...durations } = choice;
  return { functions: functions.join(','), ...durations };
}

/** @param {{ thread: number, depth: number }[]} rows */
function inRanges(rows) {
  /** @type {{ thread: number, first: number, last: number }[]} */
  const ranges = [];
  for (const { thread, depth } of rows) {
    const last = ranges.at(-1);
    if (last && last.thread === thread && last.last + 1 === depth) last.last = depth;
    else ranges.push({ thread, first: depth, last: depth });
  }
  return ranges.map(({ thread, first, last }) => `${thread}.${first}-${last}`).join(',');
}

/**
 * The bytes are described in picture.rs.
 * @param {ArrayBuffer} bytes
 * @param {{ thread: number, depth: number }[]} asked
 * @returns {Picture}
 */
export function decode(bytes, asked) {
  const head = new Uint32Array(bytes, 0, 8);
  const [magic, level, cells, count, stretches, next, notRead] = head;
  if (magic !== 0x32505443) throw new Refused('the server is of another version');
  let at = 32;
  const first = new Float64Array(bytes, at, 1)[0];
  at += 8;
  const words = (/** @type {number} */ n) => {
    const found = new Uint32Array(bytes, at, n);
    at += 4 * n;
    return found;
  };
  const numbers = (/** @type {number} */ n) => {
    const found = new Float64Array(bytes, at, n);
    at += 8 * n;
    return found;
  };
  const lost = words(2 * stretches);
  const unread = words(2 * notRead);
  const rows = Array.from({ length: count }, (_, place) => {
    const [ofCells, ofSpans, leftOut] = words(4);
    const row = {
      ...asked[place],
      leftOut,
      cells: words(ofCells),
      cellFunctions: words(ofCells),
      counts: words(ofCells),
    };
    words(ofCells % 2);
    return {
      ...row,
      starts: numbers(ofSpans),
      durations: numbers(ofSpans),
      functions: words(ofSpans),
      ends: words(ofSpans),
    };
  });
  const byRow = new Map(rows.map((row) => [`${row.thread}.${row.depth}`, row]));
  return { cell: 2 ** level, first, cells, lost, unread, rows, byRow, isCoarse: next === 1, isDraft: next === 2 };
}

/**
 * @param {number} thread
 * @param {number} depth
 * @param {number} time
 * @param {number} slack
 * @param {AbortSignal} signal
 * @returns {Promise<Near | null>}
 */
export const call = (thread, depth, time, slack, signal) =>
  json('call', { thread, depth, time: Math.floor(time), slack: Math.ceil(slack) }, signal);

/**
 * @param {number} from
 * @param {number} to
 * @param {AbortSignal} signal
 * @returns {Promise<RangeReport>}
 */
export const report = (from, to, signal) => json('report', { from, to }, signal);

/**
 * @param {number} from
 * @param {number} to
 * @param {number} columns
 * @param {number[]} threads
 * @param {AbortSignal} signal
 * @returns {Promise<Points>}
 */
export const points = (from, to, columns, threads, signal) =>
  json('points', { from, to, columns, threads: threads.join(',') }, signal);

/**
 * @param {number} thread
 * @param {number} from
 * @param {number} to
 * @param {AbortSignal} signal
 * @returns {Promise<Messages>}
 */
export const messages = (thread, from, to, signal) => json('messages', { thread, from, to }, signal);

/**
 * Counts chosen calls.
 * @param {Choice} choice
 * @param {number} from
 * @param {number} to
 * @param {number} columns
 * @param {AbortSignal} signal
 * @returns {Promise<Hits>}
 */
export const find = (choice, from, to, columns, signal) =>
  json('find', { ...params(choice), ...stretch(from, to), columns }, signal);

/**
 * @param {Choice} choice
 * @param {number} from
 * @param {number} to
 * @param {AbortSignal} signal
 * @returns {Promise<Durations>}
 */
export const durations = (choice, from, to, signal) =>
  json('durations', { ...params(choice), ...stretch(from, to) }, signal);

/**
 * @param {number} id of the function or mark
 * @param {number} columns
 * @param {number | null} budget
 * @param {AbortSignal} signal
 * @returns {Promise<Frames>}
 */
export const frames = (id, columns, budget, signal) =>
  json('frames', { function: id, columns, ...(budget === null ? {} : { budget }) }, signal);

/**
 * The beginning of the n-th call of the functions that a text fits.
 * @param {string} text
 * @param {number} n
 * @param {AbortSignal} signal
 * @returns {Promise<{ start_ns: number }>}
 */
export const nth = (text, n, signal) => json('nth', { text, n }, signal);

/**
 * The verdicts on the functions of two recordings, once they are known.
 * @returns {Promise<Verdicts>}
 */
export const verdicts = () => json('verdicts', {});
