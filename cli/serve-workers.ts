/** `portcullis serve --workers`: a primary process starts the workers, which share the port. */
import cluster, { type Worker } from 'node:cluster'
import { setTimeout as wait } from 'node:timers/promises'
import type { Server } from '../src/runtimes/node/index.ts'
import { REFUSED } from './failure.ts'
import type { Log } from './server-log.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** The delay of a restart doubles with each worker that ended in the last minute. */
const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 30_000
const MEMORY_MS = 60_000
/** A worker that does not answer for so long is killed. */
const RELOAD_MS = 30_000

/** What the primary sends to a worker. */
type Order = 'stop' | 'certificate' | { readonly reload: string; readonly audited: boolean }
/** What a worker sends when it listens, and after an order to reload. */
type Ready = Pick<Server, 'url'>
type Reloaded = { readonly reloaded: boolean }

/** A server that can replace its policy: see `policyReload`. */
export interface SwitchingServer extends Server {
  reloadPolicy(by: string, audited?: boolean): Promise<boolean>
}

/** Serves in a worker until the primary stops it. Ends this process. */
export async function serveInWorker(serve: () => Promise<SwitchingServer>): Promise<never> {
  // A terminal and systemd send signals to all processes. Only the primary acts on them.
  for (const signal of SIGNALS) process.on(signal, () => {})
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>()
  const started = serve()
  process.on('message', async (order: Order) => {
    if (order === 'stop') return stop()
    const server = await started
    if (order === 'certificate') return await server.reloadCertificate()
    const reloaded = await server.reloadPolicy(order.reload, order.audited)
    process.send?.({ reloaded } satisfies Reloaded)
  })
  const server = await started
  process.send?.({ url: server.url } satisfies Ready)
  await stopped
  await server.close()
  process.exit(0)
}

/**
 * Starts workers until a signal, and a new one for each that ends. A worker that cannot start at the
 * beginning ends all, with its exit code. Resolves when all listen, to the function that reloads the policy
 * in all workers, one after the other. A signal ends this process, with 0 if all workers ended in order.
 *
 * `prepare` returns a function as `policyReload` does, which calls `use` if the primary could load the policy.
 */
export async function superviseWorkers(
  count: number,
  log: Log,
  prepare: (use: () => Promise<void>) => SwitchingServer['reloadPolicy'],
): Promise<(by: string) => Promise<void>> {
  // Workers accept connections themselves. With the default, a connection that the primary passes to a
  // worker that is killed at this moment is never answered.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  let isReady = false
  let isStopping = false
  let ends: readonly number[] = []

  const workers = () =>
    Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
  // A worker that has just ended gets no order.
  const order = (text: Order) => workers().map((worker) => worker.send(text, () => {}))
  const kill = () => workers().map((worker) => worker.process.kill('SIGKILL'))

  async function startAgain(): Promise<void> {
    const now = performance.now()
    ends = [...ends.filter((at) => now - at < MEMORY_MS), now]
    await wait(Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (ends.length - 1)))
    if (isStopping) return
    const worker = cluster.fork()
    worker.once('message', () => log('info', 'a worker is ready', { worker: worker.process.pid }))
  }

  let exitCode = 0
  cluster.on('exit', ({ process: { pid } }, code: number | null, signal: string | null) => {
    if (!isReady && !isStopping) {
      kill()
      process.exit(code || REFUSED)
    }
    if (!isStopping || code !== 0) log('error', 'a worker ended', { worker: pid, code, signal })
    if (!isStopping) return void startAgain()
    if (code !== 0) exitCode = REFUSED
    exitIfAlone()
  })

  function exitIfAlone(): void {
    if (workers().length > 0) return
    log('info', 'stopped')
    process.exit(exitCode)
  }

  function stop(signal: string): void {
    if (isStopping) {
      kill()
      process.exit(REFUSED)
    }
    isStopping = true
    log('info', 'stopping', { signal })
    order('stop')
    exitIfAlone()
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)

  let by = ''
  const reloadPolicy = prepare(async () => {
    const all = workers()
    const refusing: Worker[] = []
    let used = 0
    for (const worker of all) {
      if (await reloaded(worker, { reload: by, audited: used === 0 })) used += 1
      else refusing.push(worker)
    }
    if (used === 0) throw new Error('no worker could use the new one')
    if (refusing.length === 0) return
    // Two policies must not stay in use.
    for (const worker of refusing) worker.send('stop' satisfies Order, () => {})
    log('error', `policy: ${used} of ${all.length} workers use the new one; the others restart`, {
      by,
      workers: refusing.map((worker) => worker.process.pid),
    })
  })
  let last: Promise<unknown> = Promise.resolve()
  function reload(cause: string): Promise<void> {
    const result = last.then(async () => {
      by = cause
      await reloadPolicy(cause)
    })
    last = result
    return result
  }
  process.on('SIGHUP', () => {
    order('certificate')
    void reload('SIGHUP')
  })

  for (let started = 0; started < count && !isStopping; started += 1) {
    // One after the other, so that a reason that concerns all is reported once.
    const { url } = await new Promise<Ready>((ready) => cluster.fork().once('message', ready))
    if (started === count - 1) log('info', `Portcullis is ready on ${url}`, { url, workers: count })
  }
  isReady = true
  return reload
}

/**
 * Resolves to whether a worker uses the new policy. One that ends loads it when it starts again. One that does
 * not answer in time is killed, and does not delay later changes.
 */
function reloaded(worker: Worker, order: Order): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      worker.process.kill('SIGKILL')
      finish(false)
    }, RELOAD_MS)
    worker.on('message', answered)
    worker.once('exit', ended)
    worker.send(order, (error) => error && finish(true))
    function answered(message: Partial<Reloaded>): void {
      if (message.reloaded !== undefined) finish(message.reloaded)
    }
    function ended(): void {
      finish(true)
    }
    function finish(isUsed: boolean): void {
      clearTimeout(timer)
      worker.off('message', answered)
      worker.off('exit', ended)
      resolve(isUsed)
    }
  })
}
