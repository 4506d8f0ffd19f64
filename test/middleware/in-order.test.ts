import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { describe, expect, test } from 'vitest'
import { createTimeline, type Timeline } from '../../src/audit/timeline.ts'
import { inOrder, stage } from '../../src/middleware/in-order.ts'

type Variables = { log: string[]; 'portcullis.timeline': Timeline }

const onError = (error: Error, c: Context) => c.text(`caught ${error.message}`, 500)

/** Records when it is entered and left, and the error that it sees when it is left. */
const around =
  (name: string): MiddlewareHandler =>
  async (c, next) => {
    c.get('log').push(`${name} in`)
    await next()
    c.get('log').push(`${name} out ${c.res.status} ${c.error?.message ?? '-'}`)
    c.header(`X-${name}`, 'was here')
  }

const plain =
  (name: string): MiddlewareHandler =>
  (c, next) => {
    c.get('log').push(name)
    return next()
  }

const atOnce: MiddlewareHandler = () => {
  throw new Error('at once')
}
const later: MiddlewareHandler = async () => {
  await Promise.resolve()
  throw new Error('later')
}
const afterwards: MiddlewareHandler = async (_, next) => {
  await next()
  throw new Error('afterwards')
}
const twice: MiddlewareHandler = async (_, next) => {
  await next()
  await next()
}
const answer: MiddlewareHandler = async (c) => c.text(`at ${c.req.param('id')}`)
const answerAtOnce: MiddlewareHandler = (c) => c.text('at once') as never
const answerToo: MiddlewareHandler = async (c, next) => {
  await next()
  return c.text('too late')
}
const nothing: MiddlewareHandler = async () => {}
const noError: MiddlewareHandler = () => {
  throw 'no error'
}

/** Returns the response to a request and the recorded steps. */
async function outcomeOf(add: (app: Hono<{ Variables: Variables }>) => unknown) {
  const log: string[] = []
  const app = new Hono<{ Variables: Variables }>()
  app.onError(onError)
  app.use((c, next) => {
    c.set('log', log)
    return next()
  })
  add(app)
  try {
    const response = await app.request('/things/7')
    const headers = Object.fromEntries(response.headers)
    return { log, status: response.status, headers, body: await response.text() }
  } catch (thrown) {
    return { log, thrown: String(thrown) }
  }
}

describe('inOrder behaves like Hono', () => {
  test.each<readonly [string, readonly MiddlewareHandler[]]>([
    ['no error', [around('A'), plain('b'), around('C'), plain('d'), answer]],
    ['only plain middleware', [plain('a'), plain('b'), answer]],
    ['an answer without a promise', [around('A'), answerAtOnce]],
    ['a refusal at once', [around('A'), plain('b'), atOnce, answer]],
    ['a refusal later', [around('A'), plain('b'), around('C'), later, answer]],
    ['the first one refuses', [atOnce, answer]],
    ['the last one refuses', [around('A'), around('B'), later]],
    ['a refusal after the response', [around('A'), afterwards, around('C'), answer]],
    ['a refusal after a refusal', [around('A'), afterwards, plain('c'), atOnce]],
    ['next is called twice', [around('A'), twice, plain('c'), answer]],
    ['a second response', [around('A'), answerToo, answer]],
    ['no response', [around('A'), plain('b')]],
    ['a middleware that neither answers nor calls next', [around('A'), nothing, answer]],
    ['a thrown value that is not an Error', [around('A'), plain('b'), noError]],
  ])('%s', async (_, middlewares) => {
    const byHono = await outcomeOf((app) => app.on('GET', ['/things/:id'], ...middlewares))
    const byUs = await outcomeOf((app) => app.get('/things/:id', inOrder(middlewares, onError)))
    const [before, behind] = [middlewares.slice(0, 1), middlewares.slice(1)]
    const inTwo = await outcomeOf((app) => {
      app.use('*', inOrder(before, onError))
      app.get('/things/:id', inOrder(behind, onError))
    })
    expect(byUs).toEqual(byHono)
    if (before[0] !== atOnce) expect(inTwo).toEqual(byHono)
  })
})

test('stages without a wait between them share a reading of the clock, and others read it again', async () => {
  let nowMs = 0
  const timeline = createTimeline(() => nowMs++)
  const wait: MiddlewareHandler = async (_, next) => {
    await Promise.resolve()
    await next()
  }
  const go: MiddlewareHandler = (_, next) => next()
  await outcomeOf((app) => {
    app.use((c, next) => {
      c.set('portcullis.timeline', timeline)
      return next()
    })
    app.get(
      '/things/:id',
      inOrder(
        [stage('a', go), go, stage('b', go), stage('c', wait), stage('d', go), stage('e', answer)],
        onError,
      ),
    )
  })
  expect(timeline.durations(10)).toEqual({ a: 0, b: 0, c: 1, d: 0, e: 9 })
})

test('a stage after a wait between two chains reads the clock', async () => {
  const go: MiddlewareHandler = (_, next) => next()
  for (const chain of [[stage('b', answer)], [go, stage('b', answer)]]) {
    let nowMs = 0
    const timeline = createTimeline(() => nowMs++)
    await outcomeOf((app) => {
      app.use((c, next) => {
        c.set('portcullis.timeline', timeline)
        return next()
      })
      app.use(inOrder([stage('a', go)], onError))
      app.use(async (_, next) => {
        await Promise.resolve()
        await next()
      })
      app.get('/things/:id', inOrder(chain, onError))
    })
    expect(timeline.durations(10)).toEqual({ a: 1, b: 9 })
  }
})

test('a stage answers as usual without a timeline', async () => {
  const { status, body } = await outcomeOf((app) =>
    app.get('/things/:id', inOrder([stage('a', plain('a')), stage('b', answer)], onError)),
  )
  expect([status, body]).toEqual([200, 'at 7'])
})
