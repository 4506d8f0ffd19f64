/** The description of refusals, shared by all calls. */
import * as z from 'zod'

/** RFC 9457, as `problem.ts` writes it. */
export const problemSchema = () =>
  z.strictObject({
    type: z.string().describe('urn:portcullis:problem:, and the code'),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string(),
    requestId: z.string().optional(),
    errors: z
      .array(
        z.strictObject({
          in: z.enum(['params', 'query', 'headers', 'body']),
          path: z.string().describe('a JSON Pointer'),
          message: z.string(),
        }),
      )
      .optional()
      .describe('on 422: what is wrong, and where'),
  })

/** RFC 6749 section 5.2, as `oauth/error.ts` writes it. */
export const oauthErrorSchema = () =>
  z.strictObject({
    error: z.string(),
    error_description: z.string(),
  })

interface ProblemStatus {
  readonly description: string
  /** Headers with details, by name. */
  readonly headers?: Readonly<Record<string, string>>
}

const RETRY_AFTER = { 'Retry-After': 'seconds to wait' }

/** Statuses of refusals, and their meaning here. */
export const PROBLEM_STATUSES: Readonly<Record<number, ProblemStatus>> = {
  400: { description: 'The request is malformed, or can be read in more than one way.' },
  401: {
    description: 'Credentials are missing or not good.',
    headers: { 'WWW-Authenticate': 'a challenge (RFC 6750, RFC 7617, RFC 9449)' },
  },
  403: { description: 'The caller may not do this, or is banned for a while.' },
  404: { description: 'There is no such thing.' },
  405: { description: 'Not with this method.', headers: { Allow: 'methods that do' } },
  413: { description: 'The body is too large, or there should be none.' },
  415: { description: 'The body is of another media type.' },
  422: { description: 'The input does not match the schema, or names nothing that there is.' },
  429: { description: 'A limit is exhausted.', headers: RETRY_AFTER },
  500: { description: 'A defect of the gateway.' },
  503: { description: 'A dependency cannot tell or do it at the moment.', headers: RETRY_AFTER },
}
