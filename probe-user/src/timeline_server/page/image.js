// The picture as a file: what is drawn, with the ruler, the names of the threads and the chosen range.

import { RULER } from './view.js';

const FONT = '12px system-ui, sans-serif';
/** The height of a name, as in the style sheet. */
const NAME = 16;
const MARGIN = 6;

/**
 * Draws all of it on one canvas.
 * @param {import('./main.js').Page} page
 */
function drawn(page) {
  const { ruler, canvas: calls, view } = page;
  const ratio = calls.width / view.width;
  const canvas = document.createElement('canvas');
  canvas.width = calls.width;
  canvas.height = ruler.height + calls.height;
  const context = canvas.getContext('2d', { alpha: false });
  if (!context) throw new Error('this browser cannot draw');
  context.drawImage(ruler, 0, 0);
  context.drawImage(calls, 0, ruler.height);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  range(context, page, canvas.height / ratio);
  context.beginPath();
  context.rect(0, RULER, view.width, canvas.height / ratio);
  context.clip();
  names(context, page);
  return canvas;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {import('./main.js').Page} page
 * @param {number} height
 */
function range(context, { pointer, view }, height) {
  const { shown } = pointer;
  if (!shown) return;
  const left = view.xAt(shown.from);
  context.fillStyle = colour('--accent');
  context.globalAlpha = 0.16;
  context.fillRect(left, 0, view.xAt(shown.to) - left, height);
  context.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {import('./main.js').Page} page
 */
function names(context, page) {
  context.font = FONT;
  context.textBaseline = 'middle';
  for (const { name, more, top } of page.names.shown) {
    const wide = context.measureText(name).width;
    context.fillStyle = colour('--raised');
    context.fillRect(0, top, wide + context.measureText(more).width + 2 * MARGIN, NAME);
    context.fillStyle = colour('--text');
    context.fillText(name, MARGIN, top + NAME / 2);
    context.fillStyle = colour('--dim');
    context.fillText(more, MARGIN + wide, top + NAME / 2);
  }
}

/** @param {string} name of a colour of the style sheet */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

/**
 * Saves the picture among the user's downloads.
 * @param {import('./main.js').Page} page
 */
export async function save(page) {
  const blob = await new Promise((done) => drawn(page).toBlob(done, 'image/png'));
  if (!(blob instanceof Blob)) throw new Error('this browser cannot make a PNG file of this size');
  const address = URL.createObjectURL(blob);
  const link = document.createElement('a');
  // A name of a recording is no path.
  const name = page.about.program.replace(/[^\w.-]+/g, '_').replace(/^\.+/, '').slice(0, 100);
  [link.href, link.download] = [address, `${name || 'timeline'}.png`];
  link.click();
  // The download has begun by then.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
