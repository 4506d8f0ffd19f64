/** Limits of a subject and of a party that subjects share, as two processes of a test name them. */
import type { LimitRequest } from '../../../src/access/admission/limit.ts'
import { limitOf } from '../../access/admission/callers.ts'

export const SUBJECT_LIMIT = 3
export const SHARED_LIMIT = 1

export const limitOfParty = (party: string, limit: number): LimitRequest => ({
  ...limitOf({ limit, windowSeconds: 60 }),
  key: `window:${party}`,
  owner: party,
})
