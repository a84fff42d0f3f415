
// Appended to main.js by browser_tests.rs, before the script of a test.

// Time is virtual and does not pass while the server answers: with an answer at each step, frames and
// other answers come in between.
const wait = async () => {
  await fetch('icon.svg');
  await new Promise((done) => setTimeout(done, 25));
};
const until = async (what, is) => {
  for (let tries = 0; tries < 4000; tries++) {
    if (is()) return;
    await wait();
  }
  throw new Error(`it never happens that ${what}`);
};
const settled = async () => {
  for (let times = 0; times < 2; times++) {
    await wait();
    await until('all is there', () => document.documentElement.dataset.ready === 'true');
    await new Promise((done) => setTimeout(done, 300));
  }
  await until('all is there', () => document.documentElement.dataset.ready === 'true');
};
const press = (name) => document.dispatchEvent(new KeyboardEvent('keydown', { key: name }));
/** The mouse at a place of an element. */
const mouse = (target, name, x, y, more = {}) => {
  const box = target.getBoundingClientRect();
  target.setPointerCapture = () => {};
  const place = { clientX: box.left + x, clientY: box.top + y, pointerId: 1, button: 0, bubbles: true, ...more };
  target.dispatchEvent(new PointerEvent(name, place));
};
const clickAt = (target, x, y) => ['pointerdown', 'pointerup'].forEach((name) => mouse(target, name, x, y));
/** The document of one of two recordings that are compared. */
const lane = (name) => byId(name).contentDocument;
const lanes = (look) => ['old', 'new'].map((name) => look(lane(name), name));
const lanesSettled = async () => {
  const are = () => lanes((page) => page.documentElement.dataset.ready === 'true').every((is) => is);
  for (let times = 0; times < 3; times++) {
    await wait();
    await until('both are there', are);
    await new Promise((done) => setTimeout(done, 300));
  }
};
/** The first and the last time on the screen, by the address. */
const shownBy = (page) => /from=(-?\d+)&to=(-?\d+)/.exec(page.location.hash)?.slice(1).map(Number);
/** Leaves what a test has seen in the document. */
const watch = async (look) => {
  const seen = {};
  try {
    await look(seen);
    seen.markup = document.querySelectorAll('img, iframe, object, embed, script:not([src])').length;
  } catch (error) {
    seen.error = String(error);
  }
  document.documentElement.dataset.seen = JSON.stringify(seen);
};
