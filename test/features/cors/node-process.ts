/** The complete gateway on Node, with the page of the test in its policy. */
import { serve } from '../../../src/runtimes/node/index.ts'
import { policyFor } from './policy.ts'

const { PAGE = '', PORT } = process.env
await serve({ policy: policyFor(PAGE), port: Number(PORT) })
console.error('listening')
