// The names of the threads that are on the screen. They stay as they are while only the time moves: to make them
// anew, the browser would lay out the page in each frame.

import { calls, element, idBesideName } from './format.js';
import { RULER } from './view.js';

export class Names {
  /** @param {HTMLElement} box */
  constructor(box) {
    this.box = box;
    /** What is shown. */
    this.shown = '';
  }

  /**
   * @param {import('./rows.js').Track[]} tracks
   * @param {number} scroll
   * @param {boolean} isEstimated
   */
  draw(tracks, scroll, isEstimated) {
    const labels = tracks.map(({ thread, top, bottom }) => ({
      name: thread.name || 'thread',
      more: `${idBesideName(thread)} · ${isEstimated ? 'about ' : ''}${calls(thread.calls)}`,
      top: RULER + Math.min(Math.max(top - scroll, 0), bottom - scroll - 16),
    }));
    const shown = JSON.stringify(labels);
    if (shown === this.shown) return;
    this.shown = shown;
    this.box.replaceChildren(...labels.map(({ name, more, top }) => {
      const label = element('div', name);
      label.append(element('span', more));
      label.style.top = `${top}px`;
      return label;
    }));
  }
}
