/** A user with a browser that follows redirects, keeps cookies for each server, and runs no script. */
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'

/** Where the browser arrived. */
export interface Page {
  readonly url: string
  readonly status: number
  readonly text: string
}

const MAX_REDIRECTS = 15

export function createUser() {
  const jars = new Map<string, Map<string, string>>()

  async function visit(url: string, form?: URLSearchParams): Promise<Page> {
    let current = new URL(url)
    let body = form
    for (let hop = 0; hop < MAX_REDIRECTS; hop++) {
      const jar = jars.get(current.origin) ?? new Map<string, string>()
      jars.set(current.origin, jar)
      const cookie = [...jar].map((pair) => pair.join('=')).join('; ')
      const response = await send(current, cookie, body)
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      for (const line of response.headers['set-cookie'] ?? []) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
        if (value === '' || /;\s*max-age=0/i.test(line)) jar.delete(name)
        else jar.set(name, value)
      }
      const { location } = response.headers
      if (location === undefined)
        return { url: current.href, status: response.statusCode ?? 0, text }
      current = new URL(location, current)
      body = undefined
    }
    throw new Error(`more than ${MAX_REDIRECTS} redirects: ${current.href}`)
  }

  return {
    visit,
    /** Sends the first form of a page with its hidden fields. */
    submit({ url, text }: Page): Promise<Page> {
      const action = /<form[^>]* action="([^"]*)"/.exec(text)?.[1] ?? ''
      const fields = text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)
      const body = new URLSearchParams(
        [...fields].map(([, name = '', value = '']) => [name, value]),
      )
      return visit(new URL(action, url).href, body)
    },
  }
}

/** Sends the request of a navigation: a page, or a form of the same origin. */
function send(
  url: URL,
  cookie: string,
  body: URLSearchParams | undefined,
): Promise<IncomingMessage> {
  const headers = {
    Accept: 'text/html',
    Cookie: cookie,
    'Sec-Fetch-Mode': 'navigate',
    'Sec-Fetch-Dest': 'document',
    'Sec-Fetch-Site': body === undefined ? 'none' : 'same-origin',
    ...(body && { 'Content-Type': 'application/x-www-form-urlencoded' }),
  }
  return new Promise((resolve, reject) => {
    const sent = request(
      url.href,
      { method: body === undefined ? 'GET' : 'POST', headers },
      resolve,
    )
    sent.on('error', reject).end(body?.toString())
  })
}
