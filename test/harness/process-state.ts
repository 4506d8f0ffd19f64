/**
 * Runs beside each quick file. Fails a file that leaves the process changed, because other files run in it later:
 * functions, the clock, variables and listeners. Vitest restores only spies.
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

const readState = () => {
  const state = new Map<string, unknown>([['the working directory', process.cwd()]])
  for (const [place, target, names] of FUNCTIONS)
    for (const name of names) state.set(`${place}.${name}`, Reflect.get(target, name))
  for (const name of EVENTS) state.set(`listeners of ${name}`, process.listeners(name as 'warning'))
  for (const [name, value] of Object.entries(process.env)) state.set(`process.env.${name}`, value)
  return state
}

const before = readState()

afterAll(() => {
  if (expect.getState().testPath?.endsWith('.slow.test.ts') === true) return
  const hasFakeTimers = vi.isFakeTimers()
  vi.useRealTimers()
  vi.restoreAllMocks()
  const after = readState()
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (name) => !isDeepStrictEqual(before.get(name), after.get(name)),
  )
  const all = [...(hasFakeTimers ? ['fake timers'] : []), ...changed]
  if (all.length > 0)
    throw new Error(`the file did not restore: ${all.join(', ')}; do it in afterEach or afterAll`)
})
