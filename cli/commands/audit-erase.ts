/**
 * `portcullis audit erase` and `portcullis audit erasure`: erase a subject from the audit trail.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from '@commander-js/extra-typings'
import { id, seconds } from '../arguments.ts'
import { onlineCommand, workWith } from '../command.ts'
import { refused } from '../failure.ts'

interface Erasure {
  readonly id: string
  readonly state: string
  readonly rows: number
}

const POLL_MS = 1_000
const DEFAULT_WAIT_SECONDS = 120

export function addErase(audit: Command): void {
  onlineCommand(audit, {
    name: 'erase',
    does: 'erase a subject from the audit trail; events and their hashes stay',
    examples: [
      'portcullis audit erase --subject alice --issuer https://idp.example.com',
      'portcullis audit erase --subject alice --issuer https://idp.example.com --wait 0 --json',
    ],
  })
    .requiredOption('--subject <subject>', 'subject to erase')
    .requiredOption('--issuer <issuer>', 'issuer of the subject, from `audit query --json`')
    .option('--tenant <tenant>', 'only from events of this tenant (default: from all events)')
    .option('--wait <time>', 'time to wait for the end: 90s, 15m, 0', seconds, DEFAULT_WAIT_SECONDS)
    .addHelpText(
      'after',
      '\nExit code 1 if the erasure is not complete after --wait. It continues without the command.',
    )
    .action(async ({ subject, issuer, tenant, wait, ...options }) => {
      const { gateway, output } = workWith(options)
      let erasure = await gateway.post<Erasure>('/audit/erasures', { subject, issuer, tenant })
      output.remark(`Erasure ${erasure.id} is ordered.`)
      const until = Date.now() + wait * 1_000
      while (erasure.state !== 'done' && Date.now() < until) {
        await pause(Math.min(POLL_MS, until - Date.now()))
        const before = erasure.state
        erasure = await gateway.get<Erasure>(`/audit/erasures/${erasure.id}`)
        if (erasure.state !== before) output.remark(`It is ${erasure.state}.`)
      }
      if (erasure.state !== 'done' && wait > 0) {
        const detail = `it continues without the command: portcullis audit erasure ${erasure.id}`
        throw refused('erasure_not_done', detail)
      }
      if (erasure.state === 'done' && erasure.rows === 0)
        output.remark('No event has this subject and issuer: nothing was erased.')
      output.thing(erasure)
    })
  onlineCommand(audit, {
    name: 'erasure',
    does: 'show the progress of an erasure',
    examples: ['portcullis audit erasure 0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c'],
  })
    .argument('<id>', 'id of the erasure, from `audit erase`', id)
    .action(async (erasure, options) => {
      const { gateway, output } = workWith(options)
      output.thing(await gateway.get<Erasure>(`/audit/erasures/${erasure}`))
    })
}
