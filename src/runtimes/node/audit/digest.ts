/** The digest of the chain on Node, which needs neither a promise nor another thread. */
import { hash } from 'node:crypto'

/** Returns the base64url SHA-256 of a text's UTF-8. */
export const sha256Now = (text: string): string => hash('sha256', text, 'base64url')
