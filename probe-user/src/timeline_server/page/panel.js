// The panel at the right: a call, the report of a range, or the calls that were found.

import { count, css, duration, element, exact, time } from './format.js';

/** Rows of a report that are shown. */
const MOST_ROWS = 200;

/**
 * @typedef {{ about: import('./data.js').About, goTo: (call: import('./data.js').Call) => void,
 *   close: () => void }} Around
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
  swatch.style.background = css(around.about.colours[id] ?? [128, 128, 128]);
  cell.append(swatch, functionName(around, id));
  return cell;
}

/** @param {[string, string][]} pairs */
function pairs(pairs) {
  const table = element('table');
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
    ['thread', thread ? `${thread.name} ${thread.tid}` : '?'],
    ['object', around.about.functions[call.function]?.object ?? ''],
  ];
  if (near.self_ns !== null) facts.push(['own time', duration(near.self_ns)]);
  if (call.ended === 'untimed') facts.push(['end', 'not seen; the duration goes to the last event inside']);
  panel.append(pairs(facts));
  if (near.values) {
    panel.append(element('h3', 'values'), pairs(Object.entries(near.values).map(([name, value]) => [name, shown(value)])));
  }
  if (near.parents.length) {
    panel.append(element('h3', 'inside of'), list(around, near.parents));
  }
  if (near.inside_calls) {
    const some = near.inside_is_partial ? ' in its first part' : '';
    panel.append(element('h3', `${count(near.inside_calls)} calls${some}, ${duration(near.inside_ns)}`), list(around, inside));
    if (inside.length < near.inside_calls) panel.append(element('p', `the first ${inside.length}`, 'dim'));
  }
}

/**
 * Shows a report, with the numbers of `ctrace report --time`.
 * @param {Element} panel
 * @param {Around} around
 * @param {{ from: number, to: number }} range
 * @param {any} report
 */
export function showRange(panel, around, range, report) {
  begin(panel, around, `range of ${duration(range.to - range.from)}`);
  const { loss } = report;
  panel.append(pairs([
    ['from', `${time(range.from)}`],
    ['calls', count(report.functions.reduce((/** @type {number} */ sum, /** @type {any} */ f) => sum + f.calls, 0))],
  ]));
  const lost = loss.events + loss.late + loss.decode_errors + (loss.unreadable_calls ?? 0);
  if (lost) panel.append(element('p', `${count(lost)} events are missing from it`, 'warning'));
  if (loss.calls_untimed) panel.append(element('p', `${count(loss.calls_untimed)} calls have no known end`, 'dim'));
  panel.append(element('h3', 'the same on the command line'),
    element('code', `ctrace report ${around.about.files} --time ${exact(range.from)}..${exact(range.to)}`));
  const table = element('table');
  const head = element('tr');
  head.append(element('th', 'function'),
    ...['calls', 'total', 'own', 'p50', 'p99', 'max'].map((name) => element('th', name, 'number')));
  table.append(head);
  const rows = report.functions.filter((/** @type {any} */ f) => f.calls > 0)
    .sort((/** @type {any} */ a, /** @type {any} */ b) => b.self_ns - a.self_ns);
  for (const f of rows.slice(0, MOST_ROWS)) {
    const row = element('tr');
    const times = [f.total_ns, f.self_ns, f.p50_ns, f.p99_ns, f.max_ns];
    row.append(element('td', f.name), element('td', count(f.calls), 'number'),
      ...times.map((ns) => element('td', ns === null ? '–' : duration(ns), 'number')));
    table.append(row);
  }
  panel.append(element('h3', 'functions by own time'), table);
  if (rows.length > MOST_ROWS) panel.append(element('p', `and ${count(rows.length - MOST_ROWS)} more`, 'dim'));
}

/**
 * @param {Element} panel
 * @param {Around} around
 * @param {string} text
 * @param {import('./data.js').Hits} hits
 */
export function showHits(panel, around, text, hits) {
  begin(panel, around, `${count(hits.count)} calls of ${text}`);
  panel.append(pairs([['functions', count(hits.functions.length)]]));
  panel.append(element('h3', 'the longest'), list(around, hits.longest));
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
