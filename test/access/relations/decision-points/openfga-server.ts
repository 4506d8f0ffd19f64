/** OpenFGA servers: the real one if it is installed, and a recording in every case. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { freePort } from '../../../harness/process.ts'
import { type Exchange, readRecording, startRecorder, startReplay } from './http-recording.ts'

/** The version that the recordings were made with. */
const VERSION = 'v1.22.1'
const INSTALL = `go install github.com/openfga/openfga/cmd/openfga@${VERSION}`
/** Recorded responses of OpenFGA, one file for each test file. */
const recordingOf = (name: string) =>
  join(import.meta.dirname, `../../../vectors/openfga/${name}.jsonl`)

/** Whether `openfga` is on the path. */
const hasOpenfga = spawnSync('openfga', ['version']).status === 0
/** `RECORD_OPENFGA=1` replaces the recordings by the responses of the real server. */
const isRecording = process.env.RECORD_OPENFGA === '1'

export interface OpenfgaServer {
  readonly url: string
  /** Creates a store with the model and the tuples, and returns their ids. */
  store(model: object, tuples: readonly object[]): Promise<{ store: string; model: string }>
  write(store: string, change: object): Promise<void>
  stop(): Promise<void>
}

/** Returns the recording of a test file. */
export const openfgaRecording = (name: string) => readRecording(recordingOf(name))

/**
 * Returns the servers that a test file compares with: always the recording `name`, and the real one
 * if it is installed. `token` is the key that the server accepts. To record again after a change of
 * the requests or of OpenFGA, install it as in `INSTALL` and run `RECORD_OPENFGA=1 npx vitest run
 * --project parts test/access/relations/decision-points`.
 */
export function openfgaServers(name: string, token: string) {
  const file = recordingOf(name)
  if (isRecording) {
    if (!hasOpenfga) throw new Error(`openfga is not on the path; install it: ${INSTALL}`)
    return [{ server: 'OpenFGA, recorded now', start: () => startRecording(file, token) }]
  }
  return [
    {
      server: `OpenFGA ${VERSION} as recorded`,
      start: () => startRecorded(openfgaRecording(name), token),
    },
    ...(hasOpenfga
      ? [{ server: 'OpenFGA of this machine', start: () => startOpenfga(token) }]
      : []),
  ]
}

/** Starts a server that replays the recording. */
export async function startRecorded(
  recording: readonly Exchange[],
  token: string,
): Promise<OpenfgaServer> {
  const replay = await startReplay(recording, token)
  return { url: replay.url, ...stores(replay.url, token), stop: () => replay.close() }
}

async function startRecording(file: string, token: string): Promise<OpenfgaServer> {
  const openfga = await startOpenfga(token)
  const recorder = await startRecorder(file, { target: openfga.url, token })
  async function stop() {
    await recorder.close()
    await openfga.stop()
  }
  return { url: recorder.url, ...stores(recorder.url, token), stop }
}

/** Starts a server with tuples in memory, and AuthZEN below each store. */
async function startOpenfga(token: string): Promise<OpenfgaServer> {
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
  async function stop() {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  return { url, ...stores(url, token), stop }
}

/** Administration of stores over the HTTP API. */
function stores(url: string, token: string): Pick<OpenfgaServer, 'store' | 'write'> {
  async function post<Answer>(path: string, body: object): Promise<Answer> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    const response = await fetch(url + path, init)
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as Answer
  }

  return {
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
  }
}

async function listening(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error('openfga stopped')
    try {
      if ((await fetch(`${url}/healthz`)).ok) return
    } catch {
      // Not ready yet.
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
