// Numbers and colours as people read them.

const UNITS = /** @type {const} */ ([['ns', 1], ['µs', 1e3], ['ms', 1e6], ['s', 1e9]]);

/**
 * A duration with three digits or more, such as 1.23 ms.
 * @param {number} ns
 */
export function duration(ns) {
  const size = Math.abs(ns);
  const [unit, scale] = [...UNITS].reverse().find(([, scale]) => size >= scale) ?? UNITS[0];
  const value = ns / scale;
  const digits = scale === 1 ? 0 : Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0;
  return `${value.toFixed(digits)} ${unit}`;
}

/**
 * A time since the start, with as many digits as steps of `step` nanoseconds need.
 * @param {number} ns
 * @param {number} step
 */
export function time(ns, step = 1) {
  const [unit, scale] = [...UNITS].reverse().find(([, scale]) => Math.abs(ns) >= scale) ?? UNITS[0];
  const digits = Math.ceil(Math.log10(scale / Math.max(step, 1)) - 1e-9);
  return `${(ns / scale).toFixed(Math.min(9, Math.max(0, digits)))} ${unit}`;
}

/** @param {number} n */
export function count(n) {
  return n.toLocaleString('en');
}

/**
 * A time for `--time`, exact to the nanosecond.
 * @param {number} ns
 */
export function exact(ns) {
  return `${Math.round(ns)}ns`;
}

/** @param {number[]} colour */
export function css([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}

/**
 * Black or white, whichever has more contrast on a colour (by the relative luminance of WCAG).
 * @param {number[]} colour
 */
export function ink(colour) {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000' : '#fff';
}

/**
 * A number of calls, such as 1 call or 2,000 calls.
 * @param {number} n
 */
export const calls = (n) => `${count(n)} ${n === 1 ? 'call' : 'calls'}`;

/**
 * The id to show behind a thread's name: none where that has the id of a goroutine.
 * @param {{ tid: number, name: string }} thread
 */
export const idBesideName = ({ tid, name }) => (tid >>> 29 === 2 && name.startsWith('goroutine ') ? '' : ` ${tid}`);

/**
 * Makes an element with text. Names from a recording come into the page only here and as text.
 * @param {string} tag
 * @param {string} [text]
 * @param {string} [name] the class
 */
export function element(tag, text = '', name = '') {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

/** @template {HTMLElement} T @param {string} id @returns {T} */
export const byId = (id) => /** @type {T} */ (document.getElementById(id));
