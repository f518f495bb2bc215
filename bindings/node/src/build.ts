import type { BuildEvent, Image } from "./contract.js";
import { Feed, type Source } from "./feed.js";

/** What an image is built of, and how. Paths are those of this host. */
export interface BuildOptions {
  /** The directory whose files the recipe may copy; none if left out. */
  context?: string;
  /** The text of the recipe. */
  recipe?: string;
  /** The file of the recipe, where `recipe` is left out; the file Dockerfile of the context if this is left out too. */
  recipe_path?: string;
  /** What the image is called; a name that is made of its id if left out. */
  name?: string;
  /** The stage that becomes the image; the last one if left out. */
  target?: string;
  /** The values for ARG. */
  args?: Record<string, string>;
  /** Carry out every step. */
  no_cache?: boolean;
  /** Give the commands no network. */
  no_network?: boolean;
  /** How long each command may take; an hour if left out. */
  timeout_ms?: number;
  /** Of each box. */
  cpus?: number;
  memory_mib?: number;
}

/** Where the events of a {@link Build} come from, and what comes of it. */
export interface BuildSource extends Source<BuildEvent> {
  /** Waits for the end, and drops events that were not read. */
  wait(): Promise<Image>;
}

/**
 * A build of an image. `for await` reads its events as they come: the last one is of the type "end", and has the image
 * or the error. While nobody reads or waits, the build waits. `await using`, or `close`, ends a build that goes on: what
 * its steps have made stays for the next one.
 */
export class Build extends Feed<BuildEvent> {
  readonly #source: BuildSource;

  constructor(source: BuildSource) {
    super("build", source);
    this.#source = source;
  }

  /** Waits for the end, and returns the image. Events that were not read are dropped. Fails as the build does. */
  async result(): Promise<Image> {
    return this.#source.wait();
  }
}
