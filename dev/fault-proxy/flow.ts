/** One direction of a connection: bytes wait here as long as the fault of the moment wants. */
import type { Socket } from 'node:net'
import type { LastingFault } from './fault.ts'

/** More makes the sender wait. */
const MAX_HELD_BYTES = 1_048_576
/** How finely a throttled answer is cut. */
const TICK_MS = 20
const MS_PER_SECOND = 1_000

export interface FlowOptions {
  readonly sink: Socket
  fault(): LastingFault
  /** Called when bytes have been handed on. */
  onForwarded(bytes: number): void
  /** Called with what the sender shall do: wait, or go on. */
  onPressure(isTooMuch: boolean): void
  /** Called when the fault breaks the connection in the middle of an answer. */
  onBreak(by: 'reset' | 'truncate'): void
  /** Milliseconds that what arrives now is to be late. */
  delayMs(): number
}

export interface Flow {
  push(data: Buffer): void
  /** No more will come: the sink is ended behind what is still held. */
  end(): void
  /** Another exchange begins: its bytes are counted anew. */
  restart(): void
  isHolding(): boolean
  /** Looks again, for example because the fault has changed. */
  pump(): void
  /** Forgets what is held, and every timer. */
  stop(): void
}

/** Bytes leave in the order they came in, whatever the fault. */
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

  /** How many bytes of the first piece may leave now; 0: none, and a timer or an event calls again. */
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
