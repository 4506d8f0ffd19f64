/** A feature of one's own: operators freeze the API, and requests that change something are refused until the end. */
import { defineFeature } from 'portcullis/feature'
import * as z from 'zod/mini'

const HOUR_SECONDS = 3_600

/** Returns the feature for the policy's `features`. Needs `operators()`. */
export const changeFreeze = () =>
  defineFeature({
    name: 'changeFreeze',
    requires: ['operators'],
    variables: { CHANGE_FREEZE_CONTACT: z.optional(z.email()) },
    problems: { change_freeze_active: { status: 423, title: 'Change freeze' } },
    metrics: {
      change_freeze_writes_total: {
        help: 'Requests that would change something, by outcome.',
        labels: { outcome: ['passed', 'refused'] },
      },
    },
    auditFields: ['ticket'],
    keys: { ticket: 'the ticket of the freeze; expires with it' },
    operatorCalls: {
      beginChangeFreeze: {
        method: 'PUT',
        path: '/change-freeze',
        permission: 'portcullis:change-freeze:begin',
        summary: 'Freeze the API',
        body: z.strictObject({
          ticket: z.string().check(z.regex(/^[A-Z]{1,8}-\d{1,8}$/)),
          seconds: z.number().check(z.minimum(1), z.maximum(24 * HOUR_SECONDS)),
        }),
        example: { ticket: 'OPS-7', seconds: HOUR_SECONDS },
        response: 'The freeze is in force.',
      },
    },
    routes: {
      readChangeFreeze: {
        method: 'GET',
        path: '/-/change-freeze',
        anonymous: true,
        limits: ['anonymous'],
        summary: 'Whether the API is frozen',
        response: 'The state, and the ticket of a freeze.',
        reply: () => z.strictObject({ frozen: z.boolean(), ticket: z.nullable(z.string()) }),
      },
    },
    create({ variables, redis, key, metrics, refusal, record }) {
      const contact = variables.CHANGE_FREEZE_CONTACT
      const detail = `Nothing can be changed now.${contact ? ` Ask ${contact}.` : ''}`

      async function currentTicket(): Promise<string | null> {
        const [ticket] = await redis(['GET', await key('ticket')])
        return typeof ticket === 'string' ? ticket : null
      }

      return {
        stagesOf: ({ method }, { explains }) =>
          method === 'GET'
            ? undefined
            : {
                admitted: {
                  async run(c, next) {
                    const ticket = await currentTicket()
                    if (!explains)
                      metrics.change_freeze_writes_total.add({
                        outcome: ticket === null ? 'passed' : 'refused',
                      })
                    if (ticket === null) return next()
                    record(c, 'ticket', ticket)
                    throw refusal('change_freeze_active', detail)
                  },
                  describe: () => ({ read: { contact }, why: 'the API is not frozen' }),
                },
              },
        operatorCalls: {
          async beginChangeFreeze({ body: { ticket, seconds }, changed }) {
            await redis(['SET', await key('ticket'), ticket, 'EX', Math.ceil(seconds)])
            changed('begin', ticket)
          },
        },
        routes: {
          async readChangeFreeze(c) {
            const ticket = await currentTicket()
            return c.json({ frozen: ticket !== null, ticket })
          },
        },
      }
    },
  })
