
// For a recording of which only some chunks were read. The others are read as soon as the page zooms in.
let page;
const begin = Page.prototype.start;
Page.prototype.start = function () {
  page = this;
  begin.call(this);
};
watch(async (seen) => {
  const status = () => byId('status').textContent;
  await until('there is a draft', () => page?.picture && status().includes('estimated'));
  await until('it is drawn', () => document.documentElement.dataset.ready);
  await wait();
  seen.draft = status();
  seen.ready = document.documentElement.dataset.ready;
  const canvas = byId('picture');
  const line = canvas.getContext('2d').getImageData(0, 1, canvas.width, 1).data;
  const ground = theme().ground;
  seen.marked = ground.some((part, n) => line[4 * (canvas.width >> 1) + n] !== part);
  const box = byId('stage').getBoundingClientRect();
  const [clientX, clientY] = [box.left + box.width / 2, box.top + 34 + 18 + 8];
  byId('stage').dispatchEvent(new PointerEvent('pointermove', { clientX, clientY }));
  seen.tip = byId('tip').textContent;
  for (let times = 0; times < 40; times++) {
    press('w');
    await wait();
  }
  await settled();
  seen.exact = status();
  seen.unread = page.picture.unread.length;
  seen.isDraft = page.picture.isDraft;
});
