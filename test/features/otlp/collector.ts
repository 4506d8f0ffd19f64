/** A collector of traces: accepts OTLP/HTTP, and answers as a test defines. */
import { startHttpServer } from '../../harness/http-server.ts'

export interface CollectedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly traceState?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly { readonly key: string; readonly value: object }[]
  readonly status: { readonly code?: number }
}

export interface Collected {
  readonly url: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
  readonly spans: readonly CollectedSpan[]
}

/** Sets the response to the next exports. */
export interface Answer {
  readonly status: number
  readonly body: string
}

const ACCEPTED: Answer = { status: 200, body: '{}' }

export async function startCollector() {
  const received: Collected[] = []
  let answer: Answer | 'never' = ACCEPTED
  const server = await startHttpServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    received.push({
      url: request.url ?? '',
      headers: request.headers,
      body,
      spans: JSON.parse(body).resourceSpans[0].scopeSpans[0].spans,
    })
    if (answer === 'never') return
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body)
  })
  return {
    url: server.url,
    received,
    setAnswer(next: Answer | 'never') {
      answer = next
    },
    close: () => server.close(),
  }
}

/** Returns attributes as an object; numbers as numbers. */
export const attributesOf = ({ attributes }: CollectedSpan): Record<string, string | number> =>
  Object.fromEntries(
    attributes.map(({ key, value }) => {
      const { stringValue, intValue } = value as { stringValue?: string; intValue?: string }
      return [key, stringValue ?? Number(intValue)]
    }),
  )
