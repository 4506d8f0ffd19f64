/** The OpenFGA of this machine, where there is one. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { freePort } from '../../harness/process.ts'

/** Whether `openfga` is on the path (`go install github.com/openfga/openfga/cmd/openfga@latest`). */
export const hasOpenfga = spawnSync('openfga', ['version']).status === 0

export interface OpenfgaServer {
  readonly url: string
  /** Makes a store with the model and tuples, and gives their ids. */
  store(model: object, tuples: readonly object[]): Promise<{ store: string; model: string }>
  write(store: string, change: object): Promise<void>
  stop(): Promise<void>
}

/** Starts one that keeps its tuples in memory, with AuthZEN below each store, and asks for `token`. */
export async function startOpenfga(token: string): Promise<OpenfgaServer> {
  const port = await freePort()
  const child = spawn(
    'openfga',
    [
      ...['run', '--datastore-engine=memory', `--http-addr=127.0.0.1:${port}`],
      ...[`--grpc-addr=127.0.0.1:${await freePort()}`, '--playground-enabled=false'],
      ...['--metrics-enabled=false', '--experimentals=authzen', '--log-level=error'],
      ...['--authn-method=preshared', `--authn-preshared-keys=${token}`],
    ],
    { stdio: 'ignore' },
  )
  const url = `http://127.0.0.1:${port}`
  await listening(url, child)

  async function post<Answer>(path: string, body: object): Promise<Answer> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    const response = await fetch(url + path, init)
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as Answer
  }

  return {
    url,
    async store(model, tuples) {
      const { id } = await post<{ id: string }>('/stores', { name: 'portcullis' })
      const { authorization_model_id } = await post<{ authorization_model_id: string }>(
        `/stores/${id}/authorization-models`,
        model,
      )
      for (let start = 0; start < tuples.length; start += 100)
        await post(`/stores/${id}/write`, {
          writes: { tuple_keys: tuples.slice(start, start + 100) },
        })
      return { store: id, model: authorization_model_id }
    },
    async write(store, change) {
      await post(`/stores/${store}/write`, change)
    },
    async stop() {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
}

async function listening(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error('openfga stopped')
    try {
      if ((await fetch(`${url}/healthz`)).ok) return
    } catch {
      // Not yet.
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
