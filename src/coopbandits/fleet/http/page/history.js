// Bounded histories: what the page remembers of what it has seen.

/** Samples in time, at most so many: when it is full, every second one goes. */
export class Series {
  constructor(limit) {
    this.limit = limit;
    this.samples = [];
    this.apart = 0;
  }

  /** Add a sample {at, …}; one that comes too soon after the last two takes the last one's place. */
  push(sample) {
    const { samples } = this;
    if (samples.length > 1 && sample.at - samples.at(-2).at < this.apart) samples.pop();
    samples.push(sample);
    if (samples.length <= this.limit) return;
    const last = samples.length - 1;
    this.samples = samples.filter((_, place) => place % 2 === 0 || place === last);
    this.apart = (sample.at - samples[0].at) / (this.limit / 2);
  }

  clear() {
    this.samples = [];
    this.apart = 0;
  }
}

/** The latest values, at most so many. */
export class Latest {
  constructor(limit) {
    this.limit = limit;
    this.values = [];
  }

  push(value) {
    this.values.push(value);
    if (this.values.length > this.limit) this.values.shift();
  }

  mean() {
    return this.values.length ? this.values.reduce((sum, v) => sum + v, 0) / this.values.length : null;
  }
}
