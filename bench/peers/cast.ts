/** The measured gateways, in the order of the tables. */
import type { Contestant } from './contestant.ts'
import { envoy } from './envoy/start.ts'
import { fastify } from './fastify/start.ts'
import { handwritten, handwrittenAtOnce } from './handwritten/start.ts'
import { haproxy } from './haproxy/start.ts'
import { nginx } from './nginx/start.ts'
import { ours, passthrough } from './ours.ts'

/** All gateways. A quick run does not install those that it leaves out. */
export const CAST: readonly Contestant[] = [
  ours,
  handwritten,
  handwrittenAtOnce,
  passthrough,
  haproxy,
  envoy,
  fastify,
  nginx,
]
