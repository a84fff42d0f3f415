// The panel at the right: a call, the report of a range, or the calls that were found.

import { commands } from './commands.js';
import { calls as callsText, count, css, duration, element, exact, idBesideName, time } from './format.js';
import { Histogram } from './histogram.js';
import { losses } from './lost.js';
import { said } from './levels.js';

/**
 * @typedef {{ about: import('./data.js').About, colour: (id: number) => number[],
 *   goTo: (call: import('./data.js').Call) => void, close: () => void, histogram: (functions: number[]) => void, frames: (id: number) => void }} Around
 */

/**
 * Fills the panel. @param {Element} panel @param {Around} around @param {string} title
 */
function begin(panel, around, title) {
  const close = element('button', '×', 'close');
  close.title = 'Close (Esc)';
  close.addEventListener('click', around.close);
  panel.replaceChildren(close, element('h2', title));
  /** @type {HTMLElement} */ (panel).hidden = false;
}

/** @param {Around} around @param {number} id */
function functionName(around, id) {
  return around.about.functions[id]?.name ?? '?';
}

/** @param {Around} around @param {number} id */
function named(around, id) {
  const cell = element('td');
  const swatch = element('span', '', 'swatch');
  swatch.style.background = css(around.colour(id));
  cell.append(swatch, functionName(around, id));
  return cell;
}

/** @param {[string, string][]} pairs */
function pairs(pairs) {
  const table = element('table', '', 'facts');
  for (const [name, value] of pairs) {
    const row = element('tr');
    row.append(element('th', name), element('td', value));
    table.append(row);
  }
  return table;
}

/** @param {Around} around @param {import('./data.js').Call[]} calls */
function list(around, calls) {
  const table = element('table');
  for (const call of calls) {
    const row = element('tr', '', 'call');
    row.append(named(around, call.function), element('td', how(call), 'number'));
    row.addEventListener('click', () => around.goTo(call));
    table.append(row);
  }
  return table;
}

/**
 * What else can be seen of functions.
 * @param {Around} around
 * @param {number[]} functions
 */
function more(around, functions) {
  const buttons = element('p', '', 'more');
  const button = (/** @type {string} */ name, /** @type {string} */ title, /** @type {() => void} */ action) => {
    const made = element('button', name);
    made.title = title;
    made.addEventListener('click', action);
    buttons.append(made);
  };
  button('durations', 'How long all of these calls took', () => around.histogram(functions));
  if (functions.length === 1) button('as frames', 'Each call as a frame, over the whole time', () => around.frames(functions[0]));
  return buttons;
}

/** @param {import('./data.js').Call} call */
function how(call) {
  const length = duration(call.duration_ns);
  return { timed: length, untimed: `≥ ${length}`, open: `${length}, open` }[call.ended];
}

/** @param {unknown} value */
function shown(value) {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/**
 * @param {Element} panel
 * @param {Around} around
 * @param {import('./data.js').Near} near
 */
export function showCall(panel, around, near) {
  const { call, inside } = near;
  begin(panel, around, functionName(around, call.function));
  const thread = around.about.threads.find((thread) => thread.id === call.thread);
  /** @type {[string, string][]} */
  const facts = [
    ['duration', how(call)],
    ['begins at', `${time(call.start_ns)} (${exact(call.start_ns)})`],
    ['thread', thread ? `${thread.name}${idBesideName(thread)}` : '?'],
    ['object', around.about.functions[call.function]?.object ?? ''],
  ];
  if (near.self_ns !== null) facts.push(['own time', `${near.doubts.length ? '≤ ' : ''}${duration(near.self_ns)}`]);
  if (call.ended === 'untimed') facts.push(['end', 'not seen; the duration goes to the last event inside']);
  panel.append(pairs(facts), more(around, [call.function]));
  if (near.self_ns !== null) {
    for (const doubt of near.doubts) panel.append(element('p', `own time may be less: ${doubt}`, 'warning'));
  }
  if (near.values) {
    panel.append(element('h3', 'values'), pairs(Object.entries(near.values).map(([name, value]) => [name, shown(value)])));
  }
  if (near.parents.length) panel.append(element('h3', 'inside of'), list(around, near.parents));
  if (near.missing_parents) {
    panel.append(element('p', `${callsText(near.missing_parents)} around it could not be read`, 'warning'));
  }
  if (near.is_other) panel.append(element('p', 'it lies beyond the bounds on paths: which calls are around it is not known', 'warning'));
  if (near.inside_calls) {
    const some = near.inside_is_partial ? ' in its first part' : '';
    panel.append(element('h3', `${callsText(near.inside_calls)} inside${some}, ${duration(near.inside_ns)}`), list(around, inside));
    if (inside.length < near.inside_calls) panel.append(element('p', `the first ${inside.length}`, 'dim'));
  }
}

/** @param {string[]} sentences @param {string} name the class */
const paragraphs = (sentences, name) => sentences.map((sentence) => element('p', sentence, name));

/**
 * Shows a report: the rows, marks and sentences of `ctrace report --time`, which the server has made.
 * @param {Element} panel
 * @param {Around} around
 * @param {{ from: number, to: number }} range
 * @param {import('./data.js').RangeReport} report
 */
export function showRange(panel, around, range, report) {
  begin(panel, around, `range of ${duration(range.to - range.from)}`);
  panel.append(...paragraphs(report.warnings, 'warning'), pairs([
    ['from', time(range.from)],
    ['calls', count(report.calls)],
  ]));
  if (report.rows.length) panel.append(functions(report));
  if (report.left_out) panel.append(element('p', `${count(report.left_out)} more functions are not shown`, 'dim'));
  panel.append(...paragraphs([...report.remarks, ...report.notes], 'dim'),
    element('p', report.loss, report.is_damaged ? 'warning' : 'dim'));
  panel.append(...commands(around.about, range));
}

/**
 * Shows how to keep what is on the screen.
 * @param {Element} panel
 * @param {Around} around
 * @param {{ from: number, to: number }} part
 * @param {() => void} save saves the picture
 */
export function showKeep(panel, around, part, save) {
  begin(panel, around, 'keep what is shown');
  const button = element('button', 'save as PNG');
  button.title = 'The calls as they are, with the names of threads';
  button.addEventListener('click', save);
  panel.append(button, element('div', '', 'kept'));
  renewKeep(panel, around, part);
}

/**
 * Another part is on the screen now.
 * @param {Element} panel
 * @param {Around} around
 * @param {{ from: number, to: number }} part
 */
export function renewKeep(panel, around, part) {
  panel.querySelector('.kept')?.replaceChildren(...commands(around.about, part));
}

/** @param {import('./data.js').RangeReport} report */
function functions({ headings, rows }) {
  const table = element('table', '', 'functions');
  const head = element('tr');
  head.append(element('th', 'function'), ...headings.map((name) => element('th', name, 'number')));
  table.append(head);
  for (const { name, marks, numbers } of rows) {
    const row = element('tr');
    const label = element('td', name);
    if (marks) label.append(' ', element('span', marks, 'marks'));
    row.append(label, ...numbers.map((number) => element('td', number, 'number')));
    table.append(row);
  }
  return table;
}

/**
 * @param {Element} panel
 * @param {Around} around
 * @param {string} text
 * @param {import('./data.js').Hits} hits
 */
export function showHits(panel, around, text, hits) {
  begin(panel, around, `${callsText(hits.count)} of ${text}`);
  panel.append(pairs([['functions', count(hits.functions.length)]]));
  if (hits.count) panel.append(more(around, hits.functions));
  panel.append(element('h3', 'the longest'), list(around, hits.longest));
}

/**
 * @param {Element} panel
 * @param {Around} around
 * @param {import('./data.js').Messages} messages
 */
export function showMessages(panel, around, { first, count: all, is_partial, lost }) {
  begin(panel, around, `${count(all)} ${all === 1 ? 'message' : 'messages'}${is_partial ? ' in the first part' : ''}`);
  const table = element('table', '', 'messages');
  for (const message of first) {
    const row = element('tr');
    const text = element('td');
    text.append(...said(message));
    row.append(element('td', time(message.time_ns), 'number'), text);
    table.append(row);
  }
  panel.append(table, ...paragraphs(losses(lost), 'warning'));
  if (first.length < all) panel.append(element('p', `the first ${first.length}`, 'dim'));
}

/**
 * @param {Element} panel
 * @param {Around} around
 * @param {number} id of the function or mark
 * @param {import('./data.js').Frames} frames
 * @param {(frame: import('./data.js').Frame) => void} goTo
 */
export function showFrames(panel, around, id, frames, goTo) {
  begin(panel, around, `frames: ${functionName(around, id)}`);
  /** @type {[string, string][]} */
  const facts = [['frames', count(frames.frames)]];
  if (frames.median_ns !== null) facts.push(['median', duration(frames.median_ns)]);
  if (frames.over_budget !== null) facts.push(['over the budget', `${count(frames.over_budget)} of ${count(frames.frames)}`]);
  panel.append(pairs(facts));
  if (frames.unknown) {
    panel.append(element('p', `${count(frames.unknown)} more are not counted: events are missing near them, so a mark may be, too`, 'warning'));
  }
  const others = around.about.frame_marks.filter((mark) => mark !== id);
  for (const mark of others.slice(0, 20)) {
    const button = element('button', functionName(around, mark));
    button.addEventListener('click', () => around.frames(mark));
    panel.append(button);
  }
  const table = element('table', '', 'frames');
  for (const frame of frames.worst) {
    const row = element('tr', '', 'call');
    const thread = around.about.threads.find((thread) => thread.id === frame.thread);
    row.append(element('td', duration(frame.duration_ns), 'number'), element('td', `at ${time(frame.start_ns, 1000)}`, 'number'),
      element('td', thread ? `${thread.name}${idBesideName(thread)}` : ''));
    row.addEventListener('click', () => goTo(frame));
    table.append(row);
  }
  panel.append(element('h3', 'the longest'), table);
}

/**
 * @param {Element} panel
 * @param {Around} around
 * @param {number[]} functions
 * @param {import('./data.js').Durations} durations
 * @param {(least: number, most: number | null) => void} light
 */
export function showDurations(panel, around, functions, durations, light) {
  const title = functions.length === 1 ? functionName(around, functions[0]) : `${count(functions.length)} functions`;
  begin(panel, around, `durations: ${title}`);
  const { bars } = durations;
  panel.append(pairs([['calls', count(durations.count)]]));
  if (durations.untimed) panel.append(element('p', `${callsText(durations.untimed)} more, whose ends were not seen, are in no bar`, 'warning'));
  if (!bars.length) return;
  const histogram = new Histogram(durations, around.colour(functions[0]), light);
  const scale = element('p', `${duration(bars[0].from_ns)} to ${duration(bars[bars.length - 1].to_ns)}; heights are logarithmic. Drag over bars to light their calls.`, 'dim');
  panel.append(histogram.canvas, scale, element('div', '', 'lit'));
  histogram.draw();
}

/**
 * Says which calls are lit, below their histogram.
 * @param {Element} panel
 * @param {Around} around
 * @param {import('./data.js').OfFunctions} choice
 * @param {import('./data.js').Hits} hits
 */
export function showLit(panel, around, { least = 0, most }, hits) {
  const range = most === undefined ? `${duration(least)} and longer` : `from ${duration(least)} to ${duration(most)}`;
  panel.querySelector('.lit')?.replaceChildren(
    element('p', `${callsText(hits.count)} ${range}: exactly these are lit.`), element('h3', 'the longest'), list(around, hits.longest));
}

/**
 * @param {Element} panel
 * @param {Around} around
 * @param {string} title
 * @param {string} text
 */
export function showText(panel, around, title, text) {
  begin(panel, around, title);
  panel.append(element('p', text));
}
