// A stress layout of a network: distances on the page follow hops, as far as a plane allows.
//
// Stochastic gradient descent over pairs of sites (Zheng, Pawar and Goodman 2019), seeded by the
// names: the same network is drawn alike after every reload, and on every node's page.

const SWEEPS = 40;
const LAST_STEP = 0.05;
const STRETCH = 1.7;

/** The neighbours of each site. names: unique; edges: pairs of names. */
export function adjacency(names, edges) {
  const neighbours = new Map(names.map((name) => [name, []]));
  for (const [u, v] of edges) {
    if (u === v || !neighbours.has(u) || !neighbours.has(v)) continue;
    neighbours.get(u).push(v);
    neighbours.get(v).push(u);
  }
  for (const [name, list] of neighbours) neighbours.set(name, [...new Set(list)].sort());
  return neighbours;
}

/** A shortest path between two sites that does not lead through a third one; null for none. */
export function pathBetween(neighbours, from, to, without) {
  const before = new Map([[from, null]]), queue = [from];
  for (let head = 0; head < queue.length; head += 1) {
    const site = queue[head];
    if (site === to) {
      const path = [];
      for (let at = to; at !== null; at = before.get(at)) path.unshift(at);
      return path;
    }
    for (const next of neighbours.get(site) || []) {
      if (before.has(next) || next === without) continue;
      before.set(next, site);
      queue.push(next);
    }
  }
  return null;
}

/** Where sites are: name -> [x, y], one hop being about 1 long. */
export function placed(names, edges) {
  const sorted = [...names].sort(), count = sorted.length;
  const hops = hopsBetween(sorted, adjacency(sorted, edges));
  const seed = seedOf(JSON.stringify([sorted, edges.map((edge) => [...edge].sort().join("\n")).sort()]));
  const starts = count <= 60 ? 6 : 1;
  let best = null, least = Infinity;
  for (let start = 0; start < starts; start += 1) {
    const points = descended(hops, count, randomFrom(seed + start));
    const stress = stressOf(points, hops, count);
    if (stress < least) [best, least] = [points, stress];
  }
  return new Map(sorted.map((name, i) => [name, [best[2 * i], best[2 * i + 1]]]));
}

/** Turn and stretch a layout into a frame; the turn is the one that leaves most room. */
export function fitted(places, width, height, margin) {
  const points = [...places.values()];
  const wide = Math.max(1, width - 2 * margin), high = Math.max(1, height - 2 * margin);
  let best = null;
  for (let turn = 0; turn < 36; turn += 1) {
    const c = Math.cos((turn * Math.PI) / 36), s = Math.sin((turn * Math.PI) / 36);
    const turned = points.map(([x, y]) => [c * x - s * y, s * x + c * y]);
    const box = [0, 1].map((axis) => {
      const values = turned.map((point) => point[axis]);
      return [Math.min(...values), Math.max(...values)];
    });
    const across = wide / Math.max(box[0][1] - box[0][0], 1e-9);
    const down = high / Math.max(box[1][1] - box[1][0], 1e-9);
    const room = Math.min(across, down);
    if (!best || room > best.room * 1.001) best = { turned, box, across, down, room };
  }
  // Some stretching makes room for names; more would belie the hops.
  const scale = [Math.min(best.across, STRETCH * best.room), Math.min(best.down, STRETCH * best.room)];
  const middle = best.box.map(([low, above]) => (low + above) / 2);
  const at = (x, y) => [
    width / 2 + (best.room > 1e6 ? 0 : (x - middle[0]) * scale[0]),
    height / 2 + (best.room > 1e6 ? 0 : (y - middle[1]) * scale[1]),
  ];
  return new Map([...places.keys()].map((name, i) => [name, at(...best.turned[i])]));
}

function hopsBetween(names, neighbours) {
  const count = names.length, index = new Map(names.map((name, i) => [name, i]));
  const near = names.map((name) => neighbours.get(name).map((other) => index.get(other)));
  const hops = new Float32Array(count * count).fill(-1);
  let longest = 1;
  for (let from = 0; from < count; from += 1) {
    const queue = [from];
    hops[from * count + from] = 0;
    for (let head = 0; head < queue.length; head += 1) {
      const further = hops[from * count + queue[head]] + 1;
      for (const next of near[queue[head]]) {
        if (hops[from * count + next] >= 0) continue;
        hops[from * count + next] = further;
        longest = Math.max(longest, further);
        queue.push(next);
      }
    }
  }
  return hops.map((value) => (value < 0 ? longest + 1 : value));
}

function descended(hops, count, random) {
  const points = Float64Array.from({ length: 2 * count }, random);
  const pairs = [];
  let longest = 1;
  for (let i = 0; i < count; i += 1) {
    for (let j = 0; j < i; j += 1) {
      pairs.push(i * count + j);
      longest = Math.max(longest, hops[i * count + j]);
    }
  }
  // weights are hops⁻², so steps go from hops² of the farthest down to a small part of one hop
  const first = longest * longest, rate = Math.log(first / LAST_STEP) / Math.max(1, SWEEPS - 1);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const step = first * Math.exp(-rate * sweep);
    for (let k = pairs.length - 1; k > 0; k -= 1) {
      const other = Math.floor(random() * (k + 1));
      [pairs[k], pairs[other]] = [pairs[other], pairs[k]];
    }
    for (const pair of pairs) {
      const i = Math.floor(pair / count), j = pair % count, wanted = hops[pair];
      const dx = points[2 * i] - points[2 * j], dy = points[2 * i + 1] - points[2 * j + 1];
      const length = Math.hypot(dx, dy) || 1e-9;
      const move = (Math.min(1, step / (wanted * wanted)) * (length - wanted)) / (2 * length);
      points[2 * i] -= move * dx;
      points[2 * i + 1] -= move * dy;
      points[2 * j] += move * dx;
      points[2 * j + 1] += move * dy;
    }
  }
  return points;
}

function stressOf(points, hops, count) {
  let sum = 0;
  for (let i = 0; i < count; i += 1) {
    for (let j = 0; j < i; j += 1) {
      const length = Math.hypot(points[2 * i] - points[2 * j], points[2 * i + 1] - points[2 * j + 1]);
      sum += (length / hops[i * count + j] - 1) ** 2;
    }
  }
  return sum;
}

/** FNV-1a, 32 bits. */
function seedOf(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** Mulberry32: numbers in [0, 1). */
function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
