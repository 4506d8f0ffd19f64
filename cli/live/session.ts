/** The keys of `npm start`, `portcullis dev` and `serve --pretty`. */

import { openInBrowser } from './browser.ts'
import { type KeyAction, keyHelp, listenToKeys } from './keys.ts'
import type { Ready } from './live.ts'

export interface SessionOptions {
  readonly ready: Ready
  /** Returns an access token for the demonstration. Undefined: this gateway has no keys here. */
  readonly token?: (() => Promise<string>) | undefined
  /** Loads the policy again. */
  reload(): unknown
  quit(): void
  readonly signal: AbortSignal
  readonly print: (line: string) => void
}

/** Reads keys from stdin if it and stdout are a terminal, and says so. Otherwise nothing reads from stdin. */
export function startSession(options: SessionOptions): void {
  const { ready, token, reload, quit, signal, print } = options
  if (!process.stdout.isTTY) return
  const actions: readonly KeyAction[] = [
    { key: 'r', does: 'load the policy again', run: reload },
    ...(token === undefined
      ? []
      : [
          {
            key: 't',
            does: 'print a line that assigns an access token',
            run: () => printToken(token),
          },
        ]),
    { key: 'o', does: 'open the console in the browser', run: openConsole },
    { key: 'q', does: 'quit', run: quit },
    { key: 'h', does: 'show these keys', run: () => print(keyHelp(actions)) },
  ]

  async function printToken(create: () => Promise<string>): Promise<void> {
    const text = await create().then(
      (value) => `TOKEN=${value}`,
      (error: Error) => `portcullis: ${error.message}`,
    )
    print(text)
  }

  async function openConsole(): Promise<void> {
    const { console: page } = ready
    if (page === undefined) {
      print('portcullis: the policy has no console(); see docs/console.md')
      return
    }
    const isOpen = await openInBrowser(page)
    print(isOpen ? `portcullis: opening ${page}` : `portcullis: no browser was found; open ${page}`)
  }

  if (listenToKeys({ input: process.stdin, actions, quit, signal }))
    print('portcullis: press h to show the keys')
}
