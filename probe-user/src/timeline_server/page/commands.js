// The commands that make the same, or files for other tools, of a part of the recording.

import { element, exact } from './format.js';

/** Formats of `ctrace export`, the endings of their files, and who reads these. */
const FORMATS = [
  ['perfetto', 'pftrace', 'for ui.perfetto.dev'],
  ['flamegraph', 'svg', 'a flame graph'],
  ['csv', 'csv', 'every call as a row'],
];

/**
 * The elements that show them.
 * @param {import('./data.js').About} about
 * @param {{ from: number, to: number }} part
 */
export function commands(about, { from, to }) {
  // A live page has no file.
  if (about.live) return [];
  const part = `${about.files} --time ${exact(from)}..${exact(to)}`;
  const exports = FORMATS.flatMap(([format, ending, purpose]) =>
    [element('p', purpose, 'dim'), element('code', `ctrace export ${part} --format ${format} -o part.${ending}`)]);
  return [
    element('h3', 'the report of this part on the command line'),
    element('code', `ctrace report ${part}`),
    element('h3', 'the calls that ended in this part, for other tools'),
    ...exports,
  ];
}
