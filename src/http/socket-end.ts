/** Reports the end of WebSockets to the stages that a request has passed. */

const listeners = new WeakMap<object, () => void>()

/** Calls `ended` when the WebSocket of a 101 response ends. A runtime may not report each end. */
export function onSocketEnd(upgraded: Response, ended: () => void): void {
  listeners.set(upgraded, ended)
}

export function reportSocketEnd(upgraded: object): void {
  listeners.get(upgraded)?.()
}
