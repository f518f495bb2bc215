/** Lets so many through at once; the others wait in the order in which they came. */
export class Gate {
  readonly #waiting: (() => void)[] = [];

  constructor(private free: number) {}

  async pass<T>(f: () => Promise<T>): Promise<T> {
    if (this.free > 0) this.free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await f();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.free++;
    }
  }
}
