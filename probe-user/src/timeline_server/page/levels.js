// The levels of messages: their colours on the canvas, in tips and in the panel.

import { element } from './format.js';

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error'];
/** By the number of a level: none first, and then those above. */
const COLOURS = ['#868e96', '#868e96', '#868e96', '#1c7ed6', '#e8590c', '#e03131'];

/** The colour of a mark on the canvas. @param {number} level 0 for none */
export function markColour(level) {
  return COLOURS[level] ?? COLOURS[0];
}

/**
 * The text of a message behind its level, which has its colour.
 * @param {import('./data.js').Message} message
 * @param {number} letters of the text, at most
 * @returns {(string | HTMLElement)[]}
 */
export function said({ level, text }, letters = Infinity) {
  const said = (text ?? '(its text was lost)').slice(0, letters);
  if (!level) return [said];
  const tag = element('span', `[${level}]`, 'level');
  tag.style.color = markColour(LEVELS.indexOf(level) + 1);
  return [tag, ` ${said}`];
}
