/**
 * Origins that report which of their handlers a request reached: real servers, and rules behind
 * `node:http`.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { server as hapi } from '@hapi/hapi'
import { Router } from '@koa/router'
import express from 'express'
import express4 from 'express4'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { matches, RULES } from './rules.ts'

/** Patterns in the syntax of the policy, `/api/*` and `/users/:id`, the strict ones first. */
export type Patterns = readonly string[]

export interface RunningOrigin {
  readonly name: string
  readonly url: string
  readonly port: number
  close(): Promise<void>
}

type Start = (patterns: Patterns) => Promise<Omit<RunningOrigin, 'name'>>

async function listen(server: Server): Promise<Omit<RunningOrigin, 'name'>> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

function startExpress(make: typeof express, wildcard: string): Start {
  return (patterns) => {
    const app = make()
    for (const pattern of patterns)
      app.get(pattern.replace('*', wildcard), (_, response) => void response.end(pattern))
    return listen(createServer(app))
  }
}

function startFastify(isLoose: boolean): Start {
  return async (patterns) => {
    const app = fastify({
      routerOptions: { caseSensitive: !isLoose, ignoreTrailingSlash: isLoose },
    })
    for (const pattern of patterns) app.get(pattern, () => pattern)
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    return { url, port: Number(new URL(url).port), close: () => app.close() }
  }
}

function startHapi(isLoose: boolean): Start {
  return async (patterns) => {
    const app = hapi({
      port: 0,
      host: '127.0.0.1',
      router: { isCaseSensitive: !isLoose, stripTrailingSlash: isLoose },
    })
    for (const pattern of patterns) {
      const path = pattern.replace(/:(\w+)/g, '{$1}').replace('*', '{rest*}')
      app.route({ method: 'GET', path, handler: () => pattern })
    }
    await app.start()
    return { url: app.info.uri, port: Number(app.info.port), close: () => app.stop() }
  }
}

const startKoa: Start = (patterns) => {
  const app = new Koa()
  const router = new Router()
  for (const pattern of patterns)
    router.get(pattern.replace('*', '{*rest}'), (context: { body: unknown }) => {
      context.body = pattern
    })
  return listen(createServer(app.use(router.routes()).callback()))
}

/** The router of the gateway itself, as an origin with exact spelling. */
const startHono: Start = (patterns) => {
  const app = new Hono()
  for (const pattern of patterns) app.get(pattern, (c) => c.text(pattern))
  return listen(
    createServer(async ({ url }, response) => {
      const answer = await app.request(`http://origin.test${url}`)
      response.end(await answer.text())
    }),
  )
}

const STARTS: Readonly<Record<string, Start>> = {
  'Express 5': startExpress(express, '*rest'),
  'Express 4': startExpress(express4, '*'),
  Koa: startKoa,
  Fastify: startFastify(false),
  'Fastify, loose': startFastify(true),
  hapi: startHapi(false),
  'hapi, loose': startHapi(true),
  Hono: startHono,
  ...Object.fromEntries(
    RULES.map((rule): [string, Start] => [
      rule.name,
      (patterns) =>
        listen(
          createServer(({ url = '' }, response) => {
            response.end(patterns.find((pattern) => matches(rule, pattern, url)) ?? 'none')
          }),
        ),
    ]),
  ),
}

export const ORIGINS = Object.keys(STARTS)

export async function startOrigins(patterns: Patterns): Promise<readonly RunningOrigin[]> {
  const starts = Object.entries(STARTS)
  return Promise.all(starts.map(async ([name, start]) => ({ name, ...(await start(patterns)) })))
}
