// Observations on their way: dots that move along edges, hop by hop, and rings where they arrive.

import { draw } from "./marks.js";

export const MOST_DOTS = 60;
const HOP_MS = 650, RING_MS = 700, FLASH_MS = 900, TAIL = 0.28;
const RINGS_APART_MS = 220;

/**
 * Move dots on a layer of an SVG.
 *
 * place: name -> [x, y], asked again in every frame, as the picture may change its size.
 */
export class Travel {
  constructor(layer, place) {
    this.layer = layer;
    this.place = place;
    this.moving = new Set();
    this.frame = 0;
    this.ringed = new Map();
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
  }

  /** Let a record go along a path of sites; without motion, where the reader wants none. */
  go(path, kind) {
    const full = document.hidden || this.moving.size >= MOST_DOTS;
    if (full || path.some((name) => !this.place(name))) return;
    if (path.length < 2) {
      this.ring(path[0], kind);
      return;
    }
    if (this.still.matches) {
      const line = draw("polyline", { class: `flash ${kind}` });
      this.add({ node: line, begin: performance.now(), length: FLASH_MS, path, kind, show: showFlash });
      return;
    }
    const tail = draw("line", { class: "tail" }), dot = draw("circle", { class: "dot", r: 5 });
    const node = draw("g", { class: kind }, tail, dot);
    const length = HOP_MS * (path.length - 1);
    this.add({ node, begin: performance.now(), length, path, kind, show: showDot });
  }

  /** Draw a ring that grows around a site. */
  ring(name, kind) {
    const now = performance.now(), key = `${kind} ${name}`;
    const soon = now - (this.ringed.get(key) ?? -Infinity) < RINGS_APART_MS;
    if (document.hidden || soon || this.moving.size >= 2 * MOST_DOTS || !this.place(name)) return;
    if (this.ringed.size > 500) this.ringed.clear();
    this.ringed.set(key, now);
    const node = draw("circle", { class: `ring ${kind}` });
    this.add({ node, begin: now, length: RING_MS, path: [name], kind, show: showRing });
  }

  add(one) {
    this.layer.append(one.node);
    this.moving.add(one);
    if (!this.frame) this.frame = requestAnimationFrame((now) => this.step(now));
  }

  step(now) {
    this.frame = 0;
    for (const one of [...this.moving]) {
      const share = Math.max(0, (now - one.begin) / one.length);
      const points = one.path.map((name) => this.place(name));
      if (share < 1 && points.every(Boolean)) {
        one.show(one, share, points, this.still.matches);
        continue;
      }
      one.node.remove();
      this.moving.delete(one);
      if (one.path.length > 1) this.ring(one.path.at(-1), one.kind);
    }
    if (this.moving.size && !this.frame) this.frame = requestAnimationFrame((next) => this.step(next));
  }
}

function showDot({ node, path }, share, points) {
  const hop = Math.min(path.length - 2, Math.floor(share * (path.length - 1)));
  const part = eased(share * (path.length - 1) - hop);
  const [x, y] = between(points[hop], points[hop + 1], part);
  const [tailX, tailY] = between(points[hop], points[hop + 1], Math.max(0, part - TAIL));
  const [tail, dot] = node.children;
  dot.setAttribute("cx", x);
  dot.setAttribute("cy", y);
  for (const [key, value] of Object.entries({ x1: tailX, y1: tailY, x2: x, y2: y })) tail.setAttribute(key, value);
}

function showRing({ node }, share, [[x, y]], still) {
  node.setAttribute("cx", x);
  node.setAttribute("cy", y);
  node.setAttribute("r", still ? 18 : 10 + 18 * share);
  node.setAttribute("opacity", still ? 0.8 : 1 - share);
}

function showFlash({ node }, share, points) {
  node.setAttribute("points", points.map((point) => point.join(",")).join(" "));
}

const eased = (part) => part * part * (3 - 2 * part);
const between = ([ax, ay], [bx, by], part) => [ax + (bx - ax) * part, ay + (by - ay) * part];
