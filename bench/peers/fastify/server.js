/**
 * Fastify as a gateway, with each plugin used as in its README. It runs in the directory of its
 * packages and reads its settings from the environment.
 */
import fastifyJwt from '@fastify/jwt'
import rateLimit from '@fastify/rate-limit'
import replyFrom from '@fastify/reply-from'
import Fastify from 'fastify'

const { PORT, ORIGIN_URL, ISSUER, PUBLIC_KEY, LIMIT } = process.env

const fastify = Fastify()
await fastify.register(fastifyJwt, {
  secret: { public: PUBLIC_KEY },
  verify: {
    algorithms: ['ES256'],
    allowedIss: ISSUER,
    allowedAud: ISSUER,
    checkTyp: 'at+jwt',
    cache: true,
  },
})
await fastify.register(rateLimit, {
  max: Number(LIMIT),
  timeWindow: '1 minute',
  hook: 'preHandler',
  keyGenerator: (request) => request.user.sub,
})
await fastify.register(replyFrom, { base: ORIGIN_URL, undici: true })

fastify.addHook('onRequest', (request) => request.jwtVerify())

const querystring = {
  type: 'object',
  properties: {
    cursor: { type: 'string' },
    limit: { type: 'integer', minimum: 1, maximum: 100 },
  },
}
fastify.get('/orders', { schema: { querystring } }, (request, reply) => {
  if (!request.user.roles?.includes('writer')) return reply.code(403).send()
  return reply.from(request.raw.url, {
    rewriteRequestHeaders: (_request, { authorization: _token, ...headers }) => ({
      ...headers,
      'x-auth-subject': request.user.sub,
    }),
  })
})

await fastify.listen({ host: '127.0.0.1', port: Number(PORT) })
