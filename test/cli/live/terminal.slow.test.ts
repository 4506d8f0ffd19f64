/** `portcullis dev` and `serve --pretty` in a pseudo terminal. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { testInLong } from '../../harness/long.ts'
import { freePort } from '../../harness/process.ts'
import {
  hasPseudoTerminal,
  openPseudoTerminal,
  type PseudoTerminal,
} from '../../harness/pseudo-terminal.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { makeNodeProject } from '../../runtimes/node/project.ts'
import { CLI, startCli } from '../command-line.ts'

const policyOf = (more = '') => `
import { definePolicy } from 'portcullis'
export default definePolicy({
  roles: { reader: ['notes:read'] },
  limits: {},
  routes: [
    { method: 'GET', path: '/notes', permission: 'notes:read' },
    ${more}
  ],
})
`
const COMMAND = `${process.execPath} ${CLI}`

describe.runIf(hasPseudoTerminal)('a gateway in a terminal', () => {
  let project: Awaited<ReturnType<typeof makeNodeProject>>
  let redis: TestRedis
  let port: number
  let terminal: PseudoTerminal | undefined

  beforeAll(async () => {
    project = await makeNodeProject(policyOf())
    redis = await startTestRedis()
    port = await freePort()
  })
  afterEach(async () => {
    terminal?.kill()
    await terminal?.ended
    terminal = undefined
  })
  afterAll(async () => {
    await redis?.close()
    await project?.close()
  })

  function open(command: string, more: Record<string, string> = {}): PseudoTerminal {
    const env = {
      PATH: process.env.PATH ?? '',
      TERM: 'xterm-256color',
      PORT: String(port),
      REDIS_URL: redis.redisUrl,
      REDIS_TIMEOUT_MS: '5000',
      ...more,
    }
    terminal = openPseudoTerminal(command, { cwd: project.folder, env })
    return terminal
  }
  const request = (path: string, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers })

  test('dev shows where it is, a line for each decision in colors, and what a saved policy changes', async () => {
    const shown = open(`${COMMAND} dev`)
    const start = await shown.shows(/press h to show the keys/)
    expect(start).toMatch(
      /Portcullis is ready on .*\r\n {2}URL +http:.*\r\n {2}Token +npx portcullis token --subject alice/,
    )
    expect(start).not.toContain('Console')
    expect(Math.max(...start.split('\r\n').map((line) => line.length))).toBeLessThan(200)
    await request('/notes')
    const line = await shown.shows(/\/notes .*missing_token.*\r\n/)
    expect(line).toContain('\u001b[31m401\u001b[39m')
    await request('/%1b%5b31mred')
    expect(await shown.shows(/control.*\r\n/)).not.toContain('\u001b[31mred')

    shown.type('t')
    const [, token = ''] = /TOKEN=(\S+)\r\n/.exec(await shown.shows(/TOKEN=ey\S+\r\n/)) ?? []
    expect((await request('/notes', { authorization: `Bearer ${token}` })).status).toBe(200)
    await shown.shows(/\/notes .*alice.*\r\n/)

    shown.type('o')
    await shown.shows(/the policy has no console\(\)/)
    shown.type('r')
    await shown.shows(/policy: not changed/)
    writeFileSync(
      join(project.folder, 'portcullis.config.ts'),
      policyOf("{ method: 'POST', path: '/notes', permission: 'notes:read' },"),
    )
    await shown.shows(/reader gains POST \/notes/)
    shown.type('q')
    expect(await shown.ended).toBe(0)
  })

  testInLong('Ctrl-C ends dev although keys are read one by one', async () => {
    const shown = open(`${COMMAND} dev`, { NO_COLOR: '1' })
    await shown.shows(/press h/)
    const { length } = shown.text()
    await request('/notes')
    const line = await shown.shows(/missing_token.*\r\n/, length)
    expect(line).not.toContain('\u001b')
    shown.type('\u0003')
    expect(await shown.ended).toBe(0)
  })

  testInLong('serve --pretty has the same lines and keys', async () => {
    const origin = { ORIGIN_URL: 'http://127.0.0.1:9' }
    const own = { PUBLIC_URL: 'https://api.example.com' }
    const shown = open(`${COMMAND} serve --pretty`, { ...origin, ...own })
    expect(await shown.shows(/press h/)).toMatch(/^Portcullis is ready on /m)
    await request('/notes')
    await shown.shows(/\/notes .*missing_token.*\r\n/)
    shown.type('h')
    expect(await shown.shows(/q {2}quit/)).not.toContain('{"level"')
    shown.type('q')
    expect(await shown.ended).toBe(0)
  })

  testInLong(
    'without a terminal nothing is read from stdin, and --json prints each decision as an event',
    async () => {
      const env = { PORT: String(port), REDIS_URL: redis.redisUrl, REDIS_TIMEOUT_MS: '5000' }
      const dev = startCli(['dev', '--json'], { cwd: project.folder, env, input: 'q' })
      await dev.printed(/^\{"url":/m)
      await request('/notes')
      const { stdout } = await dev.printed(/missing_token.*\n/)
      const [, event] = stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
      expect(event).toMatchObject({ level: 'info', decision: 'deny', status: 401, route: '/notes' })
      expect(event).not.toHaveProperty('path')
      dev.kill('SIGTERM')
      expect((await dev.ended).code).toBe(0)
    },
  )
})
