/** A real headless browser for pages on this machine. */
import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']
/** A call needs milliseconds. A browser that is silent for this long is dead. */
const PATIENCE_MS = 45_000
/** The memory limit of pages in megabytes. */
const HEAP_MB = 256

/** The path of the installed browser, or undefined. */
export const CHROMIUM = (process.env.PATH ?? '')
  .split(delimiter)
  .flatMap((folder) => NAMES.map((name) => join(folder, name)))
  .find((file) => {
    try {
      accessSync(file, constants.X_OK)
      return true
    } catch {
      return false
    }
  })

/** An event of a page, in the form of the developer tools' protocol. */
export interface BrowserEvent {
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}

/** One page. */
export interface Page {
  /** The events of this page so far. */
  readonly events: readonly BrowserEvent[]
  /** Calls a method of the developer tools' protocol. */
  send(method: string, params?: object): Promise<Record<string, unknown>>
  /** Returns the value of an expression in the page, as JSON. */
  evaluate<Value>(expression: string): Promise<Value>
}

/** A browser. */
export interface Browser {
  /** Opens an address in a window of `width` × `height` pixels, and waits until it is loaded. */
  open(url: string, width: number, height: number): Promise<Page>
  /** Closes its pages, or ends the processes. */
  close(): Promise<void>
}

/** The program. Its start costs as much as ten pages. */
export interface Chromium extends Browser {
  /** Opens a browser with cookies and a cache of its own, in the same processes. */
  openBrowser(): Promise<Browser>
}

type Answer = { readonly id?: number; readonly sessionId?: string; readonly error?: object } & {
  readonly result?: Record<string, unknown>
} & Partial<BrowserEvent>

/** Starts a browser that is controlled over two pipes, without a port. Needs {@link CHROMIUM}. */
export function startChromium(): Chromium {
  const profile = mkdtempSync(join(tmpdir(), 'portcullis-chromium-'))
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run']
  const calm = ['--disable-background-networking', '--disable-dev-shm-usage', '--hide-scrollbars']
  const bounds = [`--js-flags=--max-old-space-size=${HEAP_MB}`, `--user-data-dir=${profile}`]
  const child = spawn(
    CHROMIUM ?? '',
    ['--remote-debugging-pipe', ...flags, ...calm, ...bounds, 'about:blank'],
    { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], detached: true },
  )
  const ended = new Promise<void>((done) => child.once('exit', () => done()))
  const waiting = new Map<number, (answer: Answer) => void>()
  const pages = new Map<string, BrowserEvent[]>()
  let lastId = 0

  readMessages(child.stdio[4] as Readable, (message) => {
    const { id, sessionId = '', method, params = {} } = message
    if (id !== undefined) waiting.get(id)?.(message)
    else if (method !== undefined) pages.get(sessionId)?.push({ method, params })
  })

  async function send(method: string, params: object = {}, sessionId?: string) {
    const id = ++lastId
    const answered = new Promise<Answer>((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${method}: no answer`)), PATIENCE_MS)
      waiting.set(id, (answer) => {
        clearTimeout(late)
        resolve(answer)
      })
    })
    const pipe = child.stdio[3] as Writable
    pipe.write(`${JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) })}\0`)
    const { error, result = {} } = await answered
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`)
    return result
  }

  const browserOf = (browserContextId?: unknown): Browser => ({
    async open(url, width, height) {
      const target = { url: 'about:blank', browserContextId }
      const { targetId } = await send('Target.createTarget', target)
      const attached = await send('Target.attachToTarget', { targetId, flatten: true })
      const sessionId = attached.sessionId as string
      const events: BrowserEvent[] = []
      pages.set(sessionId, events)
      const page: Page = {
        events,
        send: (method, params) => send(method, params, sessionId),
        async evaluate<Value>(expression: string) {
          const params = { expression, returnByValue: true, awaitPromise: true }
          const { result, exceptionDetails } = await page.send('Runtime.evaluate', params)
          if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
          return (result as { readonly value: Value }).value
        },
      }
      for (const domain of ['Page', 'Runtime', 'Network', 'Log'])
        await page.send(`${domain}.enable`)
      const screen = { width, height, deviceScaleFactor: 1, mobile: false }
      await page.send('Emulation.setDeviceMetricsOverride', screen)
      await page.send('Page.navigate', { url })
      await untilLoaded(page)
      return page
    },
    close: async () => void (await send('Target.disposeBrowserContext', { browserContextId })),
  })

  return {
    ...browserOf(),
    async openBrowser() {
      const { browserContextId } = await send('Target.createBrowserContext')
      return browserOf(browserContextId)
    },
    async close() {
      stop(child)
      await ended
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

async function untilLoaded({ events }: Page): Promise<void> {
  const deadlineMs = Date.now() + PATIENCE_MS
  while (!events.some(({ method }) => method === 'Page.loadEventFired')) {
    if (Date.now() > deadlineMs) throw new Error('the page was not loaded')
    await new Promise((done) => setTimeout(done, 20))
  }
}

function readMessages(pipe: Readable, onMessage: (message: Answer) => void): void {
  let rest = ''
  pipe.setEncoding('utf8').on('data', (chunk: string) => {
    const parts = (rest + chunk).split('\0')
    rest = parts.pop() ?? ''
    for (const part of parts) onMessage(JSON.parse(part) as Answer)
  })
}

/** Kills the process group, because the browser has child processes of its own. */
function stop({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}
