/** The description of public calls. */
import * as z from 'zod'
import type { Operation } from './operation.ts'

const PROBLEMS = [405, 500]
const readiness = (status: string) =>
  z.strictObject({
    status: z.literal(status),
    checks: z.record(z.string(), z.enum(['ok', 'failed'])),
    breakers: z.record(z.string(), z.enum(['closed', 'half_open', 'open'])),
  })

function open(
  path: string,
  id: string,
  tag: string,
  summary: string,
  answers: Operation['answers'],
): Operation {
  return { method: 'GET', path, id, tag, summary, answers, problems: PROBLEMS }
}

const json = (description: string, schema: () => z.ZodType) => ({ 200: { description, schema } })

/** Returns the well-known documents, health, and the descriptions themselves. */
export function publicOperations({ issuesTokens }: { readonly issuesTokens: boolean }) {
  return [
    open(
      '/.well-known/jwks.json',
      'jwks',
      'Discovery',
      'Public keys of the gateway',
      json('A JWK Set (RFC 7517).', () => z.looseObject({ keys: z.array(z.looseObject({})) })),
    ),
    open(
      '/.well-known/oauth-protected-resource',
      'protectedResource',
      'Discovery',
      'What the gateway is as a resource',
      json('Metadata (RFC 9728).', () => z.looseObject({ resource: z.string() })),
    ),
    ...(issuesTokens
      ? [
          open(
            '/.well-known/oauth-authorization-server',
            'authorizationServer',
            'Discovery',
            'What the gateway is as an authorization server',
            json('Metadata (RFC 8414).', () => z.looseObject({ issuer: z.string() })),
          ),
        ]
      : []),
    open(
      '/-/healthz',
      'liveness',
      'Health',
      'Does it run?',
      json('It runs.', () => z.strictObject({ status: z.literal('ok') })),
    ),
    open('/-/readyz', 'readiness', 'Health', 'Does it have what it needs?', {
      200: {
        description: 'It has.',
        schema: () => readiness('ready'),
      },
      503: {
        description: 'Something is missing; what, but not why.',
        schema: () => readiness('unready'),
      },
    }),
    open(
      '/-/openapi.json',
      'openapi',
      'Documentation',
      'This document',
      json('OpenAPI 3.1.', () => z.looseObject({ openapi: z.string() })),
    ),
    open('/-/docs', 'docs', 'Documentation', 'This document for people', {
      200: { description: 'A page.', schema: () => z.string(), mediaType: 'text/html' },
    }),
  ] satisfies readonly Operation[]
}
