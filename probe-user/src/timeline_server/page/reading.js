// A large recording is shown before all of its calls were read: the page looks again until they are.

import * as data from './data.js';
import { element } from './format.js';
import { showNotes } from './main.js';

/** The pause between two looks, in milliseconds. */
const PAUSE = 500;

/** Looks until all calls were read. @param {import('./main.js').Page} page */
export async function follow(page) {
  while (page.about.reading) {
    await new Promise((done) => setTimeout(done, PAUSE));
    try {
      page.grow(await data.about(() => {}));
    } catch (error) {
      page.say(error);
      // What the server refuses once, it refuses again.
      if (error instanceof data.Refused) {
        showNotes([element('p', data.why(error), 'warning')]);
        return;
      }
    }
    page.status();
  }
}

/** True if a page has an estimated picture, and the exact one can be asked for. @param {import('./main.js').Page} page */
export const isOld = ({ picture, about }) => Boolean(picture?.isDraft && !about.reading);

/** What is said while calls are read. @param {data.About} about @returns {string[]} */
export const told = ({ reading }) =>
  reading ? [`estimated: ${Math.floor(100 * reading.read / Math.max(1, reading.calls))} % of the calls were read`] : [];
