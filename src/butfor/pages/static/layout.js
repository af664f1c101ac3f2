// Positions for a neighbourhood: distances on the page follow distances in the graph. Stress is minimised by stochastic
// gradient descent (Zheng, Pawar and Goodman, 2018), starting from rings around the targets. The order is shuffled by a
// generator of our own, so that the same graph gives the same picture.

const ROUNDS = 30;
// If this share of the nodes was placed before, these hardly move.
const STEADY = 0.8;
// Components that no path joins are this much further apart than the largest distance within one.
const APART = 1.5;
// Nodes are pushed apart until they are this far from each other, in lengths of an edge.
export const CLEARANCE = 0.62;

/** Neighbours of each node. `ends` holds two positions for each line. */
export function adjacency(count, ends) {
  const lists = Array.from({ length: count }, () => []);
  for (let i = 0; i < ends.length; i += 2) {
    lists[ends[i]].push(ends[i + 1]);
    lists[ends[i + 1]].push(ends[i]);
  }
  return lists;
}

/** Hops from the nearest of `sources` to each node; -1 where there is no path. And the node before it on the way. */
export function hops(lists, sources) {
  const distance = new Int32Array(lists.length).fill(-1);
  const before = new Int32Array(lists.length).fill(-1);
  const queue = [...sources];
  for (const node of queue) distance[node] = 0;
  for (let i = 0; i < queue.length; i++) {
    for (const next of lists[queue[i]]) {
      if (distance[next] < 0) {
        distance[next] = distance[queue[i]] + 1;
        before[next] = queue[i];
        queue.push(next);
      }
    }
  }
  return { distance, before, order: queue };
}

/**
 * Two coordinates for each node, in lengths of an edge.
 * `known` may hold coordinates of nodes that were placed before, by position: they stay near them.
 */
export function layout(count, ends, targets, known = new Map()) {
  if (count === 0) return new Float64Array(0);
  const lists = adjacency(count, ends);
  const points = rings(lists, targets.length ? targets : [widest(lists)]);
  const far = Math.max(4, 1.6 * Math.sqrt(count));
  const pairs = [];
  let longest = 1;
  const rows = lists.map((_, node) => hops(lists, [node]).distance);
  for (const row of rows) for (const value of row) longest = Math.max(longest, value);
  for (let i = 0; i < count; i++) {
    for (let j = i + 1; j < count; j++) {
      const between = rows[i][j] < 0 ? longest + APART : rows[i][j];
      const distance = Math.min(between, far);
      pairs.push([i, j, distance, 1 / (distance * distance)]);
    }
  }
  for (const [node, point] of known) points.set(point, 2 * node);
  if (known.size) settle(lists, points, known);
  // Where much is new, what was there moves too.
  descend(points, pairs, known.size >= STEADY * count ? known : new Map());
  push(points, count);
  return points;
}

function widest(lists) {
  return lists.reduce((best, list, node) => (list.length > lists[best].length ? node : best), 0);
}

/** Each node on the ring of its distance, in the sector of the node that it was reached from. */
function rings(lists, roots) {
  const points = new Float64Array(2 * lists.length);
  const { distance, before, order } = hops(lists, roots);
  const leaves = new Float64Array(lists.length).fill(0);
  for (let i = order.length - 1; i >= 0; i--) {
    const node = order[i];
    leaves[node] = Math.max(leaves[node], 1);
    if (before[node] >= 0) leaves[before[node]] += leaves[node];
  }
  const start = new Float64Array(lists.length);
  const used = new Float64Array(lists.length);
  let all = roots.reduce((sum, root) => sum + leaves[root], 0);
  let angle = 0;
  for (const node of order) {
    if (before[node] < 0) {
      start[node] = angle;
      angle += (2 * Math.PI * leaves[node]) / all;
    } else {
      start[node] = start[before[node]] + used[before[node]];
      used[before[node]] += (2 * Math.PI * leaves[node]) / all;
    }
    const turn = start[node] + (Math.PI * leaves[node]) / all + 0.2 * distance[node];
    const radius = roots.length > 1 ? distance[node] + 0.5 : distance[node];
    points[2 * node] = radius * Math.cos(turn);
    points[2 * node + 1] = radius * Math.sin(turn);
  }
  lists.forEach((_, node) => {
    if (distance[node] < 0) points.set([3 + Math.cos(2.4 * node), 3 + Math.sin(2.4 * node)], 2 * node);
  });
  return points;
}

/** New nodes begin beside the known node that they are joined to. */
function settle(lists, points, known) {
  lists.forEach((list, node) => {
    const old = known.has(node) ? undefined : list.find((other) => known.has(other));
    if (old === undefined) return;
    const turn = 2.4 * node;
    points[2 * node] = points[2 * old] + 0.8 * Math.cos(turn);
    points[2 * node + 1] = points[2 * old + 1] + 0.8 * Math.sin(turn);
  });
}

function descend(points, pairs, known) {
  if (!pairs.length) return;
  const random = generator();
  const weights = pairs.map((pair) => pair[3]);
  const first = 1 / weights.reduce((a, b) => Math.min(a, b));
  const last = 0.1 / weights.reduce((a, b) => Math.max(a, b));
  const decay = Math.log(first / last) / (ROUNDS - 1);
  for (let round = known.size ? ROUNDS >> 1 : 0; round < ROUNDS; round++) {
    const rate = first * Math.exp(-decay * round);
    for (let i = pairs.length - 1; i > 0; i--) {
      const other = Math.floor(random() * (i + 1));
      [pairs[i], pairs[other]] = [pairs[other], pairs[i]];
    }
    for (const [i, j, distance, weight] of pairs) {
      let x = points[2 * i] - points[2 * j];
      let y = points[2 * i + 1] - points[2 * j + 1];
      let length = Math.hypot(x, y);
      if (length < 1e-6) [x, y, length] = [1e-3 * Math.cos(i), 1e-3 * Math.sin(i + 1), 1e-3];
      const step = (Math.min(weight * rate, 1) * (length - distance)) / 2 / length;
      const here = known.has(i) ? 0.1 : 1;
      const there = known.has(j) ? 0.1 : 1;
      points[2 * i] -= here * step * x;
      points[2 * i + 1] -= here * step * y;
      points[2 * j] += there * step * x;
      points[2 * j + 1] += there * step * y;
    }
  }
}

/** Push nodes apart that are too close to be told apart. */
function push(points, count) {
  for (let round = 0; round < 40; round++) {
    let moved = false;
    for (let i = 0; i < count; i++) {
      for (let j = i + 1; j < count; j++) {
        const x = points[2 * i] - points[2 * j];
        const y = points[2 * i + 1] - points[2 * j + 1];
        const length = Math.hypot(x, y) || 1e-6;
        if (length >= CLEARANCE) continue;
        const step = (0.5 * (CLEARANCE - length)) / length;
        points[2 * i] += step * x + 1e-4;
        points[2 * i + 1] += step * y;
        points[2 * j] -= step * x;
        points[2 * j + 1] -= step * y;
        moved = true;
      }
    }
    if (!moved) return;
  }
}

/** Random numbers from 0 to 1, the same each time (mulberry32). */
function generator() {
  let state = 7;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
