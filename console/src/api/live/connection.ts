// One WebSocket for the whole console. It comes back by itself and goes on where it was: `since` names the last
// position, so that nothing is missed in between.
import { waitBefore } from "./backoff";
import { readFrame, type Frame } from "./frames";

export type LiveState = "connecting" | "live" | "reconnecting" | "offline";

// The server beats every 15 seconds; two missed beats and a bit mean that the server is gone.
const SILENCE_MS = 35_000;
// From then on the page says "offline" in place of "reconnecting".
const OFFLINE_AFTER_ATTEMPTS = 4;

export interface Listener {
  onFrame: (frame: Frame) => void;
  onState: (state: LiveState) => void;
  /** The stream ended before it began: perhaps the session is over, which a WebSocket cannot tell. */
  onRefused: () => void;
}

export class LiveConnection {
  private socket: WebSocket | undefined;
  private position: string | undefined;
  private attempt = 0;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private stopped = false;

  constructor(private readonly listener: Listener) {}

  start(): void {
    this.stopped = false;
    window.addEventListener("online", this.tryNow);
    window.addEventListener("offline", this.onOffline);
    document.addEventListener("visibilitychange", this.onVisible);
    this.listener.onState("connecting");
    this.open();
  }

  stop(): void {
    this.stopped = true;
    window.removeEventListener("online", this.tryNow);
    window.removeEventListener("offline", this.onOffline);
    document.removeEventListener("visibilitychange", this.onVisible);
    clearTimeout(this.retry);
    clearTimeout(this.silence);
    this.socket?.close();
  }

  readonly tryNow = (): void => {
    if (this.socket && this.socket.readyState <= WebSocket.OPEN) return;
    clearTimeout(this.retry);
    this.attempt = 0;
    this.open();
  };

  private readonly onVisible = (): void => {
    if (document.visibilityState === "visible") this.tryNow();
  };

  private readonly onOffline = (): void => {
    this.listener.onState("offline");
    this.socket?.close();
  };

  private open(): void {
    if (this.stopped) return;
    const socket = new WebSocket(streamAddress(this.position));
    let greeted = false;
    this.socket = socket;
    this.listenForSilence(socket);
    socket.onmessage = (message: MessageEvent<string>) => {
      if (socket !== this.socket) return;
      this.listenForSilence(socket);
      const frame = readFrame(message.data);
      if (!frame) return;
      this.position = frame.position;
      if (frame.type === "hello") {
        greeted = true;
        this.attempt = 0;
        this.listener.onState("live");
      }
      this.listener.onFrame(frame);
    };
    socket.onclose = () => {
      if (socket !== this.socket || this.stopped) return;
      clearTimeout(this.silence);
      if (!greeted) this.listener.onRefused();
      this.comeBack();
    };
  }

  private comeBack(): void {
    const lost = !navigator.onLine || this.attempt >= OFFLINE_AFTER_ATTEMPTS;
    this.listener.onState(lost ? "offline" : "reconnecting");
    this.retry = setTimeout(() => this.open(), waitBefore(this.attempt, Math.random()));
    this.attempt += 1;
  }

  private listenForSilence(socket: WebSocket): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => socket.close(), SILENCE_MS);
  }
}

function streamAddress(since: string | undefined): string {
  const address = new URL("/api/v1/stream", window.location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  address.searchParams.set("kinds", "pool,allocation,tenant,provider,activity");
  if (since !== undefined) address.searchParams.set("since", since);
  return address.href;
}
