/** Open event streams: what a request costs beside them. */

import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { bearing, orders } from '../load/questions.ts'
import { oursWith, startOnNode } from '../node/contestants.ts'
import { contestantOf } from './policies.ts'
import type { Subject } from './table.ts'

/** Descriptors of a stream in the gateway: its client and its origin. */
const PER_STREAM = 2
/** Descriptors that a process needs for everything else. */
const OTHERS = 500
const OPENING = 100

/** Returns the soft limit of open descriptors, which child processes have as well. */
function descriptorLimit(): number {
  const [, limit] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit)
}

/** Opens one stream. Resolves when its first bytes have arrived. */
function open(url: string, token: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = get(`${url}/streams`, { agent, headers: bearing(token) }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`a stream got ${response.statusCode}`))
      response.once('data', () => resolve())
      response.on('error', () => {})
      response.resume()
    })
    request.on('error', reject)
  })
}

export const streams: Subject = {
  id: 'streams',
  title: 'open streams',
  sizes: [10, 100, 1_000, 10_000],
  obstacle(size) {
    const needed = size * PER_STREAM + OTHERS
    const limit = descriptorLimit()
    return needed > limit ? `needs ${needed} descriptors, of which ${limit} are allowed` : undefined
  },
  async start(stage, size) {
    const { onProgress, shutdown, connections, tokens } = stage
    const started = await startOnNode(stage, oursWith('streams', size), stage)
    const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY })
    shutdown.defer(async () => agent.destroy())
    onProgress(`opening ${size.toLocaleString('en')} streams`)
    for (let opened = 0; opened < size; opened += OPENING)
      await Promise.all(
        Array.from({ length: Math.min(OPENING, size - opened) }, (_, at) =>
          open(started.url, tokens.writers[at % tokens.writers.length] ?? '', agent),
        ),
      )
    return contestantOf(started, orders('read', tokens.writers), connections)
  },
}
