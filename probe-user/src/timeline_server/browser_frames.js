
// For a recording of 1,001 ms with a frame mark each 250 ms.
watch(async (seen) => {
  const panel = byId('panel');
  await settled();
  byId('frame-marks').click();
  await until('frames are listed', () => panel.querySelector('table.frames'));
  await settled();
  seen.facts = panel.textContent;
  seen.listed = panel.querySelectorAll('table.frames tr').length;
  const bars = byId('frame-bars');
  const x = (ms, width) => width * ms / 1001;
  const line = bars.getContext('2d').getImageData(0, bars.height - 2, bars.width, 1).data;
  const pixel = (n) => line.slice(4 * n, 4 * n + 3).join();
  seen.bars = [100, 250, 500, 750].map((ms) => {
    const at = Math.round(x(ms, bars.width));
    return [-1, 0, 1].some((by) => pixel(at + by) !== pixel(5));
  });
  mouse(bars, 'pointermove', x(505, bars.clientWidth), 40);
  seen.told = byId('frame-told').textContent;
  mouse(bars, 'click', x(505, bars.clientWidth), 40);
  await settled();
  seen.hash = location.hash;
  byId('frame-budget').value = '249.999999';
  byId('frame-budget').dispatchEvent(new Event('change'));
  await until('the budget is known', () => panel.textContent.includes('over the budget'));
  seen.over = panel.textContent;
  byId('frames-close').click();
  seen.closed = byId('frames').hidden;
});
