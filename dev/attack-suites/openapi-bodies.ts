/** Builds harmless JSON bodies from public OpenAPI descriptions: their examples and their documents. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { load } from 'js-yaml'
import type { Case } from './case.ts'

const BODIES = 10_000
const MAX_DOCUMENT_BYTES = 4_000_000
const MIN_BODY_CHARS = 20
const MAX_BODY_CHARS = 100_000
/** At most so many of one document, so that a large one does not decide. */
const MAX_OF_DOCUMENT = 5
const METHODS = new Set(['get', 'put', 'post', 'delete', 'patch', 'options', 'head'])

/** Returns up to 10,000 requests with different bodies, in the order of the files. */
export function openapiCases(folder: string): Case[] {
  const bodies = new Map<string, string>()
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    if (!/\.(?:json|ya?ml)$/.test(file)) continue
    const found = bodiesOf(documentAt(join(folder, file)))
    const step = Math.max(1, found.length / MAX_OF_DOCUMENT)
    for (let at = 0; at < found.length; at += step) {
      const body = found[Math.floor(at)]
      if (body !== undefined && bodies.size < BODIES) bodies.set(body, file)
    }
  }
  return [...bodies].map(([body, file]) => {
    return {
      group: 'bodies of OpenAPI descriptions',
      isAttack: false,
      name: `${file} ${body.slice(0, 200)}`,
      method: 'POST',
      target: '',
      headers: { 'Content-Type': 'application/json' },
      body,
    }
  })
}

function documentAt(path: string): unknown {
  const text = readFileSync(path, 'utf8')
  if (text.length > MAX_DOCUMENT_BYTES) return undefined
  try {
    return path.endsWith('.json') ? JSON.parse(text) : load(text)
  } catch {
    return undefined
  }
}

/** Returns the examples of a document, and its operations with their summaries and descriptions. */
function bodiesOf(document: unknown): string[] {
  const bodies: string[] = []
  function add(value: unknown): void {
    const body = JSON.stringify(value)
    if (body !== undefined && body.length >= MIN_BODY_CHARS && body.length <= MAX_BODY_CHARS)
      bodies.push(body)
  }
  function visit(value: unknown): void {
    if (typeof value !== 'object' || value === null) return
    for (const [name, member] of Object.entries(value)) {
      const isObject = typeof member === 'object' && member !== null
      if (isObject && (name === 'example' || METHODS.has(name))) add(member)
      if (isObject && name === 'examples') Object.values(member).forEach(add)
      visit(member)
    }
  }
  visit(document)
  return bodies
}
