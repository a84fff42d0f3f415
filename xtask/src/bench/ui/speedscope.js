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
  const wheel = (deltaY, place) => {
    const at = { clientX: place * innerWidth, clientY: 0.4 * innerHeight };
    const more = { deltaY, ctrlKey: true, ...at, bubbles: true, cancelable: true };
    document.elementFromPoint(at.clientX, at.clientY).dispatchEvent(new WheelEvent('wheel', more));
  };
  // The overview above shows what part is visible.
  const look = () => [...document.querySelectorAll('canvas')].map((canvas) => canvas.getContext('2d') && canvas.toDataURL()).join();
  const whole = look();
  wheel(-8, 0.3);
  await bench.frame();
  await bench.frame();
  if (look() === whole) throw new Error('the wheel does not zoom');
  Object.assign(seen, await bench.zoom(5, 80, (direction, place) => wheel(8 * direction, place)));
});
