// What the server said last: the document of /api/v1/state, kept up to date by the changes of /api/v1/stream.

const KEPT = 200; // events and allocations, each

export class Store {
  constructor() {
    this.cluster = null;
    this.ranges = [];
    this.serviceRanges = [];
    this.pools = new Map();
    this.nodes = new Map();
    this.services = new Map();
    this.events = new Map();
    this.allocations = [];
  }

  /** Take in a whole document. */
  replace(state) {
    this.cluster = state.cluster;
    this.ranges = state.ranges;
    this.serviceRanges = state.serviceRanges;
    this.pools = new Map(state.pools.map((pool) => [pool.name, pool]));
    this.nodes = new Map(state.nodes.map((node) => [node.name, node]));
    this.services = new Map(state.services.map((service) => [service.address, service]));
    this.events = new Map(state.events.map((event) => [event.id, event]));
    this.allocations = state.allocations.slice(-KEPT);
  }

  /**
   * Take in a change. Returns what it did: names of what changed, and for nodes and Services [before, after], of which
   * one may be undefined.
   */
  apply(change) {
    for (const whole of ["cluster", "ranges", "serviceRanges"]) {
      if (change[whole]) this[whole] = change[whole];
    }
    const done = {
      cluster: Boolean(change.cluster),
      ranges: Boolean(change.ranges || change.serviceRanges),
      pools: merge(this.pools, change.pools, "name"),
      nodes: merge(this.nodes, change.nodes, "name"),
      services: merge(this.services, change.services, "address"),
      activity: Boolean(change.events || change.allocations),
    };
    for (const event of change.events ?? []) {
      this.events.delete(event.id);
      this.events.set(event.id, event);
    }
    for (const id of this.events.keys()) {
      if (this.events.size <= KEPT) break;
      this.events.delete(id);
    }
    if (change.allocations) this.allocations = [...this.allocations, ...change.allocations].slice(-KEPT);
    return done;
  }
}

function merge(map, delta, key) {
  const done = [];
  for (const name of delta?.gone ?? []) {
    if (map.has(name)) done.push([map.get(name), undefined]);
    map.delete(name);
  }
  for (const item of delta?.set ?? []) {
    done.push([map.get(item[key]), item]);
    map.set(item[key], item);
  }
  return done;
}
