// Sentences on things that are missing from an answer about messages, plots and frame marks.

import { count } from './format.js';

/**
 * @typedef {{ values: number, chunks: number, not_finite: number }} Lost
 */

/** @param {number} n @param {string} one @param {string} many */
const some = (n, one, many) => n ? [`${count(n)} ${n === 1 ? one : many}`] : [];

/**
 * The things that may be missing, a sentence each.
 * @param {Lost} lost
 */
export const losses = ({ values, chunks, not_finite: notFinite }) => [
  ...some(values, 'value was lost near here', 'values were lost near here'),
  ...some(chunks, 'part of the recording cannot be read', 'parts of the recording cannot be read'),
  ...some(notFinite, 'plotted number is infinite or none', 'plotted numbers are infinite or none'),
];
