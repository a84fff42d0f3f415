// Behind the page's own main.js: what the page draws becomes an SVG, by canvases that note down what is drawn.
// Texts have a fixed width, so that the picture does not depend on the fonts of a machine.

reportSeen(async (seen) => {
  const [WIDTH, LETTER] = [1000, 6.6];
  // The part of the recording that is shown: calls with names, and some that are too narrow for one.
  const [FROM, TO] = [0.105, 0.135];
  const short = (number) => String(Math.round(number * 10) / 10);
  const safe = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const text = (x, y, size, colour, what) =>
    `<text x="${short(x)}" y="${short(y)}" font-size="${size}" fill="${colour}">${safe(what)}</text>`;

  /** The part of a canvas that the page uses. */
  class Notes {
    constructor(canvas) {
      [this.canvas, this.parts, this.path, this.clips, this.kept] = [canvas, [], '', '', []];
      [this.globalAlpha, this.textBaseline] = [1, 'middle'];
    }

    #part(name, attributes) {
      const faded = this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : '';
      this.parts.push(`<${name} ${attributes}${faded}/>`);
    }

    setTransform() {}

    fillRect(x, y, width, height) {
      // The ground of all begins a new picture.
      if (width >= this.canvas.width && height >= this.canvas.height) this.parts = [];
      const box = [x, y, width, height].map(short);
      this.#part('rect', `x="${box[0]}" y="${box[1]}" width="${box[2]}" height="${box[3]}" fill="${this.fillStyle}"`);
    }

    /** A line of pixels: each run of a colour is a rectangle, all of a colour are a path. */
    drawImage(lines, _x, line, width, _height, left, top, _width, tall) {
      const { data } = lines.getContext('2d').getImageData(0, line, width, 1);
      const paths = new Map();
      const colour = (x) => data[4 * x + 3] && `rgb(${data[4 * x]},${data[4 * x + 1]},${data[4 * x + 2]})`;
      for (let x = 0, from = 0; x < width; x = from) {
        while (from < width && colour(from) === colour(x)) from++;
        if (colour(x)) paths.set(colour(x), `${paths.get(colour(x)) ?? ''}M${left + x} ${top}h${from - x}v${tall}h${x - from}z`);
      }
      paths.forEach((path, fill) => this.#part('path', `fill="${fill}" d="${path}"`));
    }

    measureText(what) {
      return { width: what.length * LETTER };
    }

    fillText(what, x, y) {
      const base = this.textBaseline === 'top' ? 9 : 3;
      this.parts.push(text(x, y + base, 11, this.fillStyle, what));
    }

    beginPath() {
      this.path = '';
    }

    moveTo(x, y) {
      this.path += `M${short(x)} ${short(y)}`;
    }

    lineTo(x, y) {
      this.path += `L${short(x)} ${short(y)}`;
    }

    stroke() {
      this.#part('path', `stroke="${this.strokeStyle}" fill="none" d="${this.path}"`);
    }
  }

  const { getContext } = HTMLCanvasElement.prototype;
  const notes = new Map();
  HTMLCanvasElement.prototype.getContext = function (...kind) {
    if (this.id !== 'ruler' && this.id !== 'picture') return getContext.apply(this, kind);
    if (!notes.has(this.id)) notes.set(this.id, new Notes(this));
    return notes.get(this.id);
  };
  let page;
  const { start: begin } = Page.prototype;
  Page.prototype.start = function () {
    page = this;
    const { bottom } = this.rows.tracks.at(-1);
    this.stage.style.cssText = `flex:none;width:${WIDTH}px;height:${RULER + bottom + 8}px`;
    begin.call(this);
  };
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const drawn = async () => {
    do await frame(); while (document.documentElement.dataset.ready !== 'true');
  };
  await drawn();
  page.resized();
  page.view.show(FROM * page.about.length_ns, TO * page.about.length_ns);
  page.change();
  await drawn();
  const { ground, text: ink, dim } = page.painter.theme;
  const [head, height] = [24, RULER + page.height];
  const names = [...byId('names').children].map((name) => {
    const top = Number.parseFloat(name.style.top);
    const [who, more] = [name.firstChild.textContent, name.querySelector('span').textContent];
    return text(6, top + 12, 12, ink, who) + text(14 + who.length * 7.5, top + 12, 12, dim, more);
  });
  const part = (id, top) => `<g transform="translate(0,${top})">\n${notes.get(id).parts.join('\n')}\n</g>`;
  seen.svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${head + height}" width="${WIDTH}" height="${head + height}" font-family="system-ui, sans-serif">`,
    `<rect width="100%" height="100%" fill="rgb(${ground.join(',')})"/>`,
    text(6, 16, 13, ink, byId('program').textContent),
    text(16 + byId('program').textContent.length * 9, 16, 12, dim, byId('status').textContent),
    `<g transform="translate(0,${head})">`,
    part('ruler', 0),
    part('picture', RULER),
    ...names,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
});
