// Asks again for what a change made stale, and not more often than it helps: changes that come together are answered
// together, and the next question about the same thing waits until the last one was answered. Without that, a pool
// that changes all the time would never show anything, as each change would cancel the answer on its way.
import type { Pattern } from "./effects";

export const PAUSE_MS = 100;

/** One thing that is loaded; `ask` asks for it again and ends when the answer is there. */
export interface Loaded {
  id: string;
  ask: () => Promise<unknown>;
}

export class Refresher {
  private readonly waiting = new Map<string, Pattern>();
  private readonly asking = new Set<string>();
  private readonly again = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly loadedUnder: (pattern: Pattern) => Loaded[]) {}

  add(patterns: readonly Pattern[]): void {
    for (const pattern of patterns) this.waiting.set(pattern.join("\n"), pattern);
    this.timer ??= setTimeout(() => this.flush(), PAUSE_MS);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.waiting.clear();
    this.again.clear();
  }

  private flush(): void {
    this.timer = undefined;
    const stale = new Map<string, Loaded>();
    for (const pattern of this.waiting.values()) {
      for (const loaded of this.loadedUnder(pattern)) stale.set(loaded.id, loaded);
    }
    this.waiting.clear();
    for (const loaded of stale.values()) void this.askFor(loaded);
  }

  private async askFor(loaded: Loaded): Promise<void> {
    if (this.asking.has(loaded.id)) {
      this.again.add(loaded.id);
      return;
    }
    this.asking.add(loaded.id);
    do {
      this.again.delete(loaded.id);
      await loaded.ask().catch(() => undefined);
    } while (this.again.has(loaded.id));
    this.asking.delete(loaded.id);
  }
}
