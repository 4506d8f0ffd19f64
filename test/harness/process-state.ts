/**
 * Runs beside each quick file. Fails a file that leaves the process changed, because other files run in it later:
 * functions, the clock, variables, listeners, child processes and servers. Vitest restores only spies.
 */
import { isDeepStrictEqual } from 'node:util'
import { afterAll, expect, vi } from 'vitest'

const FUNCTIONS: readonly (readonly [name: string, target: object, names: readonly string[]])[] = [
  [
    'globalThis',
    globalThis,
    [
      ...['fetch', 'Request', 'Response', 'WebSocket', 'Date', 'DecompressionStream', 'crypto'],
      ...['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate'],
    ],
  ],
  ['console', console, ['log', 'warn', 'error', 'info', 'debug']],
  ['Date', Date, ['now']],
  ['Math', Math, ['random']],
  ['JSON', JSON, ['parse', 'stringify']],
  ['crypto', crypto, ['getRandomValues', 'randomUUID']],
  ['crypto.subtle', crypto.subtle, ['digest', 'sign', 'verify', 'importKey', 'generateKey']],
  ['process', process, ['exit', 'cwd', 'kill', 'emitWarning', 'exitCode']],
  ['process.stdout', process.stdout, ['write']],
  ['process.stderr', process.stderr, ['write']],
]
/** Packages add listeners of signals when they are first imported. */
const EVENTS = ['uncaughtException', 'unhandledRejection', 'warning'] as const
/** What a file opens and must close: names of Node's resources that keep a process running. */
const RESOURCES = { PROCESSWRAP: 'child processes', TCPSERVERWRAP: 'servers' } as const
/** Whatever ends behind the last test of a file has ended by then. */
const CLOSED_WITHIN_MS = 20_000
const POLL_MS = 50

function open(): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const type of process.getActiveResourcesInfo())
    if (type in RESOURCES) counts[type] = (counts[type] ?? 0) + 1
  return counts
}

const readState = () => {
  const state = new Map<string, unknown>([['the working directory', process.cwd()]])
  for (const [place, target, names] of FUNCTIONS)
    for (const name of names) state.set(`${place}.${name}`, Reflect.get(target, name))
  for (const name of EVENTS) state.set(`listeners of ${name}`, process.listeners(name as 'warning'))
  for (const [name, value] of Object.entries(process.env)) state.set(`process.env.${name}`, value)
  return state
}

const before = readState()
const openBefore = open()

afterAll(async () => {
  if (expect.getState().testPath?.endsWith('.slow.test.ts') === true) return
  const hasFakeTimers = vi.isFakeTimers()
  vi.useRealTimers()
  vi.restoreAllMocks()
  const after = readState()
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (name) => !isDeepStrictEqual(before.get(name), after.get(name)),
  )
  const isLeft = (type: string) => (open()[type] ?? 0) > (openBefore[type] ?? 0)
  const untilMs = performance.now() + CLOSED_WITHIN_MS
  while (Object.keys(RESOURCES).some(isLeft) && performance.now() < untilMs)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  const left = Object.entries(RESOURCES).flatMap(([type, name]) => (isLeft(type) ? [name] : []))
  const all = [...(hasFakeTimers ? ['fake timers'] : []), ...changed, ...left]
  if (all.length > 0) throw new Error(`the file leaves to the next one: ${all.join(', ')}`)
})
