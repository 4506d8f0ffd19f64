/** Opens a page in the browser of the person at this machine. */
import { spawn } from 'node:child_process'

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ['open'],
  // `start` would read the characters of a URL as commands of the shell.
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}
const OTHERWISE = ['xdg-open'] as const

/** Starts the program of `BROWSER`, or that of the system. Resolves to whether a program was started. */
export function openInBrowser(url: string, env: NodeJS.ProcessEnv = process.env): Promise<boolean> {
  const [program, ...args] = env.BROWSER ? [env.BROWSER] : (OPENERS[process.platform] ?? OTHERWISE)
  return new Promise((resolve) => {
    const child = spawn(program, [...args, url], { detached: true, stdio: 'ignore' })
    child.once('error', () => resolve(false))
    child.once('spawn', () => {
      child.unref()
      resolve(true)
    })
  })
}
