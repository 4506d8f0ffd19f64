/**
 * Sends bursts to a gateway under `workerd serve` beside busy loops: `node bench/bursts/run.ts [bursts] [requests]`. Redis
 * works, and its REST server is a process of its own. Prints for 0, 1, 2 and 4 loops how many requests of each burst got
 * 503, and how long the slowest step of the pipeline took, as the gateway measured it.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createShutdown } from '../../dev/start/shutdown.ts'
import { type Question, read } from '../load/questions.ts'
import { startVariants } from '../stack/gateway.ts'

const [bursts = 20, requests = 200] = process.argv.slice(2).map(Number)
const LOOPS = [0, 1, 2, 4] as const
/** Longer than a breaker stays open, so that each burst begins with a closed one. */
const REST_MS = 6_000
const WARM_UP_BURSTS = 10

interface Answer {
  readonly status: number
  readonly ms: number
  /** Duration of the longest stage by `Server-Timing`, with its name. */
  readonly stage: readonly [name: string, ms: number]
}

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

function send(url: string, { method, path, headers }: Question): Promise<Answer> {
  const startMs = performance.now()
  return new Promise((resolve, reject) => {
    const target = `${url}${path}`
    request(target, { agent, method, headers: { ...headers } }, (response) => {
      response.resume().on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          ms: performance.now() - startMs,
          stage: longestOf(String(response.headers['server-timing'] ?? '')),
        }),
      )
    })
      .on('error', reject)
      .end()
  })
}

/** The origin is not a part of the pipeline, and the whole request is not a stage. */
const NO_STAGES = new Set(['proxy', 'total'])

function longestOf(timing: string): Answer['stage'] {
  let longest: Answer['stage'] = ['none', 0]
  for (const [, name = '', ms] of timing.matchAll(/([\w-]+);dur=([\d.]+)/g))
    if (!NO_STAGES.has(name) && Number(ms) > longest[1]) longest = [name, Number(ms)]
  return longest
}

const burst = (url: string, questions: readonly Question[]) =>
  Promise.all(
    Array.from({ length: requests }, (_, n) => {
      const question = questions[n % questions.length]
      if (question === undefined) throw new Error('no callers')
      return send(url, question)
    }),
  )

const shutdown = createShutdown(1)
const directory = mkdtempSync(join(tmpdir(), 'portcullis-bursts-'))
shutdown.defer(async () => rmSync(directory, { recursive: true }))
const gateway = await startVariants({ directory, shutdown, onProgress: () => {} }, ['gateway'])
const url = gateway.urlOf('gateway')
const callers = await gateway.mint(50, { roles: ['writer', 'operator'] })
const questions = callers.map(({ credential }) => read(credential))
for (let n = 0; n < WARM_UP_BURSTS; n += 1) await burst(url, questions)

for (const loops of LOOPS) {
  const busy = Array.from({ length: loops }, () => spawn(process.execPath, ['-e', 'for(;;);']))
  shutdown.defer(async () => busy.forEach((loop) => void loop.kill('SIGKILL')))
  let refused = 0
  const with503: string[] = []
  let slowest: Answer = { status: 0, ms: 0, stage: ['none', 0] }
  for (let n = 1; n <= bursts; n += 1) {
    const answers = await burst(url, questions)
    const unavailable = answers.filter(({ status }) => status === 503)
    const others = answers.filter(({ status }) => status !== 503 && status !== 200)
    if (others.length > 0) throw new Error(`a response with status ${others[0]?.status}`)
    for (const one of answers) if (one.stage[1] > slowest.stage[1]) slowest = one
    refused += unavailable.length
    if (unavailable.length === 0) continue
    const longest = Math.max(...unavailable.map(({ stage }) => stage[1]))
    with503.push(`burst ${n}: ${unavailable.length}, longest stage of these ${longest} ms`)
    await sleep(REST_MS)
  }
  for (const loop of busy) loop.kill('SIGKILL')
  const [stage, ms] = slowest.stage
  console.log(
    `${loops} busy loops: 503 in ${with503.length} of ${bursts} bursts of ${requests}, ${refused} in all; ` +
      `longest stage ${stage} ${ms} ms, of a ${slowest.status} after ${Math.round(slowest.ms)} ms`,
  )
  for (const line of with503) console.log(`  ${line}`)
}
await shutdown.exit(0)
