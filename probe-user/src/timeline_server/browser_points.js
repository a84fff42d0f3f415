
// For a recording with messages, a plot and frame marks.
watch(async (seen) => {
  const stage = byId('stage');
  const tip = byId('tip');
  const hover = async (x, y) => {
    mouse(stage, 'pointermove', x, RULER + y);
    await wait();
  };
  const canvas = byId('picture');
  const pixels = (x, y, width, height) => canvas.getContext('2d').getImageData(x, y, width, height).data;
  const ground = theme().ground;
  const isDrawn = (data, n) => ground.some((part, channel) => data[4 * n + channel] !== part);
  await settled();
  await until('there is room for the plot', () => byId('names').firstChild?.style.top === `${RULER + 46}px`);
  // The whole recording is on the screen: 1,001 ms.
  const x = (ms) => stage.clientWidth * ms / 1001;
  const tops = [...byId('names').children].map((name) => [name.textContent, Number.parseFloat(name.style.top) - RULER]);
  const top = (name) => tops.find(([text]) => text.startsWith(name))[1];
  await hover(x(500), top('other') + 12);
  await until('texts are told', () => tip.textContent.includes('late'));
  seen.message = tip.textContent;
  const level = (place) => [...place.querySelectorAll('.level')].map((tag) => [tag.textContent, tag.style.color]);
  seen.tipLevels = level(tip);
  await hover(x(400), 20);
  seen.plot = tip.textContent;
  await hover(x(250), top('other') + 12);
  seen.mark = tip.textContent;
  clickAt(stage, x(500), RULER + top('other') + 12);
  const panel = byId('panel');
  await until('messages are listed', () => panel.querySelector('table.messages'));
  seen.listed = panel.querySelector('h2').textContent;
  seen.listedLevels = level(panel);
  seen.rows = panel.querySelectorAll('table.messages tr').length;
  await settled();
  // Below the plot's label: the lowest pixel that is drawn at an early and at a late time.
  seen.heights = [430, 900].map((ms) => {
    const column = pixels(Math.round(canvas.width * ms / 1001), 0, 1, 37);
    return Array.from({ length: 37 }, (_, y) => y).filter((y) => y > 14 && isDrawn(column, y)).pop() ?? 0;
  });
  // Below all threads are only the marks.
  const line = pixels(0, canvas.height - 5, canvas.width, 1);
  seen.lines = Array.from({ length: canvas.width }, (_, n) => n).filter((n) => isDrawn(line, n)).length;
  seen.title = document.title;
});
