// Behind the page's own main.js.

reportSeen(async (seen) => {
  let page;
  let drawn = () => {};
  let came = 0;
  const { start: begin, draw, status } = Page.prototype;
  const { arrayBuffer } = Response.prototype;
  Page.prototype.start = function () {
    page = this;
    begin.call(this);
  };
  // From the bytes of an answer to its picture.
  Response.prototype.arrayBuffer = async function () {
    const bytes = await arrayBuffer.call(this);
    came = performance.now();
    return bytes;
  };
  Page.prototype.status = function () {
    status.call(this);
    if (came) bench.add(performance.now() - came);
    came = 0;
  };
  Page.prototype.draw = function () {
    draw.call(this);
    drawn();
  };
  const ready = () => bench.until('all is there', () => document.documentElement.dataset.ready === 'true');
  await bench.until('the page begins', () => page);
  await bench.until('there is a picture', () => page.picture);
  seen.first = performance.now();
  await ready();
  seen.loaded = performance.now();
  seen.rows = page.rows.visible(page.view.scroll, page.height).length;

  const wheel = (deltaY, place) => {
    const box = page.stage.getBoundingClientRect();
    const at = { clientX: box.left + place * box.width, clientY: box.top + box.height / 2 };
    page.stage.dispatchEvent(new WheelEvent('wheel', { deltaY, ...at, bubbles: true, cancelable: true }));
  };
  Object.assign(seen, await bench.zoom(5, 80, (direction, place) => wheel(60 * direction, place)));

  page.all();
  await bench.frame();
  await ready();
  const ask = window.fetch;
  window.fetch = (what, options) => String(what).startsWith('api/picture')
    ? new Promise((_, no) => options.signal.addEventListener('abort', () => no(options.signal.reason)))
    : ask(what, options);
  const kept = page.picture;
  const look = () => {
    const { canvas, painter, rows, view, height } = page;
    const ratio = canvas.height / height;
    const lines = rows.visible(view.scroll, height).slice(0, 10);
    const pixels = (row) => painter.context.getImageData(0, Math.round((row.y + 8) * ratio), canvas.width, 1).data;
    return lines.map((row) => String.fromCharCode(...pixels(row))).join();
  };
  let before = look();
  [seen.held, seen.moved] = [30, 0];
  for (let n = 0; n < seen.held; n++) {
    wheel(-30, 0.4);
    await bench.frame();
    const now = look();
    if (page.picture === kept && now !== before) seen.moved++;
    before = now;
  }
  window.fetch = ask;
  page.asking?.abort();
  page.all();
  await bench.frame();
  await ready();

  [seen.firsts, seen.lasts] = [[], []];
  for (const [from, to] of VIEWS) {
    const kept = page.picture;
    const asked = performance.now();
    let first = 0;
    const done = new Promise((resolve) => {
      drawn = () => {
        if (page.picture === kept) return;
        first ||= performance.now();
        if (!page.asking) resolve(performance.now());
      };
    });
    page.view.show(from, to);
    page.change();
    const last = await Promise.race([done, bench.pause(20000)]);
    drawn = () => {};
    if (!last) throw new Error('a picture does not come');
    seen.firsts.push(first - asked);
    seen.lasts.push(last - asked);
  }
});
