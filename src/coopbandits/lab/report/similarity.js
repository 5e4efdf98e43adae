// What did agents take each other to be worth? Maps of K_z, and its course over time.

const NOT_HEARD = 255;
// Dark to light in even steps of lightness; below 0 it turns red.
const STOPS = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];
const BELOW = [190, 40, 60];

function colourOf(level) {
  const value = (level - 100) / 100;
  if (value < 0) return mixed(STOPS[0], BELOW, -value);
  const place = value * (STOPS.length - 1), floor = Math.min(STOPS.length - 2, Math.floor(place));
  return mixed(STOPS[floor], STOPS[floor + 1], place - floor);
}

const mixed = (one, other, share) => one.map((channel, i) => Math.round(channel + (other[i] - channel) * share));

/** Unpack what matrices.py packed. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function paint(canvas, levels, rows) {
  canvas.width = canvas.height = rows;
  const pen = canvas.getContext("2d"), image = pen.createImageData(rows, rows);
  levels.forEach((level, place) => {
    if (level !== NOT_HEARD) image.data.set([...colourOf(level), 255], 4 * place);
  });
  pen.putImageData(image, 0, 0);
}

let latest = 0; // unpacking takes a moment; what was asked for last is what is shown

async function drawMaps(host, maps, hidden, onPoint) {
  const mine = (latest += 1);
  if (!("DecompressionStream" in window)) {
    host.replaceChildren(emptyNote("The maps need a newer browser."));
    return;
  }
  const given = [{ policy: null, map: maps.truth }, ...maps.learnt.filter(({ policy }) => !hidden.has(policy))];
  const levels = await Promise.all(given.map(({ map }) => unpacked(map)));
  if (mine !== latest) return;
  const figures = given.map(({ policy }, place) => {
    const name = policy === null ? "truth" : nameOf(policy);
    const canvas = make("canvas", {
      role: "img", "aria-label": described(name, levels[place]),
      onpointermove: (event) => onPoint(pointed(event, canvas)),
      onpointerleave: () => onPoint(""),
    });
    paint(canvas, levels[place], maps.rows);
    return make("figure", { "data-series": policy }, make("figcaption", {}, policy === null ? null : swatch(policy), make("span", {}, name)), canvas);
  });
  host.replaceChildren(...figures);

  function pointed(event, canvas) {
    const box = canvas.getBoundingClientRect();
    const place = (distance, size) => Math.max(0, Math.min(maps.rows - 1, Math.floor((distance / size) * maps.rows)));
    const row = place(event.clientY - box.top, box.height), column = place(event.clientX - box.left, box.width);
    const shown = given.map(({ policy }, i) => {
      const level = levels[i][row * maps.rows + column];
      return `${policy === null ? "truth" : nameOf(policy)} ${level === NOT_HEARD ? "not heard" : grouped((level - 100) / 100, 2)}`;
    });
    const agent = (at) => maps.order[Math.floor((at * maps.agents) / maps.rows)];
    const who = maps.rows === maps.agents ? `Agent ${agent(row)} of agent ${agent(column)}` : `Agents around ${agent(row)} of those around ${agent(column)}`;
    return `${who}: ${shown.join(" · ")}`;
  }
}

function described(name, levels) {
  const heard = [...levels].filter((level) => level !== NOT_HEARD);
  const mean = heard.reduce((sum, level) => sum + level, 0) / (heard.length || 1);
  const part = grouped((100 * heard.length) / (levels.length || 1), 0);
  return `Map of K_z, ${name}: mean ${grouped((mean - 100) / 100, 2)} over the ${part}% of pairs that are heard`;
}

function drawRamp(host) {
  const ramp = make("canvas", { "aria-hidden": "true" });
  ramp.width = 101;
  ramp.height = 1;
  const pen = ramp.getContext("2d");
  for (let level = 0; level <= 100; level += 1) {
    pen.fillStyle = `rgb(${colourOf(100 + level).join(" ")})`;
    pen.fillRect(level, 0, 1, 1);
  }
  host.replaceChildren("0", ramp, "1", make("span", { class: "blank" }), "not heard");
}

/** Lines of mean worth: alike full, strangers dotted. */
function worthLines(series) {
  return series.filter((one) => one.worth.length).flatMap((one) => [
    { policy: one.policy, y: one.worth.map((row) => row[1]), dash: null, kind: "alike" },
    { policy: one.policy, y: one.worth.map((row) => row[2]), dash: "2 4", kind: "strangers" },
  ]);
}
