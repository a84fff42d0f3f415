// In the head of Perfetto's page.

reportSeen(async (seen) => {
  await bench.until('the trace is loaded', () => {
    const said = document.querySelector('.pf-modal-dialog')?.innerText;
    if (said) throw new Error(said.slice(0, 300));
    return window.app?.trace && !window.app.isLoadingTrace;
  });
  const { trace } = window.app;
  // Rows are asked for in a frame, and an answer asks for the next frame.
  const isIdle = () => !trace.engine.numRequestsPending && !window.raf.hasPendingRedraws;
  const settled = async () => {
    await bench.frame();
    for (let idle = 0, since = 0; idle < 2;) {
      await bench.frame();
      [idle, since] = isIdle() ? [idle + 1, idle ? since : performance.now()] : [0, 0];
      if (idle === 2) return since;
    }
  };
  (trace.currentWorkspace ?? trace.workspace).flatTracks.forEach((track) => track.expand());
  window.raf.scheduleFullRedraw();
  await bench.pause(1000);
  await settled();
  seen.loaded = performance.now() - 1000;
  const { start } = trace.traceInfo;
  const { timeline } = trace;
  seen.canvases = document.querySelectorAll('canvas').length;
  Object.assign(seen, await bench.zoom(5, 80, (direction, place) => timeline.zoomVisibleWindow(Math.exp(0.2 * direction), place)));
  seen.lasts = [];
  for (const [from, to] of VIEWS) {
    const asked = performance.now();
    timeline.setViewportTime(start + BigInt(from), start + BigInt(to));
    seen.lasts.push(await settled() - asked);
  }
});
