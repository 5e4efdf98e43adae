// A stress layout of a network: distances on the page follow hops, as far as a plane allows.
//
// Stochastic gradient descent over pairs of sites (Zheng, Pawar and Goodman 2019), seeded by the
// names: the same network is drawn alike after every reload, and on every node's page.

const SWEEPS = 40;
const LAST_STEP = 0.05;
const STRETCH = 1.7;
const TURNS = 180;
const LONGEST_HOP = 190; // in pixels: two sites need not fill the page
const APART = 0.8; // between parts that no path joins, in hops

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
  const sorted = [...names].sort(), neighbours = adjacency(sorted, edges);
  return besides(connected(sorted, neighbours).map((part) => laid(part, neighbours)));
}

/** Sites that paths join, the largest set first. */
function connected(sorted, neighbours) {
  const seen = new Set(), parts = [];
  for (const name of sorted) {
    if (seen.has(name)) continue;
    const part = [name];
    seen.add(name);
    for (let head = 0; head < part.length; head += 1) {
      for (const next of neighbours.get(part[head])) {
        if (seen.has(next)) continue;
        seen.add(next);
        part.push(next);
      }
    }
    parts.push(part.sort());
  }
  return parts.sort((a, b) => b.length - a.length);
}

/** Lay out sites that paths join. */
function laid(names, neighbours) {
  const count = names.length, hops = hopsBetween(names, neighbours);
  const seed = seedOf(JSON.stringify(names.map((name) => [name, neighbours.get(name)])));
  const starts = count <= 60 ? 6 : 1;
  let best = null, least = Infinity;
  for (let start = 0; start < starts; start += 1) {
    const points = descended(hops, count, randomFrom(seed + start));
    const stress = stressOf(points, hops, count);
    if (stress < least) [best, least] = [points, stress];
  }
  return new Map(names.map((name, i) => [name, [best[2 * i], best[2 * i + 1]]]));
}

/** Put what no path joins beside the largest part, in columns that are about as high. */
function besides([largest, ...others]) {
  const all = new Map(largest), box = boxOf(largest.values());
  const most = Math.max(box[1][1] - box[1][0], (box[0][1] - box[0][0]) / 2, 1);
  const columns = [];
  for (const part of others) {
    const [[left, right], [low, high]] = boxOf(part.values());
    let column = columns.at(-1);
    if (!column || column.high + high - low > most) {
      column = { high: -APART, wide: 0, parts: [] };
      columns.push(column);
    }
    column.parts.push({ part, left, low: low - column.high - APART });
    column.high += APART + high - low;
    column.wide = Math.max(column.wide, right - left);
  }
  let x = box[0][1] + APART;
  for (const { high, wide, parts } of columns) {
    const y = (box[1][0] + box[1][1] - high) / 2;
    for (const { part, left, low } of parts) {
      for (const [name, point] of part) all.set(name, [x + point[0] - left, y + point[1] - low]);
    }
    x += wide + APART;
  }
  return all;
}

/**
 * Turn and stretch a layout into a frame; the turn is the one that leaves most room.
 *
 * Returns { points, height }: few sites need less height than there is.
 */
export function fitted(places, width, most, margin) {
  const wide = Math.max(1, width - 2 * margin), high = Math.max(1, most - 2 * margin);
  let best = null;
  for (let turn = 0; turn < TURNS; turn += 1) {
    const c = Math.cos((turn * Math.PI) / TURNS), s = Math.sin((turn * Math.PI) / TURNS);
    const turned = [...places.values()].map(([x, y]) => [c * x - s * y, s * x + c * y]);
    const box = boxOf(turned), tall = box[1][1] - box[1][0];
    const across = Math.min(LONGEST_HOP, wide / Math.max(box[0][1] - box[0][0], 1e-9));
    const down = Math.min(LONGEST_HOP, high / Math.max(tall, 1e-9));
    const room = Math.min(across, down);
    const better = !best || room > best.room * 1.001;
    if (better || (room > best.room * 0.999 && tall < best.tall * 0.999)) {
      best = { turned, box, tall, across, down, room };
    }
  }
  // Some stretching makes room for names; more would belie the hops.
  const scale = [Math.min(best.across, STRETCH * best.room), Math.min(best.down, STRETCH * best.room)];
  const middle = best.box.map(([low, above]) => (low + above) / 2);
  const height = Math.min(most, Math.round(best.tall * scale[1] + 2 * margin));
  const at = ([x, y]) => [width / 2 + (x - middle[0]) * scale[0], height / 2 + (y - middle[1]) * scale[1]];
  return { points: new Map([...places.keys()].map((name, i) => [name, at(best.turned[i])])), height };
}

/** [[least x, most x], [least y, most y]] of points. */
function boxOf(points) {
  const all = [...points];
  return [0, 1].map((axis) => {
    const values = all.map((point) => point[axis]);
    return [Math.min(...values), Math.max(...values)];
  });
}

/** Hops between all sites of a connected part. */
function hopsBetween(names, neighbours) {
  const count = names.length, index = new Map(names.map((name, i) => [name, i]));
  const near = names.map((name) => neighbours.get(name).map((other) => index.get(other)));
  const hops = new Float32Array(count * count).fill(-1);
  for (let from = 0; from < count; from += 1) {
    const queue = [from];
    hops[from * count + from] = 0;
    for (let head = 0; head < queue.length; head += 1) {
      const further = hops[from * count + queue[head]] + 1;
      for (const next of near[queue[head]]) {
        if (hops[from * count + next] >= 0) continue;
        hops[from * count + next] = further;
        queue.push(next);
      }
    }
  }
  return hops;
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
