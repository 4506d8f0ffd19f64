/** One direction of a connection: holds bytes for as long as the current fault requires. */
import type { Socket } from 'node:net'
import type { LastingFault } from './fault.ts'

/** If more bytes are held, the sender must wait. */
const MAX_HELD_BYTES = 1_048_576
/** Interval between the pieces of a throttled response. */
const TICK_MS = 20
const MS_PER_SECOND = 1_000

export interface FlowOptions {
  readonly sink: Socket
  fault(): LastingFault
  /** Called after bytes were forwarded. */
  onForwarded(bytes: number): void
  /** Called with true if the sender must wait, and with false if it may continue. */
  onPressure(isTooMuch: boolean): void
  /** Called when the fault breaks the connection in the middle of a response. */
  onBreak(by: 'reset' | 'truncate'): void
  /** Returns the delay of data that arrives now, in milliseconds. */
  delayMs(): number
}

export interface Flow {
  push(data: Buffer): void
  /** Marks the end of the data. The sink is ended after the held bytes. */
  end(): void
  /** Begins a new exchange: resets the byte count. */
  restart(): void
  isHolding(): boolean
  /** Re-evaluates the held bytes, for example after the fault has changed. */
  pump(): void
  /** Discards the held bytes and clears the timer. */
  stop(): void
}

/** Creates a flow. Bytes leave in the order of their arrival, whatever the fault is. */
export function createFlow(options: FlowOptions): Flow {
  const { sink } = options
  let held: { readonly data: Buffer; readonly dueMs: number }[] = []
  let heldBytes = 0
  let sentBytes = 0
  let isEnding = false
  let isStopped = false
  let isFull = false
  let timer: NodeJS.Timeout | undefined

  sink.on('drain', () => {
    isFull = false
    pump()
  })

  function later(ms: number): void {
    timer ??= setTimeout(() => {
      timer = undefined
      pump()
    }, ms)
  }

  /**
   * Returns how many bytes of the first piece may leave now. If 0, a timer or an event calls again.
   */
  function allowed(dueMs: number, length: number): number {
    const fault = options.fault()
    switch (fault.kind) {
      case 'hang':
        return 0
      case 'latency': {
        const waitMs = dueMs - performance.now()
        if (waitMs <= 0) return length
        later(waitMs)
        return 0
      }
      case 'throttle':
        if (timer !== undefined) return 0
        later(TICK_MS)
        return Math.min(length, Math.ceil((fault.bytesPerSecond * TICK_MS) / MS_PER_SECOND))
      case 'reset':
      case 'truncate':
        return Math.min(length, fault.afterBytes - sentBytes)
      default:
        return length
    }
  }

  function pump(): void {
    for (let first = held[0]; first !== undefined && !isFull && !isStopped; first = held[0]) {
      const count = allowed(first.dueMs, first.data.length)
      if (count > 0) {
        const rest = first.data.subarray(count)
        held.splice(0, 1, ...(rest.length > 0 ? [{ ...first, data: rest }] : []))
        heldBytes -= count
        sentBytes += count
        options.onForwarded(count)
        isFull = !sink.write(first.data.subarray(0, count))
      }
      const { kind } = options.fault()
      if (count < first.data.length) {
        if (kind !== 'reset' && kind !== 'truncate') break
        options.onBreak(kind)
        return
      }
    }
    options.onPressure(heldBytes > MAX_HELD_BYTES)
    if (isEnding && held.length === 0 && !isStopped) sink.end()
  }

  return {
    push(data) {
      if (isStopped) return
      held.push({ data, dueMs: performance.now() + options.delayMs() })
      heldBytes += data.length
      pump()
    },
    end() {
      isEnding = true
      pump()
    },
    restart() {
      sentBytes = 0
    },
    isHolding: () => held.length > 0,
    pump() {
      clearTimeout(timer)
      timer = undefined
      pump()
    },
    stop() {
      isStopped = true
      clearTimeout(timer)
      held = []
    },
  }
}
