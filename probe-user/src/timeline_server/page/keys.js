// The keys.

import { byId } from './format.js';
import { ROW } from './rows.js';

export class Keys {
  /** @param {import('./main.js').Page} page */
  constructor(page) {
    this.page = page;
  }

  listen() {
    document.addEventListener('keydown', (event) => this.key(event));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key === 'Escape') {
      if (isTyping) /** @type {HTMLElement} */ (event.target).blur();
      else this.page.close();
      return;
    }
    if (isTyping) {
      if (event.key === 'Enter') /** @type {HTMLElement} */ (event.target).blur();
      return;
    }
    const action = this.actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
    this.page.change();
  }

  /** Does something with the thread at the mouse. @param {(thread: number) => void} action */
  ofThread(action) {
    const thread = this.page.threads.atMouse();
    if (thread !== undefined) action(thread);
  }

  /** @type {Record<string, () => void>} */
  actions = {
    w: () => this.page.view.zoom(this.page.pointer.x || this.page.view.width / 2, 0.7),
    s: () => this.page.view.zoom(this.page.pointer.x || this.page.view.width / 2, 1 / 0.7),
    a: () => this.page.view.move(-this.page.view.width / 8),
    d: () => this.page.view.move(this.page.view.width / 8),
    ArrowLeft: () => this.page.view.move(-this.page.view.width / 8),
    ArrowRight: () => this.page.view.move(this.page.view.width / 8),
    ArrowUp: () => { this.page.view.scroll -= 3 * ROW; },
    ArrowDown: () => { this.page.view.scroll += 3 * ROW; },
    PageUp: () => { this.page.view.scroll -= this.page.height; },
    PageDown: () => { this.page.view.scroll += this.page.height; },
    0: () => this.page.all(),
    l: () => this.page.live?.toggle(),
    '/': () => byId('find').focus(),
    '?': () => this.page.help(),
    f: () => {
      const chosen = this.page.call && { from: this.page.call.start_ns, to: this.page.call.start_ns + this.page.call.duration_ns };
      const shown = chosen ?? this.page.range;
      if (shown) this.page.view.showAround(shown.from, shown.to);
    },
    m: () => {
      if (this.page.call) this.page.chooseRange(this.page.call.start_ns, this.page.call.start_ns + this.page.call.duration_ns);
    },
    h: () => this.ofThread((thread) => this.page.threads.hide(thread)),
    t: () => this.ofThread((thread) => this.page.threads.pin(thread)),
    u: () => this.page.threads.showAll(),
    k: () => this.page.keep(),
    n: () => this.page.step(1),
    p: () => this.page.step(-1),
  };
}
