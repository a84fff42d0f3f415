// In the head of speedscope's page. It shows one thread at a time, and nothing outside of it can choose a
// stretch of time, so it is only zoomed.

reportSeen(async (seen) => {
  window.alert = (why) => { seen.alert = String(why); };
  await bench.until('the profile is loaded', () => {
    if (seen.alert) throw new Error(seen.alert);
    const said = document.body?.innerText ?? '';
    if (said.includes('went wrong')) throw new Error(said.slice(0, 300));
    return document.title !== 'speedscope' && document.querySelectorAll('canvas').length > 1;
  });
  await bench.frame();
  seen.loaded = performance.now();
  const area = ({ clientWidth, clientHeight }) => clientWidth * clientHeight;
  const [canvas] = [...document.querySelectorAll('canvas')].filter((canvas) => canvas.closest('body > div'))
    .map((canvas) => canvas.parentElement).sort((one, other) => area(other) - area(one)).slice(0, 1);
  Object.assign(seen, await bench.zoom(5, 80, (direction, place) => {
    const box = canvas.getBoundingClientRect();
    const at = { clientX: box.left + place * box.width, clientY: box.top + box.height / 2 };
    canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: 8 * direction, ctrlKey: true, ...at, bubbles: true, cancelable: true }));
  }));
});
